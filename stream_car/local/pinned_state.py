"""The state of a data directory as it was at one moment, for a question that takes long.

Promise: publishers never wait for it. It reads through a transaction of its own, beside which others commit.
Cost: about 0.2 ms to begin; until it is closed, the write-ahead log of the state keeps growing.
"""

from collections.abc import Mapping, Sequence

from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import SqliteStore
from stream_car.core.documents import Document
from stream_car.ports import Log
from stream_car.processing.fold import Fold


class LocalPinnedState:
    """Implements `queries.shards.PinnedState` with the state file and the log, which never changes what it has."""

    def __init__(self, file: StateFile, store: SqliteStore, log: Log, fold: Fold) -> None:
        self._file = file
        self._store = store
        self._log = log
        self._fold = fold
        self._connection = file.open_snapshot()

    async def peek(self, keys: Sequence[bytes]) -> tuple[int, Mapping[bytes, bytes]]:
        return self._store.peek_with(self._connection, 0, keys)

    async def document(self, offset: int) -> Document | None:
        [record] = await self._log.fetch(0, offset, 1)
        content = self._fold.read(record).content
        return content if isinstance(content, Document) else None

    def close(self) -> None:
        self._file.close_snapshot(self._connection)
