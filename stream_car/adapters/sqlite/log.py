"""The document log in an SQLite file of its own.

Promise: once `append` has returned, its messages survive a power cut. Each record carries a hash over its own bytes
and the hash before it, so an altered, missing or swapped record is detected when it or its successor is read. The
coroutines never suspend.
Cost: one disk flush per append, whatever the number of messages. A read hashes what it returns, except the batch that
was appended last: its first reader gets it from memory.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from stream_car.adapters.checkpoints import Checkpoints
from stream_car.adapters.database import PAGE_BYTES, connect, transaction, translate_errors
from stream_car.adapters.sqlite.hash_chain import (
    CURE,
    FORMAT,
    HEADERS,
    PARTITION_BITS,
    Chain,
    genesis,
    next_hash,
    row_range,
    rules_hash,
)
from stream_car.errors import Halted
from stream_car.files.lock import FileLock
from stream_car.ports import CLOCK_STEP_MAX, Clock, Message, Record

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
    at INTEGER PRIMARY KEY, append_time INTEGER NOT NULL, key BLOB, value BLOB, headers BLOB, hash BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS rules (
    number INTEGER PRIMARY KEY, next_offset INTEGER NOT NULL, value BLOB NOT NULL, hash BLOB NOT NULL
);
"""
_INSERT = "INSERT INTO records (at, append_time, key, value, headers, hash) VALUES (?, ?, ?, ?, ?, ?)"


CHECKPOINT_PAGES = 500  # appended between two checkpoints; each checkpoint flushes the file
MARK_BYTES = 6  # of a hash: whether two logs are one, not whether somebody forged one
MARK_DIGITS = 14


class Tip(Struct, frozen=True, gc=False):
    """The end of a partition: the next offset, and the append time and hash of the last record."""

    end: int
    append_time: int
    hash: bytes


