"""A shard's events in the state file, numbered without gaps.

Promise: a repeated event is stored once. Every event carries a checksum over its number, stream, key and value that is
verified when it is read: `Halted` (`damaged`) asks for the file to be deleted. Cost: one transaction per call, or none
beside that of the state (`append`); a read of all events of a key makes one search per 65,536 events. The coroutines
never suspend.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from stream_car.adapters.database import add_checksum, strip_checksum
from stream_car.adapters.sqlite.state_file import KEY_BUCKET_BITS, StateFile, hash_of
from stream_car.ports import Emission

_OSEQ_BITS = 40  # a row's number is shard << 40 | oseq: a shard's events are appended to its part of the tree
_MAIN_STREAM = "changes"  # stored as an empty name, and found by number: nearly all events are of this stream

_Row = tuple[int, str, bytes, bytes]
_SELECT = "SELECT at, stream, key, value FROM changes"


class SqliteJournal:
    """Implements `ports.ChangeLog` and `ports.RetainedChangeLog`."""

    def __init__(self, file: StateFile) -> None:
        self._file = file

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        if not events:
            return
        with self._file.transaction() as connection:
            self.append(connection, shard, events)
        self._file.checkpoints.count(len(events))

    def append(self, connection: sqlite3.Connection, shard: int, events: Sequence[Emission]) -> None:
        """Store events within a transaction of this connection."""
        connection.executemany(
            "INSERT OR IGNORE INTO changes (at, stream, hash, key, value) VALUES (?, ?, ?, ?, ?)",
            [_row_of(_number(shard, event.oseq), event) for event in events],
        )

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        stored, first, end = _stored_stream(stream), _number(shard, after), _number(shard + 1, 0)
        with self._file.translate_errors():
            if key is not None:
                rows: Iterable[_Row] = self._rows_of_hash(hash_of(key), first, end)
            elif stored:
                rows = self._rows(
                    "INDEXED BY changes_by_stream WHERE stream = ? AND stream <> '' AND at > ? AND at < ? LIMIT ?",
                    (stored, first, end, limit),
                )
            else:
                rows = self._rows("WHERE stream = '' AND at > ? AND at < ? ORDER BY at LIMIT ?", (first, end, limit))
            events = (self._event(shard, *row) for row in rows)
            if key is not None:  # only now, because what was altered must not be passed over
                events = (event for event in events if event.key == key and event.stream == stream)
            return tuple(islice(events, limit))

    def _rows_of_hash(self, key_hash: int, first: int, end: int) -> Iterator[_Row]:
        """Yield the events whose keys have this hash, with `first < number < end`, bucket by bucket."""
        last = self._last(first, end)
        buckets = range(first + 1 >> KEY_BUCKET_BITS, (last >> KEY_BUCKET_BITS) + 1) if last is not None else ()
        where = f"INDEXED BY changes_by_key WHERE at >> {KEY_BUCKET_BITS} = ? AND hash = ? AND at > ? ORDER BY at"
        return chain.from_iterable(self._rows(where, (bucket, key_hash, first)) for bucket in buckets)

    def _last(self, first: int, end: int) -> int | None:
        row: tuple[int | None] = self._file.connection.execute(
            "SELECT MAX(at) FROM changes WHERE at > ? AND at < ?", (first, end)
        ).fetchone()
        return row[0]

    def _rows(self, where: str, parameters: Sequence[int | str | bytes]) -> Iterable[_Row]:
        return self._file.connection.execute(f"{_SELECT} {where}", parameters)

    def _event(self, shard: int, number: int, stream: str, key: bytes, stored: bytes) -> Emission:
        oseq = number - _number(shard, 0)
        value = strip_checksum(_name(number, stream, key), stored)
        if value is None:
            raise self._file.damage_error(f"Event {oseq}")
        return Emission(oseq=oseq, stream=stream or _MAIN_STREAM, key=key, value=value)

    async def last(self, shard: int) -> int:
        with self._file.translate_errors():
            last = self._last(_number(shard, 0) - 1, _number(shard + 1, 0))
        return 0 if last is None else last - _number(shard, 0)

    async def deleted_up_to(self, shard: int) -> int:
        with self._file.translate_errors():
            row: tuple[int] | None = self._file.connection.execute(
                "SELECT upto FROM forgotten WHERE shard = ?", (shard,)
            ).fetchone()
        return row[0] if row is not None else 0

    async def delete_up_to(self, shard: int, stream: str, up_to: int, limit: int) -> int:
        stored = _stored_stream(stream)
        deleted_before = 0 if stored else await self.deleted_up_to(shard)
        with self._file.transaction() as connection:
            rows: list[tuple[int]] = connection.execute(
                "SELECT at FROM changes WHERE stream = ? AND at > ? AND at <= ? ORDER BY at LIMIT ?",
                (stored, _number(shard, deleted_before), _number(shard, up_to), limit),
            ).fetchall()
            if rows:
                connection.executemany("DELETE FROM changes WHERE at = ?", rows)
                last = rows[-1][0] - _number(shard, 0)
                connection.execute("INSERT OR REPLACE INTO forgotten VALUES (?, ?)", (shard, last))
        return len(rows)


def _number(shard: int, oseq: int) -> int:
    return (shard << _OSEQ_BITS) + oseq


def _stored_stream(stream: str) -> str:
    return "" if stream == _MAIN_STREAM else stream


def _row_of(number: int, event: Emission) -> tuple[int, str, int, bytes, bytes]:
    stream, key = _stored_stream(event.stream), event.key
    return number, stream, hash_of(key), key, add_checksum(_name(number, stream, key), event.value)


def _name(number: int, stream: str, key: bytes) -> bytes:
    return b"%d %b %b" % (number, stream.encode(), key)
