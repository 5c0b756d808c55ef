"""What was published comes back: every field of it, by any of its names, and never another revision."""

from collections.abc import Sequence

import pytest

from stream_car import InvalidRequest, NewDocument, Retraction
from stream_car.codec.times import from_micros
from stream_car.core.documents import Document
from stream_car.errors import Halted
from stream_car.ports import Record
from stream_car.queries.answers import Lookup
from stream_car.queries.limits import NAMES_MAX
from stream_car.queries.originals import PER_NAME_MAX
from tests.support import engines
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.engines import day, document
from tests.support.question_sets import engine

pytestmark = on_both

FULL = Document(
    id="full",
    type="claim",
    time=day(3),
    order=7,
    revision=2,
    scope=({"topic": ("tea", "milk"), "colour": ("green",)}, {"record": ("the-book",)}),
    supersedes=("older",),
    superseded_by=(),
    amends=("amended",),
    attributes={"severity": [{"type": "CVSS_V3", "score": 9.8}], "pages": 12, "draft": False, "note": None},
    title="Tea",
    text="Green tea.\nWith milk.",
    source="A book",
    url="https://tea.example/",
)
FUTURE = 9001


def ids(lookup: Lookup) -> Sequence[str]:
    return [published.document.id for published in lookup.documents]


@in_the_gate
def test_a_document_comes_back_with_every_field_and_is_a_duplicate_if_it_is_published_again() -> None:
    with engine() as car:
        car.publish(FULL)
        [lookup] = car.get(["full"])
        [published] = lookup.documents
        again = car.publish(published.document)

    assert (lookup.name, lookup.via, lookup.status) == ("full", "id", "in_force")
    assert (published.status, published.records) == ("in_force", ("the-book",))
    assert isinstance(published.document, NewDocument)
    for field in FULL.__struct_fields__:
        expected = from_micros(FULL.time) if field == "time" else getattr(FULL, field)
        assert getattr(published.document, field) == expected, field
    assert again.outcomes == {"duplicate": 1}


def test_the_status_of_a_document_is_that_of_now_and_what_was_retracted_does_not_come_back() -> None:
    with engine() as car:
        car.publish(
            [
                document("old", at=1, topic="tea", text="tea is healthy"),
                document("new", "denial", 2, topic="tea"),
                document("later", at=FUTURE, topic="tea", text="tea of the future"),
                document("gone", at=1, topic="tea"),
                Retraction(id="gone"),
            ]
        )
        lookups = car.get(["old", "old#3", "new", "later", "gone", "never"])

    assert [(lookup.via, lookup.status, ids(lookup)) for lookup in lookups] == [
        ("id", "superseded", ["old"]),
        ("chunk", "superseded", ["old"]),
        ("id", "in_force", ["new"]),
        ("id", "pending", ["later"]),
        ("id", "retracted", []),
        ("", "unknown", []),
    ]
    assert lookups[3].documents[0].document.text == "tea of the future"


def test_a_correction_comes_back_in_place_of_what_it_corrects() -> None:
    with engine() as car:
        car.publish(document("a", at=1, topic="tea", text="first"))
        car.publish(document("a", at=1, revision=2, topic="tea", text="second"))
        [lookup] = car.get(["a"])

    assert [(published.document.revision, published.document.text) for published in lookup.documents] == [(2, "second")]


def test_of_a_record_the_editions_in_force_come_back_or_else_the_latest() -> None:
    with engine() as car:
        car.publish(
            [
                document("book@1", at=1, record="book"),
                document("book@2", at=2, record="book", topic="tea"),
                document("leaflet@1", at=1, record="leaflet", topic="milk"),
                document("leaflet@2", at=2, record="leaflet", topic="milk"),
                document("no", "denial", 3, topic="milk"),
            ]
        )
        book, leaflet = car.get(["book", "leaflet"])

    assert (book.via, book.status, ids(book)) == ("record", "in_force", ["book@2"])
    assert (leaflet.via, leaflet.status, ids(leaflet)) == ("record", "superseded", ["leaflet@2"])


def test_a_name_with_very_many_documents_gives_the_latest_and_says_that_there_are_more() -> None:
    with engine() as car:
        car.publish([document(f"note-{n:02}", "note", n + 1, record="notes") for n in range(PER_NAME_MAX + 2)])
        [lookup] = car.get(["notes"])

    assert lookup.reasons == ("limit",)
    assert ids(lookup) == [f"note-{n:02}" for n in reversed(range(2, PER_NAME_MAX + 2))]


@only_embedded("takes the documents away from the text index of this process")
@pytest.mark.parametrize("has_old_revision", [False, True])
def test_what_the_index_lacks_or_has_in_another_revision_comes_from_the_log(
    has_old_revision: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {"a": document("a", at=1, text="old")} if has_old_revision else {}
    with engines.engine() as car:
        car.publish([old.get("a", FULL), document("a", at=1, revision=3, text="new")])
        expected = car.get(["a"])

        async def documents(names: Sequence[str]) -> dict[str, Document]:
            return old

        monkeypatch.setattr(car.directory.projection.index, "documents", documents)
        lookups = car.get(["a"])

    assert lookups == expected
    assert lookups[0].documents[0].document.text == "new"


@only_embedded("takes the documents away from the index and the log of this process")
def test_what_neither_index_nor_log_has_any_more_is_lost_history_and_the_other_documents_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with engines.engine() as car:
        car.publish([document("a", "note", 1, record="book"), document("b", "note", 2, record="book")])
        whole = car.get(["book"])
        index, log = car.directory.projection.index, car.directory.projection.log
        kept = {"b": document("b", "note", 2, record="book")}

        async def documents(names: Sequence[str]) -> dict[str, Document]:
            return kept

        async def fetch(partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
            raise Halted("lost_history", "retention deleted what came before")

        monkeypatch.setattr(index, "documents", documents)
        monkeypatch.setattr(log, "fetch", fetch)
        a, b, book = car.get(["a", "b", "book"])

    assert (ids(a), a.status, a.reasons) == ([], "in_force", ("lost_history",))
    assert (ids(b), b.reasons) == (["b"], ())
    assert (ids(whole[0]), ids(book), book.reasons) == (["b", "a"], ["b"], ("lost_history",))


@only_embedded("the limit of a single program")
def test_the_number_of_names_is_limited() -> None:
    with engine() as car, pytest.raises(InvalidRequest) as raised:
        car.get(["a"] * (NAMES_MAX + 1))

    assert raised.value.code == "names"
