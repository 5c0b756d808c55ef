"""What a program may publish, and the bytes that are sent for it."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone

import pytest

from stream_car import InvalidDocument, NewDocument, Retraction, StreamCarError
from stream_car.codec import decode, encode
from stream_car.codec.publishable import Publishable, Publishables, encode_document, iterate_documents
from stream_car.core.documents import Document

MIDNIGHT = datetime(2024, 2, 29, tzinfo=UTC)
LEAST = NewDocument(id="d", type="note", time=MIDNIGHT)
FULL = NewDocument(
    id="d",
    type="note",
    time=MIDNIGHT,
    order=7,
    revision=2,
    scope={"topic": "tea", "place": ["home", "garden"]},
    supersedes=["a"],
    superseded_by=["b"],
    amends=["c"],
    attributes={"price": 3, "tags": ["x"]},
    title="Title",
    text="Text",
    source="Source",
    url="https://example.org",
)


def sent(document: NewDocument | Mapping[str, object]) -> Document:
    """Return the document that the engine reads."""
    statement = decode(encode_document(document))
    assert isinstance(statement, Document)
    return statement


def test_a_new_document_without_more_has_only_what_it_must_have() -> None:
    assert encode_document(LEAST) == b'{"id":"d","time":"2024-02-29T00:00:00Z","type":"note"}'


def test_every_field_of_a_new_document_arrives() -> None:
    document = sent(FULL)

    assert (document.id, document.type, document.order, document.revision) == ("d", "note", 7, 2)
    assert document.time == 1_709_164_800_000_000
    assert document.scope == ({"topic": ("tea",), "place": ("home", "garden")},)
    assert (document.supersedes, document.superseded_by, document.amends) == (("a",), ("b",), ("c",))
    assert document.attributes == {"price": 3, "tags": ["x"]}
    assert (document.title, document.text, document.source) == ("Title", "Text", "Source")
    assert document.url == "https://example.org"


def test_a_new_document_may_be_in_several_groups_of_scopes() -> None:
    document = sent(NewDocument(id="d", type="note", time="2024-02-29", scope=[{"topic": "tea"}, {"topic": ["rain"]}]))

    assert document.scope == ({"topic": ("tea",)}, {"topic": ("rain",)})


@pytest.mark.parametrize(
    "time",
    [
        MIDNIGHT,
        MIDNIGHT.astimezone(timezone(timedelta(hours=-5))),
        "2024-02-29",
        "2024-02-29T00:00:00Z",
        "2024-02-29T02:00:00+02:00",
    ],
)
def test_every_form_of_a_time_is_the_same_moment(time: datetime | str) -> None:
    mapping = {"id": "d", "type": "note", "time": time}

    assert sent(NewDocument(id="d", type="note", time=time)).time == sent(mapping).time == 1_709_164_800_000_000


def test_a_time_without_a_zone_is_an_error_that_names_the_document() -> None:
    naive = datetime(2024, 2, 29)  # noqa: DTZ001  that is the point
    for document in (NewDocument(id="d", type="note", time=naive), {"id": "d", "type": "note", "time": naive}):
        with pytest.raises(InvalidDocument, match="no time zone") as caught:
            encode_document(document)
        assert (caught.value.code, caught.value.document_id) == ("time", "d")


def test_a_time_in_other_words_is_sent_as_it_is_so_that_the_receipt_reports_it() -> None:
    assert b'"time":"yesterday"' in encode_document(NewDocument(id="d", type="note", time="yesterday"))


def test_text_and_bytes_are_sent_unchanged() -> None:
    assert encode_document(b'{"id":') == b'{"id":'
    assert encode_document('{"id": "é"}') == '{"id": "é"}'.encode()
    assert encode_document("\ud800") == b"\xed\xa0\x80"


def test_documents_and_retractions_of_the_core_are_sent_in_their_stored_form() -> None:
    retraction = Retraction(id="d", revision=2)
    document = Document(id="d", type="note", time=0)

    assert (encode_document(retraction), encode_document(document)) == (encode(retraction), encode(document))


@pytest.mark.parametrize("alone", [LEAST, Retraction(id="d"), {"id": "d"}, b"{}", "{}"])
def test_one_document_need_not_be_in_a_list(alone: Publishables) -> None:
    assert list(iterate_documents(alone)) == [alone]


def test_many_documents_may_come_from_any_iterable() -> None:
    documents: list[Publishable] = [LEAST, b"{}"]

    assert list(iterate_documents(iter(documents))) == documents


def test_anything_else_cannot_be_published() -> None:
    with pytest.raises(StreamCarError, match="Cannot publish an int"):
        encode_document(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [float("nan"), object(), {1: "x"}])
def test_attributes_that_json_cannot_carry_are_an_error(value: object) -> None:
    with pytest.raises(InvalidDocument):
        encode_document(NewDocument(id="d", type="note", time=MIDNIGHT, attributes={"x": value}))
