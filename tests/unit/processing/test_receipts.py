"""The receipts that a publisher gets, and what is stored of rejected input."""

from pathlib import Path

import pytest

from stream_car import Engine, Retraction
from stream_car.codec import encode
from stream_car.codec.times import from_micros
from stream_car.core.documents import Document
from stream_car.processing.receipts import Receipt
from tests.support.engines import NOW, document, engine


def publish(car: Engine, document: Document | Retraction | dict[str, object] | bytes) -> Receipt:
    [receipt] = car.publish(document).receipts
    return receipt


def test_every_outcome_has_its_receipt() -> None:
    with engine() as car:
        accepted = publish(car, document("a", topic="moon", revision=2))
        assert (accepted.outcome, accepted.id, accepted.revision, accepted.type) == ("accepted", "a", 2, "claim")
        assert (accepted.offset, accepted.scopes, accepted.missing_keys) == (0, 1, ())
        assert publish(car, document("a", topic="moon", revision=2)).outcome == "duplicate"
        assert publish(car, document("a", topic="moon")).outcome == "older"
        assert publish(car, Retraction(id="nobody")).outcome == "nothing"
        assert publish(car, Retraction(id="nobody", revision=3)).outcome == "retracted"
        assert publish(car, document("nobody", revision=3)).outcome == "older"
        assert publish(car, document("later", at=1001)).outcome == "pending"
        bare = publish(car, document("bare"))
        assert (bare.outcome, bare.scopes, bare.missing_keys) == ("accepted", 0, ("place", "topic"))
        conflict = publish(car, document("a", topic="sun", revision=2))
        assert (conflict.outcome, conflict.code, conflict.id) == ("rejected", "conflict", "a")
        assert conflict.reason == "Revision 2 was published with other content. Send it as revision 3."
        retracted = publish(car, Retraction(id="a"))
        assert (retracted.outcome, retracted.revision) == ("retracted", None)
        assert publish(car, Retraction(id="a", revision=2)).outcome == "duplicate"
        assert publish(car, document("a", topic="moon", revision=2)).outcome == "older"
        assert publish(car, document("a", topic="moon", revision=3)).outcome == "accepted"
        assert car.directory.next_offset == 13


def test_an_attribute_that_was_probably_meant_as_a_field_is_named() -> None:
    fields: dict[str, object] = {"type": "claim", "time": "2024-01-01T00:00:00Z", "scope": {"topic": "tea"}}
    with engine() as car:
        wrong = publish(car, fields | {"id": "a", "supercedes": ["b"], "titles": "A", "colour": "red"})
        meant = publish(car, fields | {"id": "b", "sources": ["s"], "source": "s"})

    assert {(typo.attribute, typo.field) for typo in wrong.likely_typos} == {
        ("supercedes", "supersedes"),
        ("titles", "title"),
    }
    assert (wrong.outcome, meant.likely_typos) == ("accepted", ())


def test_characters_of_an_id_or_a_scope_that_nobody_sees_are_named() -> None:
    with engine() as car:
        hidden = publish(car, document("a\u200bb\u202e", topic="new\xa0moon"))
        plain = publish(car, document("Ünïcødé 月", topic="nouvelle lune, é", place="東京"))

    assert [(name.place, name.character) for name in hidden.hidden_characters] == [
        ("id", "U+200B"),
        ("id", "U+202E"),
        ("topic", "U+00A0"),
    ]
    assert (hidden.outcome, plain.outcome, plain.hidden_characters) == ("accepted", "accepted", ())


@pytest.mark.parametrize(
    ("sent", "code", "name"),
    [
        (b"{", "syntax", None),
        (b"", "empty", None),
        (document("x", "rumour"), "type_unknown", "x"),
        (
            Document(
                id="y",
                type="claim",
                time=NOW,
                scope=({"topic": tuple(f"t{n}" for n in range(40)), "place": tuple(f"p{n}" for n in range(40))},),
            ),
            "scope_count",
            "y",
        ),
    ],
)
def test_rejected_input_is_stored_with_its_bytes(
    sent: Document | bytes, code: str, name: str | None, tmp_path: Path
) -> None:
    with engine(tmp_path) as car:
        receipt = publish(car, sent)
        [rejected] = car.rejected()

        assert (receipt.outcome, receipt.code) == ("rejected", code)
        assert (rejected.code, rejected.reason, rejected.offset) == (code, receipt.reason, receipt.offset)
        assert (rejected.id, receipt.id) == (name, name)
        assert rejected.value == (sent if isinstance(sent, bytes) else encode(sent))
        assert rejected.append_time == from_micros(NOW)
    with engine(tmp_path) as car:
        assert car.rejected() == (rejected,)
        assert car.rejected(after=1) == ()


def wide(topics: int, places: int = 0) -> Document:
    scope = {"topic": tuple(f"t{n}" for n in range(topics))}
    if places:
        scope["place"] = tuple(f"p{n}" for n in range(places))
    return Document(id=f"{topics} by {places}", type="claim", time=NOW, scope=(scope,))


@pytest.mark.parametrize(
    ("document", "scopes"), [(wide(1024), 1024), (wide(31, 32), 31 + 31 * 32), (wide(512, 1), 1024)]
)
def test_a_document_may_join_1024_scopes(document: Document, scopes: int) -> None:
    with engine() as car:
        receipt = publish(car, document)
        assert (receipt.outcome, receipt.scopes) == ("accepted", scopes)
        assert car.resolve([document.id])[0].status == "in_force"


@pytest.mark.parametrize("document", [wide(1025), wide(31, 33), wide(513, 1)])
def test_a_document_with_more_scopes_is_rejected(document: Document) -> None:
    with engine() as car:
        receipt = publish(car, document)
        assert (receipt.outcome, receipt.code) == ("rejected", "scope_count")
