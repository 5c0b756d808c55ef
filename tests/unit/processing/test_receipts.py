"""What a publisher is told, and what is kept of what was refused."""

from pathlib import Path

import pytest

from stream_car import Document, Engine, Retraction
from stream_car.codec import encode
from stream_car.processing.receipts import Receipt
from tests.support.engines import NOW, document, engine


def receipt_of(here: Engine, said: Document | Retraction | dict[str, object] | bytes) -> Receipt:
    [receipt] = here.publish([said]).receipts
    return receipt


def test_every_outcome_has_its_receipt() -> None:
    with engine() as here:
        accepted = receipt_of(here, document("a", topic="moon", revision=2))
        assert (accepted.outcome, accepted.id, accepted.revision, accepted.type) == ("accepted", "a", 2, "claim")
        assert (accepted.offset, accepted.scopes, accepted.lacking) == (0, 1, ())
        assert receipt_of(here, document("a", topic="moon", revision=2)).outcome == "duplicate"
        assert receipt_of(here, document("a", topic="moon")).outcome == "older"
        assert receipt_of(here, Retraction(id="nobody")).outcome == "nothing"
        assert receipt_of(here, Retraction(id="nobody", revision=3)).outcome == "retracted"
        assert receipt_of(here, document("nobody", revision=3)).outcome == "older"
        assert receipt_of(here, document("later", at=1001)).outcome == "pending"
        bare = receipt_of(here, document("bare"))
        assert (bare.outcome, bare.scopes, bare.lacking) == ("accepted", 0, ("place", "topic"))
        conflict = receipt_of(here, document("a", topic="sun", revision=2))
        assert (conflict.outcome, conflict.code, conflict.id) == ("rejected", "conflict", "a")
        assert conflict.reason == "Revision 2 was published with other content. Send it as revision 3."
        retracted = receipt_of(here, Retraction(id="a"))
        assert (retracted.outcome, retracted.revision) == ("retracted", None)
        assert receipt_of(here, Retraction(id="a", revision=2)).outcome == "duplicate"
        assert receipt_of(here, document("a", topic="moon", revision=2)).outcome == "older"
        assert receipt_of(here, document("a", topic="moon", revision=3)).outcome == "accepted"
        assert here.next_offset == 13


def test_an_attribute_that_was_probably_meant_as_a_field_is_named() -> None:
    given: dict[str, object] = {"type": "claim", "time": "2024-01-01T00:00:00Z", "scope": {"topic": "tea"}}
    with engine() as here:
        wrong = receipt_of(here, given | {"id": "a", "supercedes": ["b"], "titles": "A", "colour": "red"})
        meant = receipt_of(here, given | {"id": "b", "sources": ["s"], "source": "s"})

    assert {(one.attribute, one.field) for one in wrong.misspelt} == {("supercedes", "supersedes"), ("titles", "title")}
    assert (wrong.outcome, meant.misspelt) == ("accepted", ())


@pytest.mark.parametrize(
    ("said", "code", "name"),
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
def test_what_is_refused_is_kept_with_its_bytes(
    said: Document | bytes, code: str, name: str | None, tmp_path: Path
) -> None:
    with engine(tmp_path) as here:
        receipt = receipt_of(here, said)
        [refused] = here.rejected()

        assert (receipt.outcome, receipt.code) == ("rejected", code)
        assert (refused.code, refused.reason, refused.offset) == (code, receipt.reason, receipt.offset)
        assert (refused.id, receipt.id) == (name, name)
        assert refused.value == (said if isinstance(said, bytes) else encode(said))
        assert refused.append_time == NOW
    with engine(tmp_path) as here:
        assert here.rejected() == (refused,)
        assert here.rejected(after=1) == ()


def wide(topics: int, places: int = 0) -> Document:
    scope = {"topic": tuple(f"t{n}" for n in range(topics))}
    if places:
        scope["place"] = tuple(f"p{n}" for n in range(places))
    return Document(id=f"{topics} by {places}", type="claim", time=NOW, scope=(scope,))


@pytest.mark.parametrize(
    ("document", "scopes"), [(wide(1024), 1024), (wide(31, 32), 31 + 31 * 32), (wide(512, 1), 1024)]
)
def test_a_document_may_join_1024_scopes(document: Document, scopes: int) -> None:
    with engine() as here:
        receipt = receipt_of(here, document)
        assert (receipt.outcome, receipt.scopes) == ("accepted", scopes)
        assert here.resolve([document.id])[0].status == "active"


@pytest.mark.parametrize("document", [wide(1025), wide(31, 33), wide(513, 1)])
def test_a_document_with_more_scopes_is_refused(document: Document) -> None:
    with engine() as here:
        receipt = receipt_of(here, document)
        assert (receipt.outcome, receipt.code) == ("rejected", "scope_count")
