"""The document log in an SQLite file of its own: what `append` has returned for survives a power cut.

Each record carries a hash over its own bytes and the hash before it, so an altered, missing or
swapped record is found when it or its successor is read. Cost: one disk flush an append, whatever
the number of messages; a read hashes what it returns, but for the batch that was appended last, which
is handed on once as it came. Its coroutines never suspend.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from stream_car.adapters.sqlite.hash_chain import CURE, FORMAT, HEADERS, PARTITION_BITS, Chain, bounds, genesis, linked
from stream_car.errors import Halted
from stream_car.files.database import connect, transaction, translated
from stream_car.files.lock import FileLock
from stream_car.ports import Clock, Message, Record

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
    at INTEGER PRIMARY KEY, append_time INTEGER NOT NULL, key BLOB, value BLOB, headers BLOB, hash BLOB NOT NULL
);
"""
_MARKED = "CREATE INDEX IF NOT EXISTS records_with_headers ON records (at) WHERE headers IS NOT NULL"
_INSERT = "INSERT INTO records (at, append_time, key, value, headers, hash) VALUES (?, ?, ?, ?, ?, ?)"


class Tip(Struct, frozen=True, gc=False):
    """Where a partition ends: the next offset, and what the last record says."""

    end: int
    append_time: int
    hash: bytes


class SqliteLog:
    """Implements `ports.Log` for one process; a second one is refused with the first one's process id."""

    def __init__(self, path: Path | str, clock: Clock, partitions: int = 1) -> None:
        self.path = Path(path)
        self._clock = clock
        self._lock = FileLock(self.path.with_name(self.path.name + ".lock"), "the document log")
        try:
            with translated(self.path, CURE):
                self._connection = connect(self.path, synchronous="FULL")
            self._chain = Chain(self.path, self._connection)
            try:
                with translated(self.path, CURE):
                    self._check_format(partitions)
                    self._tips = [self._read_tip(partition) for partition in range(partitions)]
                    self._latest: list[tuple[Record, ...]] = [()] * partitions
            except BaseException:
                self._connection.close()
                raise
        except BaseException:
            self._lock.release()
            raise

    def _check_format(self, partitions: int) -> None:
        self._connection.executescript(_SCHEMA)
        with transaction(self._connection):
            about: dict[str, int] = dict(self._connection.execute("SELECT name, value FROM about"))
            if not about:
                rows = [("format", FORMAT), ("partitions", partitions)]
                self._connection.executemany("INSERT INTO about VALUES (?, ?)", rows)
                return
        if about.get("format") != FORMAT:
            found = about.get("format")
            raise Halted("format", f"{self.path.name} has format {found}, this release reads {FORMAT}; use its release")
        if about.get("partitions") != partitions:
            found = about.get("partitions")
            raise Halted("partitions", f"{self.path.name} has {found} partitions for life, not {partitions}")

    def _read_tip(self, partition: int) -> Tip:
        row: tuple[int, int, bytes] | None = self._connection.execute(
            "SELECT at, append_time, hash FROM records WHERE at BETWEEN ? AND ? ORDER BY at DESC LIMIT 1",
            bounds(partition),
        ).fetchone()
        if row is None:
            return Tip(0, 0, genesis(partition))
        return Tip(row[0] - (partition << PARTITION_BITS) + 1, row[1], row[2])

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        """Keep all messages or none, durably; the offset of the first. An empty batch returns the end."""
        tip = self._tips[partition]
        if not messages:
            return tip.end
        append_time = max(self._clock.now(), tip.append_time)
        rows, link = [], tip.hash
        base = partition << PARTITION_BITS
        for offset, message in enumerate(messages, tip.end):
            headers = msgspec.msgpack.encode(message.headers) if message.headers else None
            link = linked(link, offset, append_time, message.key, message.value, headers)
            rows.append((base + offset, append_time, message.key, message.value, headers, link))
        try:
            with translated(self.path, CURE), transaction(self._connection):
                self._connection.executemany(_INSERT, rows)
        except BaseException:  # also an interrupt that came just after the commit
            with suppress(sqlite3.Error):
                self._tips[partition] = self._read_tip(partition)
            raise
        self._latest[partition] = tuple(
            [
                Record(offset=offset, append_time=append_time, value=one.value, key=one.key, headers=one.headers)
                for offset, one in enumerate(messages, tip.end)
            ]
        )
        self._tips[partition] = Tip(tip.end + len(rows), append_time, link)
        return tip.end

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        """Up to `max_records` records from exactly `from_offset` on, their chain verified; none at the end."""
        tip = self._tips[partition]
        if from_offset > tip.end:
            raise Halted(
                "ahead",
                f"record {from_offset} of {self.path.name} was asked for, but the log ends at {tip.end}: "
                f"it has lost its end; {CURE}",
            )
        if from_offset == tip.end or max_records <= 0:
            return ()
        count = min(max_records, tip.end - from_offset)
        latest = self._latest[partition]
        if latest and latest[0].offset <= from_offset:
            if from_offset + count > latest[-1].offset:
                self._latest[partition] = ()  # read once; whoever asks again is answered from the file
            start = from_offset - latest[0].offset
            return latest[start : start + count]
        return tuple(self._chain.records(partition, from_offset, count))

    async def range(self, partition: int) -> tuple[int, int]:
        """The first offset kept, and the offset that the next record will get."""
        return self._chain.first(partition), self._tips[partition].end

    def marked(self, header: str) -> dict[int, int]:
        """Records of partition 0 that carry this header: the number that it holds, and where the record stands.

        The first call looks at the whole log and leaves an index of the few records that have headers.
        """
        with translated(self.path, CURE):
            self._connection.execute(_MARKED)
            rows: list[tuple[int, bytes]] = self._connection.execute(
                "SELECT at, headers FROM records WHERE headers IS NOT NULL AND at BETWEEN ? AND ?", bounds(0)
            ).fetchall()
        found = ((at, content) for at, kept in rows for name, content in HEADERS.decode(kept) if name == header)
        return {int(content): at for at, content in found if content.isdigit()}

    def verify(self) -> tuple[int, ...]:
        """Walk every chain from its start; the end of each partition. Raises `Halted` at the first fault."""
        for partition, tip in enumerate(self._tips):
            for _ in self._chain.records(partition, 0, tip.end):
                pass
        return tuple(tip.end for tip in self._tips)

    def close(self) -> None:
        """Let go of the file; again is harmless."""
        try:
            with translated(self.path, CURE):
                self._connection.close()
        finally:
            self._lock.release()
