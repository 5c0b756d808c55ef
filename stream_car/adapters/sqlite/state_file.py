"""The SQLite file of derived state, shared by a store and a journal.

Promise: the file is derived from the log and may be lost. It is therefore not flushed at every commit, only protected
from being half-written. A file that has another format, or that has changed since it was closed, is deleted and
created again.
"""

import logging
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from stream_car.adapters.checkpoints import Checkpoints
from stream_car.adapters.database import (
    MAPPED_MAX,
    SMALL_PAGE_BYTES,
    connect,
    delete_database,
    fault_of,
    find_fault,
    open_read_only,
    seal_database,
    transaction,
    translate_errors,
)
from stream_car.errors import Halted
from stream_car.files.seals import Verdict, break_seal

_log = logging.getLogger(__name__)

FORMAT = 2  # 1 had every key twice, and columns that follow from the number of an event
CURE = "The file holds derived state only: delete it, and it is rebuilt from the log."
KEY_BUCKET_BITS = 16  # events of a bucket, by number, are found by key: a new event dirties pages of the last one only

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS entries (
    shard INTEGER, key BLOB, hash INTEGER NOT NULL, value BLOB NOT NULL, PRIMARY KEY (shard, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS shards (
    shard INTEGER PRIMARY KEY, owner TEXT NOT NULL, next_offset INTEGER NOT NULL, next_oseq INTEGER NOT NULL,
    trimmed INTEGER NOT NULL, guard BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS outbox (
    shard INTEGER, last_oseq INTEGER, events BLOB NOT NULL, PRIMARY KEY (shard, last_oseq)
);
CREATE TABLE IF NOT EXISTS changes (
    at INTEGER PRIMARY KEY, stream TEXT NOT NULL, hash INTEGER NOT NULL, key BLOB NOT NULL, value BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS forgotten (shard INTEGER PRIMARY KEY, upto INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS changes_by_key ON changes (at >> {KEY_BUCKET_BITS}, hash);
CREATE INDEX IF NOT EXISTS changes_by_stream ON changes (stream, at) WHERE stream <> '';
"""


def find_state_fault(path: Path, verdict: Verdict) -> str:
    """Return what is wrong with the file, as `find_fault` does. Each key is looked at unless a seal proved it whole.

    SQLite has no second copy of the keys, so it cannot tell that one was altered. Cost: half a microsecond per key.
    """
    if (fault := find_fault(path, verdict)) or verdict == "intact" or not path.is_file():
        return fault
    try:
        with closing(open_read_only(path)) as connection:
            rows: Iterable[tuple[bytes, int]] = connection.execute("SELECT key, hash FROM entries")
            if all(hash_of(key) == stored for key, stored in rows):
                return ""
    except (sqlite3.Error, TypeError, UnicodeDecodeError) as error:
        return fault_of(path, error)
    return "has a key that was altered"


def hash_of(key: bytes) -> int:
    """Return 31 bits that are stored beside a key, in four bytes."""
    return zlib.crc32(key) >> 1


class StateFile:
    """An open state file."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.connection = self._open()
        except Halted as halted:
            _log.warning("%s It is built again now.", halted)
            delete_database(self.path)
            self.connection = self._open()
        self.checkpoints = Checkpoints(self.path)
        self._snapshots: set[sqlite3.Connection] = set()
        self._is_closed = False

    def _open(self) -> sqlite3.Connection:
        if fault := find_state_fault(self.path, break_seal(self.path)):
            raise Halted("damaged", f"The file {self.path.name} {fault}. {CURE}")
        with self.translate_errors():
            connection = connect(self.path, synchronous="NORMAL", mapped=True, page_bytes=SMALL_PAGE_BYTES)
        try:
            with self.translate_errors():
                row: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
                if row[0] not in (0, FORMAT):  # 0: a new file
                    raise Halted("format", f"The file {self.path.name} has format {row[0]}, not {FORMAT}. {CURE}")
                connection.executescript(_SCHEMA)
                connection.execute(f"PRAGMA user_version={FORMAT}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise SQLite's errors as ours."""
        with translate_errors(self.path, CURE):
            yield

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit everything that is executed within, or nothing of it if an exception is raised."""
        with self.translate_errors(), transaction(self.connection):
            yield self.connection

    def open_snapshot(self) -> sqlite3.Connection:
        """Return a connection that sees the file as it is now, whatever is committed afterwards.

        Pass it to `close_snapshot`: until then, the write-ahead log keeps growing.
        """
        with self.translate_errors():
            connection = open_read_only(self.path)
            self._snapshots.add(connection)
            connection.execute(f"PRAGMA mmap_size={MAPPED_MAX}")
            connection.execute("BEGIN")
            connection.execute("SELECT 1 FROM shards LIMIT 1").fetchone()  # the transaction begins with its first read
        return connection

    def close_snapshot(self, connection: sqlite3.Connection) -> None:
        """Close a connection of `open_snapshot`; closing again is harmless."""
        self._snapshots.discard(connection)
        connection.close()

    def reset(self) -> None:
        """Delete all content, readable or not. Claims on the old state are lost."""
        self.close()
        delete_database(self.path)
        self.connection = self._open()
        self.checkpoints = Checkpoints(self.path)
        self._is_closed = False

    def damage_error(self, what: str) -> Halted:
        """Return the error for bytes that have changed since they were written. `what` names them."""
        return Halted("damaged", f"{what} in {self.path.name} is damaged. {CURE}")

    def close(self) -> None:
        """Close the file. Further calls do nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        while self._snapshots:
            self._snapshots.pop().close()
        self.checkpoints.close()
        with self.translate_errors():
            self.connection.close()
        seal_database(self.path)
