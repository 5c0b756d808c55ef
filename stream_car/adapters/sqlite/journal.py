"""A shard's events in the state file, numbered without gaps.

Promise: a repeated event is stored once. Every event carries a checksum that is verified when it is read: `Halted`
(`damaged`) asks for the file to be deleted. Cost: one transaction per call; a read follows an index. The coroutines
never suspend.
"""

from collections.abc import Sequence

from stream_car.adapters.database import add_checksum, strip_checksum
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.ports import Emission

_OSEQ_BITS = 40  # a row's number is shard << 40 | oseq: a shard's events are appended to its part of the tree


class SqliteJournal:
    """Implements `ports.ChangeLog` and `ports.RetainedChangeLog`."""

    def __init__(self, file: StateFile) -> None:
        self._file = file

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        if not events:
            return
        rows = [(_row(shard, e.oseq), shard, e.oseq, e.stream, e.key, add_checksum(e.key, e.value)) for e in events]
        with self._file.transaction() as connection:
            connection.executemany("INSERT OR IGNORE INTO changes VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._file.checkpoints.count(len(rows))

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        index, condition = ("changes_by_stream", "") if key is None else ("changes_by_key", "AND key = ?")
        parameters = (shard, stream, after, limit) if key is None else (shard, stream, after, key, limit)
        with self._file.translate_errors():
            rows: list[tuple[int, str, bytes, bytes]] = self._file.connection.execute(
                f"SELECT oseq, stream, key, value FROM changes INDEXED BY {index} "
                f"WHERE shard = ? AND stream = ? AND oseq > ? {condition} ORDER BY oseq LIMIT ?",
                parameters,
            ).fetchall()
        return tuple(self._event(*row) for row in rows)

    def _event(self, oseq: int, stream: str, key: bytes, stored: bytes) -> Emission:
        value = strip_checksum(key, stored)
        if value is None:
            raise self._file.damage_error(f"Event {oseq}")
        return Emission(oseq=oseq, stream=stream, key=key, value=value)

    async def last(self, shard: int) -> int:
        with self._file.translate_errors():
            row: tuple[int | None] = self._file.connection.execute(
                "SELECT MAX(at) FROM changes WHERE at BETWEEN ? AND ?", (_row(shard, 0), _row(shard + 1, 0) - 1)
            ).fetchone()
        return 0 if row[0] is None else row[0] - _row(shard, 0)

    async def deleted_up_to(self, shard: int) -> int:
        with self._file.translate_errors():
            row: tuple[int] | None = self._file.connection.execute(
                "SELECT upto FROM forgotten WHERE shard = ?", (shard,)
            ).fetchone()
        return row[0] if row is not None else 0

    async def delete_up_to(self, shard: int, stream: str, up_to: int, limit: int) -> int:
        with self._file.transaction() as connection:
            rows: list[tuple[int]] = connection.execute(
                "SELECT oseq FROM changes INDEXED BY changes_by_stream "
                "WHERE shard = ? AND stream = ? AND oseq <= ? ORDER BY oseq LIMIT ?",
                (shard, stream, up_to, limit),
            ).fetchall()
            if rows:
                connection.executemany("DELETE FROM changes WHERE at = ?", [(_row(shard, oseq),) for (oseq,) in rows])
                connection.execute("INSERT OR REPLACE INTO forgotten VALUES (?, ?)", (shard, rows[-1][0]))
        return len(rows)


def _row(shard: int, oseq: int) -> int:
    return (shard << _OSEQ_BITS) + oseq
