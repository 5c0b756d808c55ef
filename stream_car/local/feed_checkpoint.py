"""What a feed has seen, over the file of positions: how far its files were read, and the editions of its records.

Promise: what was added is found at once, and on disk after `commit`. Cost: a look-up per record.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from stream_car.adapters.sqlite.feed_positions import FeedPositionFile
from stream_car.feeds import RecordState

T = TypeVar("T")


class FilePosition(Struct, frozen=True, array_like=True, gc=False):
    """How far a file was read: `size` bytes with this digest. `rejected` counts the pieces that could not be read.

    Of a git repository, `size` is the number of commits and `digest` the name of the last one.
    """

    size: int
    digest: bytes
    rejected: int = 0


class FeedCheckpoint:
    """What a feed has seen: rows on disk, and what this run has added since the last commit."""

    def __init__(self, feed: str, rows: FeedPositionFile) -> None:
        self._feed = feed
        self._rows = rows
        self._records: dict[str, RecordState] = {}
        self._files: dict[str, FilePosition] = {}

    def get(self, record: str, /) -> RecordState | None:
        state = self._records.get(record)
        if state is None:
            state = self._stored(f"r:{record}", RecordState)
        return state

    def file_position(self, name: str) -> FilePosition | None:
        """Return how far a file was read at the last commit, or `None` if it was not read."""
        return self._stored(f"f:{name}", FilePosition)

    def _stored(self, name: str, kind: type[T]) -> T | None:
        row = self._rows.get(self._feed, name)
        try:
            return msgspec.msgpack.decode(row, type=kind) if row is not None else None
        except (msgspec.DecodeError, TypeError) as error:
            raise self._rows.damaged(f"The row {name!r}") from error

    def add(self, states: Mapping[str, RecordState]) -> None:
        """Add the states of records."""
        self._records.update(states)

    def add_position(self, file: str, position: FilePosition) -> None:
        """Add how far a file was read."""
        self._files[file] = position

    @property
    def uncommitted(self) -> int:
        """The number of rows that the next commit writes."""
        return len(self._records) + len(self._files)

    def commit(self, *, reached: int) -> None:
        """Write what was added; `reached` is the length of the log that contains its documents."""
        encode = msgspec.msgpack.encode
        rows = [(f"r:{name}", encode(state)) for name, state in self._records.items()]
        rows += [(f"f:{name}", encode(position)) for name, position in self._files.items()]
        self._rows.put(self._feed, rows, reached=reached)
        self._records.clear()
        self._files.clear()
