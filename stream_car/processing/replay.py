"""Replay rejected input: the message to send, and whether it would be rejected again."""

from stream_car.core.revisions import decide
from stream_car.core.stored import StoredDocument
from stream_car.errors import InvalidDocument
from stream_car.ports import Message, Record
from stream_car.processing.effects import DecodedRecord
from stream_car.processing.fold import Fold

OWN_HEADERS = "stream-car-"  # the prefix of headers that Stream-CAR sets
REPLAY_OF = OWN_HEADERS + "replay-of"  # this header names the rejected record


def replay_message(record: Record, corrected: bytes | None, *, origin: str) -> Message:
    """Return the message that replays a record; `origin` names it.

    Corrected bytes contain the id of their document, so the old key is not sent with them.
    """
    headers = tuple(header for header in record.headers if not header[0].startswith(OWN_HEADERS))
    headers = (*headers, (REPLAY_OF, origin.encode()))
    if corrected is not None:
        return Message(value=corrected, headers=headers)
    return Message(value=record.value, key=record.key, headers=headers)


def decode_replay(fold: Fold, message: Message, at: Record) -> DecodedRecord:
    """Decode a message as if it came at the offset and time of `at`."""
    return fold.read(
        Record(
            offset=at.offset, append_time=at.append_time, value=message.value, key=message.key, headers=message.headers
        )
    )


def rejection_of(decoded: DecodedRecord, stored: StoredDocument | None, fold: Fold) -> InvalidDocument | None:
    """Return why the fold would reject a message if it came now, or `None`.

    `stored` is what the state has for its id.
    """
    content = decoded.content
    if isinstance(content, InvalidDocument):
        return content
    try:
        if content is not None:
            decide(stored, content, at=decoded.at, ruleset=fold.ruleset, scopes=decoded.scopes, is_due=True)
    except InvalidDocument as conflict:
        return conflict.as_value()
    return None
