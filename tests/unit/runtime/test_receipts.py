"""What a publisher is told, and what is kept of what was refused."""

from pathlib import Path

import pytest

from stream_car import Document, Engine, Retraction
from stream_car.codec import encode
from stream_car.engine.answers import Receipt
from tests.engines import NOW, document, engine


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
        assert conflict.reason == "revision 2 was published with other content; send revision 3"
        retracted = receipt_of(here, Retraction(id="a"))
        assert (retracted.outcome, retracted.revision) == ("retracted", None)
        assert receipt_of(here, Retraction(id="a", revision=2)).outcome == "duplicate"
        assert receipt_of(here, document("a", topic="moon", revision=2)).outcome == "older"
        assert receipt_of(here, document("a", topic="moon", revision=3)).outcome == "accepted"
        assert here.next_offset == 13


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