class SqliteLog:
    """Implements `ports.Log` and `ports.MarkedLog`. A second process is rejected with the process id of the first."""

    def __init__(self, path: Path | str, clock: Clock, partitions: int = 1) -> None:
        self.path = Path(path)
        self._clock = clock
        self._lock = FileLock(self.path.with_name(self.path.name + ".lock"), "the document log")
        try:
            with translate_errors(self.path, CURE):
                self._connection = connect(self.path, synchronous="FULL")
            self._chain = Chain(self.path, self._connection)
            try:
                with translate_errors(self.path, CURE):
                    self._check_format(partitions)
                    self._tips = [self._read_tip(partition) for partition in range(partitions)]
                    self._latest: list[tuple[Record, ...]] = [()] * partitions
                self._checkpoints = Checkpoints(self.path, CHECKPOINT_PAGES)
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
        if (written := about.get("format")) != FORMAT:
            advice = f"but this release reads format {FORMAT}. Use the release that wrote it."
            raise Halted("format", f"The file {self.path.name} has format {written}, {advice}")
        if (count := about.get("partitions")) != partitions:
            advice = f"not {partitions}, and the number cannot change. Open it with {count}."
            raise Halted("partitions", f"The file {self.path.name} was created with {count} partitions, {advice}")

    def _read_tip(self, partition: int) -> Tip:
        row: tuple[int, int, bytes] | None = self._connection.execute(
            "SELECT at, append_time, hash FROM records WHERE at BETWEEN ? AND ? ORDER BY at DESC LIMIT 1",
            row_range(partition),
        ).fetchone()
        if row is None:
            return Tip(0, 0, genesis(partition))
        return Tip(row[0] - (partition << PARTITION_BITS) + 1, row[1], row[2])

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        tip = self._tips[partition]
        if not messages:
            return tip.end
        now = self._clock.now()
        append_time = now if tip.append_time - now > CLOCK_STEP_MAX else max(tip.append_time, now)
        rows, last_hash = [], tip.hash
        base = partition << PARTITION_BITS
        for offset, message in enumerate(messages, tip.end):
            headers = msgspec.msgpack.encode(message.headers) if message.headers else None
            last_hash = next_hash(last_hash, offset, append_time, message.key, message.value, headers)
            rows.append((base + offset, append_time, message.key, message.value, headers, last_hash))
        try:
            with translate_errors(self.path, CURE), transaction(self._connection):
                self._connection.executemany(_INSERT, rows)
        except BaseException:  # an interrupt may also come just after the commit, so read again where the log ends
            with suppress(sqlite3.Error):
                self._tips[partition] = self._read_tip(partition)
            raise
        size = sum(len(message.value or b"") for message in messages)
        self._checkpoints.count(1 + size // PAGE_BYTES)
        self._latest[partition] = tuple(
            [
                Record(offset=n, append_time=append_time, value=message.value, key=message.key, headers=message.headers)
                for n, message in enumerate(messages, tip.end)
            ]
        )
        self._tips[partition] = Tip(tip.end + len(rows), append_time, last_hash)
        return tip.end

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        tip = self._tips[partition]
        if from_offset > tip.end:
            raise Halted(
                "ahead",
                f"Record {from_offset} of {self.path.name} was requested, but the log ends at {tip.end}: "
                f"it has lost its end. {CURE}",
            )
        if from_offset == tip.end or max_records <= 0:
            return ()
        count = min(max_records, tip.end - from_offset)
        latest = self._latest[partition]
        if latest and latest[0].offset <= from_offset:
            if from_offset + count > latest[-1].offset:
                self._latest[partition] = ()  # read to its end: later readers get it from the file
            start = from_offset - latest[0].offset
            return latest[start : start + count]
        return tuple(self._chain.records(partition, from_offset, count))

    async def range(self, partition: int) -> tuple[int, int]:
        return self._chain.first(partition), self._tips[partition].end

    def offsets_by_header(self, header: str) -> dict[int, int]:
        """Map the number in this header to the offset of its record, for every record of partition 0 that has it.

        Cost: it scans the whole log. An index could have lost some of them unnoticed.
        """
        with translate_errors(self.path, CURE):
            rows: list[tuple[int, bytes]] = self._connection.execute(
                "SELECT at, headers FROM records NOT INDEXED WHERE headers IS NOT NULL AND at BETWEEN ? AND ?",
                row_range(0),
            ).fetchall()
        matches = ((at, value) for at, headers in rows for name, value in HEADERS.decode(headers) if name == header)
        return {int(value): at for at, value in matches if value.isdigit()}

    def rules(self) -> bytes | None:
        """Return what `record_rules` stored last, or `None` if it was never called.

        Raises:
            Halted: rules are missing or were altered, or belong to another log (`damaged`).
        """
        with translate_errors(self.path, CURE):
            return self._rules()[0]

    def record_rules(self, value: bytes) -> None:
        """Store the rules under which the records from now on are read, tied to the last record of partition 0.

        They are durable when this returns, and take no offset.
        """
        with translate_errors(self.path, CURE), transaction(self._connection):
            _, number, previous = self._rules()
            end = self._tips[0].end
            digest = self._rules_hash(previous, number, end, value)
            self._connection.execute("INSERT INTO rules VALUES (?, ?, ?, ?)", (number, end, value, digest))
            self._connection.execute("INSERT OR REPLACE INTO about VALUES ('rules', ?)", (number + 1,))

    def _rules(self) -> tuple[bytes | None, int, bytes]:
        """Return the rules recorded last, how often rules were recorded, and the hash of the last time."""
        current: bytes | None = None
        count, previous = 0, genesis(0)
        rows: list[tuple[int, object, object, bytes]] = self._connection.execute(
            "SELECT number, next_offset, value, hash FROM rules ORDER BY number"
        ).fetchall()
        for number, end, value, digest in rows:
            if not (
                number == count
                and isinstance(end, int)
                and isinstance(value, bytes)
                and digest == self._rules_hash(previous, number, end, value)
            ):
                raise Halted("damaged", f"The rules in {self.path.name} were altered, or belong to another log. {CURE}")
            current, count, previous = value, count + 1, digest
        recorded: tuple[int] | None = self._connection.execute(
            "SELECT value FROM about WHERE name = 'rules'"
        ).fetchone()
        if recorded is not None and recorded[0] != count:
            raise Halted("damaged", f"The rules in {self.path.name} are missing. {CURE}")
        return current, count, previous

    def _rules_hash(self, previous: bytes, number: int, next_offset: int, value: bytes) -> bytes:
        return rules_hash(previous, self._chain.hash_before(0, next_offset), number, next_offset, value)

    def mark(self, offset: int | None = None) -> str:
        """Return the offset after the record, with the beginning of its hash. Cost: one look-up."""
        end, digest = self._tips[0].end, self._tips[0].hash
        if offset is not None and offset + 1 != end:
            end, digest = offset + 1, self._chain.hash_before(0, offset + 1)
        return f"{end}-{digest[:MARK_BYTES].hex()}"

    def has_mark(self, mark: str) -> bool:
        """Return whether the record before the offset in the mark has this hash. Cost: one look-up."""
        offset, _, digest = mark.partition("-")
        if not (offset.isascii() and offset.isdecimal() and len(offset) < MARK_DIGITS):
            return False
        if not self._chain.first(0) <= int(offset) <= self._tips[0].end:
            return False
        return self._chain.hash_before(0, int(offset))[:MARK_BYTES].hex() == digest

    @property
    def clock_lead(self) -> int:
        """How far the last append time is ahead of the clock, in microseconds. Far ahead: the clock had leapt."""
        return max(0, max(tip.append_time for tip in self._tips) - self._clock.now())

    def verify(self) -> tuple[int, ...]:
        """Verify every record of every partition, and return where each ends. Raises `Halted` at the first fault."""
        self.rules()
        for partition, tip in enumerate(self._tips):
            for _ in self._chain.records(partition, 0, tip.end):
                pass
        return tuple(tip.end for tip in self._tips)

    def close(self) -> None:
        """Close the file and release its lock. Further calls do nothing."""
        try:
            self._checkpoints.close()
            with translate_errors(self.path, CURE):
                self._connection.close()
        finally:
            self._lock.release()
