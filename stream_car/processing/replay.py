"""Replay rejected input: what to send, and whether it would be rejected again."""

from collections.abc import Callable

from stream_car.core.revisions import decide
from stream_car.core.stored import StoredDocument
from stream_car.errors import InvalidDocument
from stream_car.ports import Message, Record
from stream_car.processing.fold import Fold

REPLAY_OF = "stream-car-replay-of"  # this header holds the offset of the rejected record, in decimal digits


def rejection_of(
    message: Message, *, fold: Fold, stored: Callable[[str], StoredDocument | None], at: Record
) -> InvalidDocument | None:
    """Return why the fold would reject this message if it came now, or `None` if it would not.

    `stored` returns what the state has for an id. `at` supplies the offset and append time to assume.
    """
    record = Record(
        offset=at.offset, append_time=at.append_time, value=message.value, key=message.key, headers=message.headers
    )
    decoded = fold.read(record)
    content = decoded.content
    if isinstance(content, InvalidDocument):
        return content
    try:
        if content is not None:
            old = stored(content.id)
            decide(old, content, at=decoded.at, ruleset=fold.ruleset, scopes=decoded.scopes, is_due=True)
    except InvalidDocument as conflict:
        return conflict
    return None


def message_of(record: Record, corrected: bytes | None) -> Message:
    """Return the message that replays a record.

    Corrected bytes contain the id of their document, so the old key is not sent with them.
    """
    headers = tuple(header for header in record.headers if header[0] != REPLAY_OF)
    headers = (*headers, (REPLAY_OF, str(record.offset).encode()))
    if corrected is not None:
        return Message(value=corrected, headers=headers)
    return Message(value=record.value, key=record.key, headers=headers)
