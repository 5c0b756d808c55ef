"""The records of a document log in its SQLite file, each tied to the one before it by a hash.

Promise: a record that was altered, removed or swapped is detected when it or its successor is read. A reader needs no
lock; it sees what had been appended when each read began. Cost: a read hashes what it returns.
"""

import hashlib
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

import msgspec

from stream_car.adapters.database import translate_errors
from stream_car.errors import Halted
from stream_car.ports import Record

FORMAT = 1
CURE = "Restore the file from a backup, or move it away and publish again."
PARTITION_BITS = 40  # a row's number is partition << 40 | offset: appends go to the end of a tree

_SELECT = "SELECT at, append_time, key, value, headers, hash FROM records WHERE at BETWEEN ? AND ? ORDER BY at LIMIT ?"
_FIXED_FIELDS = struct.Struct(">qqqqq")

Row = tuple[int, int, bytes | None, bytes | None, bytes | None, bytes]
HEADERS = msgspec.msgpack.Decoder(tuple[tuple[str, bytes], ...])


class Chain:
    """Reads the records of a log over a connection to its file."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def first(self, partition: int) -> int:
        """Return the first offset that the partition still has."""
        with translate_errors(self._path, CURE):
            row: tuple[int | None] = self._connection.execute(
                "SELECT MIN(at) FROM records WHERE at BETWEEN ? AND ?", row_range(partition)
            ).fetchone()
        return 0 if row[0] is None else row[0] - (partition << PARTITION_BITS)

    def hash_before(self, partition: int, offset: int) -> bytes:
        """Return the hash of the record before this offset. Raises `Halted` if there is none."""
        if not offset:
            return genesis(partition)
        with translate_errors(self._path, CURE):
            row: tuple[bytes] | None = self._connection.execute(
                "SELECT hash FROM records WHERE at = ?", ((partition << PARTITION_BITS) + offset - 1,)
            ).fetchone()
        if row is None:
            raise self._missing(partition, offset - 1)
        return row[0]

    def records(self, partition: int, start: int, count: int) -> Iterator[Record]:
        """Read and verify `count` records from offset `start` on. The row before them is read too, for its hash.

        Raises `Halted` (`damaged`, `lost_history`).
        """
        base = partition << PARTITION_BITS
        offset, previous_hash = start, genesis(partition)
        with translate_errors(self._path, CURE):
            rows = self._connection.execute(_SELECT, (base + max(start - 1, 0), base + start + count - 1, count + 1))
            if start:
                before: Row | None = rows.fetchone()
                if before is None or before[0] != base + start - 1:
                    raise self._missing(partition, start - 1)
                previous_hash = before[5]
            row: Row
            for row in rows:
                if row[0] != base + offset:
                    raise self._missing(partition, offset)
                try:
                    previous_hash = next_hash(previous_hash, offset, *row[1:5])
                    headers = HEADERS.decode(row[4]) if row[4] is not None else ()
                except (TypeError, struct.error, msgspec.DecodeError) as error:
                    raise self._damaged(partition, offset, "was altered") from error
                if previous_hash != row[5]:
                    raise self._damaged(partition, offset, "was altered")
                yield Record(offset=offset, append_time=row[1], value=row[3], key=row[2], headers=headers)
                offset += 1
        if offset != start + count:
            raise self._missing(partition, offset)

    def _missing(self, partition: int, offset: int) -> Halted:
        first = self.first(partition)
        if offset < first:
            reason = f"The file {self._path.name} begins at record {first}; record {offset} is gone. {CURE}"
            return Halted("lost_history", reason)
        return self._damaged(partition, offset, "is missing")

    def _damaged(self, partition: int, offset: int, what: str) -> Halted:
        return Halted("damaged", f"Record {offset} of partition {partition} in {self._path.name} {what}. {CURE}")


def row_range(partition: int) -> tuple[int, int]:
    """Return the lowest and the highest row number that a partition can have."""
    return partition << PARTITION_BITS, ((partition + 1) << PARTITION_BITS) - 1


def genesis(partition: int) -> bytes:
    """Return the hash that the first record of a partition follows."""
    return hashlib.sha256(b"stream-car log %d partition %d" % (FORMAT, partition)).digest()


def next_hash(
    previous_hash: bytes, offset: int, append_time: int, key: bytes | None, value: bytes | None, headers: bytes | None
) -> bytes:
    """Return the next hash of the chain. Lengths come first (-1 for null), so that no two records hash alike."""
    parts = (key, value, headers)
    lengths = [-1 if part is None else len(part) for part in parts]
    digest = hashlib.sha256(previous_hash)
    digest.update(_FIXED_FIELDS.pack(offset, append_time, *lengths))
    digest.update(b"".join(part for part in parts if part is not None))
    return digest.digest()


def rules_hash(previous: bytes, record_hash: bytes, number: int, next_offset: int, value: bytes) -> bytes:
    """Return the hash of recorded rules. It follows that of the rules before them and that of the last record."""
    digest = hashlib.sha256(previous + record_hash)
    digest.update(_FIXED_FIELDS.pack(number, next_offset, len(value), 0, 0) + value)
    return digest.digest()
