"""Rejected input sent again: what is sent, and whether it would only be rejected again."""

from collections.abc import Callable

from stream_car.core.revisions import decide
from stream_car.core.stored import StoredDocument
from stream_car.errors import InvalidDocument
from stream_car.ports import Message, Record
from stream_car.processing.fold import Fold

REPLAY_OF = "stream-car-replay-of"  # this header holds the offset of the refused input, in decimal digits


def rejection_of(
    message: Message, *, fold: Fold, stored: Callable[[str], StoredDocument | None], at: Record
) -> InvalidDocument | None:
    """Why the fold would refuse this message if it came now; `held` says what is known of an id."""
    record = Record(
        offset=at.offset, append_time=at.append_time, value=message.value, key=message.key, headers=message.headers
    )
    read = fold.read(record)
    if isinstance(read.content, InvalidDocument):
        return read.content
    try:
        if read.content is not None:
            known = stored(read.content.id)
            decide(known, read.content, at=read.at, ruleset=fold.ruleset, scopes=read.scopes, is_due=True)
    except InvalidDocument as conflict:
        return conflict
    return None


def message_of(record: Record, corrected: bytes | None) -> Message:
    """What replays a record. Mended bytes name their document themselves, so the old key stays behind."""
    headers = tuple(header for header in record.headers if header[0] != REPLAY_OF)
    marked = (*headers, (REPLAY_OF, str(record.offset).encode()))
    if corrected is not None:
        return Message(value=corrected, headers=marked)
    return Message(value=record.value, key=record.key, headers=marked)
