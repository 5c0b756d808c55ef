"""The keys of a state that cannot list its own keys, in an SQLite file beside the text index.

Promise: every key that was added is listed in byte order, and the input positions that were indexed by then are
remembered with it. After a crash some prefix of the additions is there. Keys are never removed, so a listed key may no
longer have a value. A damaged file is deleted on opening: without positions, the index and this list are built again.
Each row has a checksum, which is verified on opening unless a seal has proved the file whole.
Cost: a few microseconds per key, one transaction per call. Opening after a crash takes a microsecond per key.
"""

import logging
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from stream_car.adapters.database import (
    add_checksum,
    connect,
    delete_database,
    fault_of,
    find_fault,
    open_read_only,
    seal_database,
    strip_checksum,
    transaction,
    translate_errors,
)
from stream_car.files.seals import Verdict, break_seal

CURE = "Delete the folder of the index; it is rebuilt from the log."

_POSITIONS_MAX = 1000  # remembered positions: after a crash the index may stand at an older one
_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (key BLOB PRIMARY KEY, checksum INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fed (total INTEGER PRIMARY KEY, parts BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS owner (name TEXT NOT NULL);
"""


_log = logging.getLogger(__name__)


def find_keys_fault(path: Path, verdict: Verdict) -> str:
    """Return what is wrong with the file, as `find_fault` does. Each row is looked at unless a seal proved it whole."""
    if (fault := find_fault(path, verdict)) or verdict == "intact" or not path.is_file():
        return fault
    try:
        with closing(open_read_only(path)) as connection:
            if not _has_checksums(connection):
                return ""
            keys: Iterable[tuple[bytes, int]] = connection.execute("SELECT key, checksum FROM keys")
            fed: Iterable[tuple[int, bytes]] = connection.execute("SELECT total, parts FROM fed")
            if all(zlib.crc32(key) == checksum for key, checksum in keys) and all(
                strip_checksum(b"%d" % total, parts) is not None for total, parts in fed
            ):
                return ""
    except (sqlite3.Error, TypeError) as error:
        return fault_of(path, error)
    return "has a row that was altered"


def _has_checksums(connection: sqlite3.Connection) -> bool:
    """Return whether a file has checksums, or is new. Those of earlier releases have none."""
    columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(keys)")]
    return columns != ["key"]


class SqliteKeys:
    """Implements `ports.KeyListing`. `owner` names what the keys belong to; keys of another owner are deleted."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        self._owner = owner
        self._is_closed = False
        if fault := find_keys_fault(path, break_seal(path)):
            _log.warning("The file %s %s. The text index is built again.", path.name, fault)
            delete_database(path)
        with translate_errors(path, CURE):
            self._connection = connect(path, synchronous="NORMAL")
            try:
                if not _has_checksums(self._connection):
                    self._add_checksums()
                self._connection.executescript(_SCHEMA)
                row: tuple[str] | None = self._connection.execute("SELECT name FROM owner").fetchone()
            except BaseException:
                self._connection.close()
                raise
        if row != (owner,):
            self.reset()

    def _add_checksums(self) -> None:
        """Turn the file of an earlier release into one with checksums."""
        self._connection.create_function("checksum_of", 1, zlib.crc32, deterministic=True)
        self._connection.create_function("with_checksum", 2, lambda total, parts: add_checksum(b"%d" % total, parts))
        with transaction(self._connection):
            self._connection.execute("ALTER TABLE keys ADD COLUMN checksum INTEGER")
            self._connection.execute("UPDATE keys SET checksum = checksum_of(key)")
            self._connection.execute("UPDATE fed SET parts = with_checksum(total, parts)")

    def reset(self) -> None:
        """Delete all keys and positions."""
        with translate_errors(self._path, CURE), transaction(self._connection):
            for table in ("keys", "fed", "owner"):
                self._connection.execute(f"DELETE FROM {table}")
            self._connection.execute("INSERT INTO owner VALUES (?)", (self._owner,))

    def add(self, keys: Iterable[bytes], positions: Sequence[int]) -> None:
        """Add keys. `positions` is the number of indexed records of each partition."""
        rows = sorted((key, zlib.crc32(key)) for key in keys)
        total = sum(positions)
        with translate_errors(self._path, CURE), transaction(self._connection):
            self._connection.executemany("INSERT OR IGNORE INTO keys VALUES (?, ?)", rows)
            self._connection.execute(
                "INSERT OR REPLACE INTO fed VALUES (?, ?)",
                (total, add_checksum(b"%d" % total, msgspec.json.encode(positions))),
            )
            self._connection.execute(
                "DELETE FROM fed WHERE total <= (SELECT total FROM fed ORDER BY total DESC LIMIT 1 OFFSET ?)",
                (_POSITIONS_MAX,),
            )

    def positions_at(self, total: int) -> list[int] | None:
        """Return the remembered positions that add up to `total`, if any."""
        with translate_errors(self._path, CURE):
            row: tuple[bytes] | None = self._connection.execute(
                "SELECT parts FROM fed WHERE total = ?", (total,)
            ).fetchone()
        parts = strip_checksum(b"%d" % total, row[0]) if row is not None else None
        return msgspec.json.decode(parts, type=list[int]) if parts is not None else None

    async def keys(self, after: bytes, before: bytes, limit: int) -> Sequence[bytes]:
        with translate_errors(self._path, CURE):
            rows: list[tuple[bytes]] = self._connection.execute(
                "SELECT key FROM keys WHERE key > ? AND key < ? ORDER BY key LIMIT ?", (after, before, limit)
            ).fetchall()
        return [key for (key,) in rows]

    def close(self) -> None:
        """Close the file. Further calls do nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        with translate_errors(self._path, CURE):
            self._connection.close()
        seal_database(self._path)
