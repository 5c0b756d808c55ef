"""What a replay of rejected input sends, and whether it would be rejected again."""

import pytest

from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.core.stored import Entry, StoredDocument
from stream_car.ports import Record
from stream_car.processing.fold import Fold
from stream_car.processing.replay import REPLAY_OF, decode_replay, rejection_of, replay_message
from tests.support.engines import NOW, RULESET, document

FOLD = Fold(RULESET)
ORIGIN = (REPLAY_OF, b"7")
BROKEN = Record(offset=7, append_time=NOW, value=b"{", key=b"claim", headers=(("trace", b"x"),))


def test_a_record_is_sent_again_as_it_was_and_names_its_origin() -> None:
    message = replay_message(BROKEN, None, origin="7")

    assert (message.value, message.key) == (b"{", b"claim")
    assert message.headers == (("trace", b"x"), ORIGIN)


def test_corrected_bytes_are_sent_without_the_old_key() -> None:
    message = replay_message(BROKEN, encode(document("other")), origin="7")

    assert (message.value, message.key) == (encode(document("other")), None)
    assert message.headers == (("trace", b"x"), ORIGIN)


def test_headers_of_an_earlier_replay_are_replaced() -> None:
    again = Record(
        offset=9,
        append_time=NOW,
        value=b"{",
        headers=((REPLAY_OF, b"7"), ("stream-car-code", b"syntax"), ("trace", b"x")),
    )

    assert replay_message(again, None, origin="9").headers == (("trace", b"x"), (REPLAY_OF, b"9"))


def code_of(value: bytes, stored: StoredDocument | None = None) -> str | None:
    """Replay these bytes in place of the broken record; return the code of the error."""
    decoded = decode_replay(FOLD, replay_message(BROKEN, value, origin="7"), BROKEN)
    assert (decoded.at.offset, decoded.at.append_time) == (7, NOW)
    rejection = rejection_of(decoded, stored, FOLD)
    return rejection.code if rejection is not None else None


def current(claim: Document) -> StoredDocument:
    digest = FOLD.read(Record(offset=3, append_time=NOW, value=encode(claim))).at.digest
    entry = Entry(claim.id, claim.revision, claim.type, claim.time, claim.order, offset=3, append_time=NOW)
    return StoredDocument(entry, retracted=False, digest=digest, scopes=("topic=tea",))


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (encode(document("claim", topic="tea")), None),
        (b'{"id": "claim", "retracted": true}', None),
        (b"{", "syntax"),
        (encode(document("claim", "rumour")), "type_unknown"),
    ],
)
def test_corrected_bytes_are_judged_as_if_they_had_just_been_published(value: bytes, code: str | None) -> None:
    assert code_of(value) == code


def test_a_revision_with_other_content_than_the_stored_one_would_be_rejected_again() -> None:
    claim = document("claim", topic="tea")

    assert code_of(encode(document("claim", topic="rain")), current(claim)) == "conflict"
    assert code_of(encode(claim), current(claim)) is None
    assert code_of(encode(document("claim", revision=2, topic="rain")), current(claim)) is None


def test_a_tick_is_never_rejected() -> None:
    tick = Record(offset=7, append_time=NOW, value=None, headers=(("stream-car-tick", b"1"),))

    assert rejection_of(FOLD.read(tick), None, FOLD) is None
