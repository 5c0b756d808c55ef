"""How the embedded adapters open, copy and check SQLite files, and what SQLite's errors mean.

Promise: only the owner of a file can read it. A transaction is kept whole or not at all. Every driver error becomes
`Halted` (`damaged`: the bytes of the file are wrong) or a `StreamCarError` that names the cure. A file that cannot be
read now is never called damaged.
"""

import os
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Literal

from stream_car.errors import Halted, StreamCarError, Unavailable
from stream_car.files.atomic import sync_folder
from stream_car.files.seals import Verdict, break_seal, seal, seal_path

_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_IN_USE = "is in use by another program. Close that program."
_ADVICE = {
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full. Free some space, then publish again whatever has no "
    "receipt; what was stored already is recognized.",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk failed. See the system log, then restart.",
    sqlite3.SQLITE_READONLY: "cannot be written. Check its permissions.",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened. Check that its folder exists and is writable, and that the process may "
    "open more files.",
    sqlite3.SQLITE_BUSY: _IN_USE,
    sqlite3.SQLITE_LOCKED: _IN_USE,
}
PAGE_BYTES = 8192
SMALL_PAGE_BYTES = 4096  # where small rows are written all over the file, since each of them writes a page
_CACHE_KIB = 4 << 10  # of pages, for each file
_LOG_PAGES = 8000  # of a write-ahead log, before a commit itself makes a checkpoint
_LOG_KEPT = 4 << 20  # bytes that the file of a write-ahead log keeps after a checkpoint
MAPPED_MAX = 2 << 30  # bytes of a file that are mapped; SQLite reads what lies beyond as usual


@contextmanager
def translate_errors(path: Path, cure: str) -> Iterator[None]:
    """Raise SQLite's errors as ours. `cure` is a sentence that says what to do about a damaged file."""
    try:
        yield
    except sqlite3.Error as error:
        code = _code_of(error)
        if code in _DAMAGE or (code is None and isinstance(error, sqlite3.OperationalError)):
            raise Halted("damaged", f"The file {path.name} is damaged ({error}). {cure}") from error
        raise StreamCarError(_problem(path, error)) from error


def _code_of(error: Exception) -> int | None:
    """Return SQLite's code of an error. Python's own errors have none: text that is not UTF-8."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _problem(path: Path, error: Exception) -> str:
    advice = _ADVICE.get(_code_of(error) or 0, f"cannot be used: {str(error).rstrip('.')}.")
    return f"The file {path.name} {advice}"


def connect(
    path: Path, *, synchronous: Literal["FULL", "NORMAL"], mapped: bool = False, page_bytes: int = PAGE_BYTES
) -> sqlite3.Connection:
    """Open a file of mode 0600 in write-ahead mode, without implicit transactions.

    Use `mapped` for files whose rows are read one by one, all over the file: their pages are then not copied, and
    SQLite does not check whole pages, so each row must carry a checksum (`add_checksum`).
    """
    if not path.exists():
        with suppress(OSError):  # SQLite's own error says more
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            sync_folder(path.parent)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)
    try:
        connection.execute(f"PRAGMA page_size={page_bytes}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint={_LOG_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit={_LOG_KEPT}")
        connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        if mapped:
            connection.execute(f"PRAGMA mmap_size={MAPPED_MAX}")
        else:
            connection.execute("PRAGMA cell_size_check=ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def open_read_only(path: Path) -> sqlite3.Connection:
    """Open a file that others may be writing to, for reading."""
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, check_same_thread=False
    )


@contextmanager
def transaction(connection: sqlite3.Connection, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[None]:
    """Commit everything that is executed within, or nothing of it if an exception is raised."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")
        raise


def sync_file(path: Path) -> None:
    """Flush the content of a file to disk, so that it survives a power cut."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_log(path: Path) -> None:
    """Flush the write-ahead log of a database, so that its commits survive a power cut whatever `synchronous` is."""
    with suppress(FileNotFoundError):
        sync_file(path.with_name(path.name + "-wal"))


def copy_database(source: Path, target: Path, cure: str = "Restore it from a backup.") -> None:
    """Copy a database as of one moment while others write to it. The copy is durable when this returns."""
    with translate_errors(source, cure), closing(open_read_only(source)) as reading:
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(target)) as writing:
            reading.backup(writing)  # all pages in one step, so the copy is of one moment however many write meanwhile
    sync_file(target)


def to_single_file(path: Path) -> None:
    """Turn off write-ahead mode, so that the database is a single file that opens on a read-only disk too."""
    with translate_errors(path, "Restore it from a backup."), closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    seal_path(path).unlink(missing_ok=True)
    sync_file(path)


def delete_database(path: Path) -> None:
    """Delete a database and the files that are kept beside it."""
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    seal_path(path).unlink(missing_ok=True)


def require_unchanged(path: Path, cure: str) -> None:
    """Check a database of derived data before it is opened.

    Cost: about a second per gigabyte if it was closed in order, three if not.

    Raises:
        Halted: it has changed since it was closed, or SQLite finds a fault in it (`damaged`).
        Unavailable: it cannot be read now.
    """
    if fault := find_fault(path, break_seal(path)):
        raise Halted("damaged", f"The file {path.name} {fault}. {cure}")


def find_fault(path: Path, verdict: Verdict) -> str:
    """Return what is wrong with a database, given what its seal says, or an empty string.

    Raises:
        Unavailable: it cannot be read now, so nothing is known of it.
    """
    if verdict == "changed":
        return "has changed since it was closed"
    if verdict == "intact" or not path.is_file():
        return ""
    try:
        with closing(open_read_only(path)) as connection:
            faults: tuple[str] = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except (sqlite3.Error, UnicodeDecodeError) as error:  # a fault may quote a name that is damaged too
        return fault_of(path, error)
    return f"is damaged ({faults[0]})" if faults[0] != "ok" else ""


def fault_of(path: Path, error: Exception) -> str:
    """Return what an error says about a database, which a check got when it read it.

    A check makes no mistake in a statement (`SQLITE_ERROR`): the file has another format, or a table is missing.

    Raises:
        Unavailable: the error says nothing about the file: it is locked, or the system or the disk failed.
    """
    if _code_of(error) in (None, sqlite3.SQLITE_ERROR, *_DAMAGE):
        return f"is damaged ({error})"
    raise Unavailable(_problem(path, error)) from error


def seal_database(path: Path) -> None:
    """Seal a database that was just closed, unless another program still has it open."""
    with suppress(OSError):
        if not path.with_name(path.name + "-wal").exists():
            seal(path)


def add_checksum(name: bytes, value: bytes) -> bytes:
    """Put a checksum over a value and its name in front of the value, so that a flipped bit or swapped row shows."""
    return zlib.crc32(value, zlib.crc32(name)).to_bytes(4, "big") + value


def strip_checksum(name: bytes, stored: bytes) -> bytes | None:
    """Return the value that `add_checksum` was given under this name; `None` if the stored bytes have changed."""
    value = stored[4:]
    return value if stored[:4] == zlib.crc32(value, zlib.crc32(name)).to_bytes(4, "big") else None
