"""What the embedded adapters share about SQLite: how a file is opened, and what its errors mean.

Promise: files are readable by their owner only; one transaction is one unit; every driver error
becomes `Halted` (`damaged`: the file's bytes are wrong) or a `StreamCarError` that says what to do.
"""

import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal

from stream_car.errors import Halted, StreamCarError

_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full; free some space and try again, nothing of this batch was kept",
    sqlite3.SQLITE_IOERR: "the disk failed; see the system log, then restart",
    sqlite3.SQLITE_READONLY: "it cannot be written; check its permissions",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that the folder exists and may be written",
    sqlite3.SQLITE_BUSY: "another program is using it; close that program",
    sqlite3.SQLITE_LOCKED: "another program is using it; close that program",
}


_CACHED_KIB = 16 << 10  # of pages, for each file
_LOG_PAGES = 8000  # of a write-ahead log, before a commit itself brings it into the file
_MAPPED_MAX = 2 << 30  # bytes of a file; what lies beyond is read as usual


@contextmanager
def translated(path: Path, cure: str) -> Iterator[None]:
    """Turns driver errors into ours. `cure` says what to do about a damaged file."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGE:
            raise Halted("damaged", f"{path.name} is damaged ({error}); {cure}") from error
        raise StreamCarError(f"{path.name}: {_ADVICE.get(code, error)}") from error


def connect(path: Path, *, synchronous: Literal["FULL", "NORMAL"], mapped: bool = False) -> sqlite3.Connection:
    """A connection in write-ahead mode and without implicit transactions, to a file of mode 0600.

    `mapped` is for files that are read here and there, row by row: their pages are not copied, and not
    tested as a whole, so their rows must be `guarded`.
    """
    if not path.exists():
        with suppress(OSError):  # SQLite's own error says more
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            sync_folder(path.parent)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        connection.execute("PRAGMA page_size=8192")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        connection.execute(f"PRAGMA cache_size=-{_CACHED_KIB}")
        if mapped:
            connection.execute(f"PRAGMA mmap_size={_MAPPED_MAX}")
        else:
            connection.execute("PRAGMA cell_size_check=ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def sync_folder(folder: Path) -> None:
    """A new file's name survives a power cut only once its folder is on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """What the file holds survives a power cut."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_log(path: Path) -> None:
    """What was committed to a database in write-ahead mode survives a power cut, `synchronous` or not."""
    with suppress(FileNotFoundError):
        sync_file(path.with_name(path.name + "-wal"))


def snapshot(source: Path, target: Path, cure: str = "restore it from a backup") -> None:
    """A database as of one moment, copied while others write to it; durable when it returns."""
    with translated(source, cure), closing(reading_only(source)) as reading:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(target)) as writing:
            reading.backup(writing)  # all pages in one step: one moment, however many write meanwhile
    sync_file(target)


def reading_only(path: Path) -> sqlite3.Connection:
    """A connection to a file that others may be writing to."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def settle(path: Path) -> None:
    """One file and nothing beside it, so that it can be read from a place that cannot be written."""
    with translated(path, "restore it from a backup"):
        connection = sqlite3.connect(path)
        try:
            connection.execute("PRAGMA journal_mode=DELETE")
        finally:
            connection.close()
    sync_file(path)


@contextmanager
def transaction(connection: sqlite3.Connection, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
    """All that happens within is kept, or on any exception nothing of it."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def remove(path: Path) -> None:
    """Delete a database and what belongs to it."""
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def guarded(name: bytes, value: bytes) -> bytes:
    """The value behind a checksum of it and its name, so that a flipped bit or a swapped row is seen."""
    return zlib.crc32(value, zlib.crc32(name)).to_bytes(4, "big") + value


def unguarded(name: bytes, kept: bytes) -> bytes | None:
    """What was guarded under this name; `None` if the bytes are no longer those."""
    value = kept[4:]
    return value if kept[:4] == zlib.crc32(value, zlib.crc32(name)).to_bytes(4, "big") else None
