"""Names of scopes by their parts, in an SQLite file beside the text index.

Promise: every scope that was added is found. A scope stays listed when all of its documents are gone, so a caller must
expect empty scopes. Repeated additions change nothing. An addition is found before it is flushed, and lost in a crash
until then: the index flushes it before it moves its own position. Each flush stores that position, so that a lost
write-ahead log shows; each row has a checksum, which is verified on opening unless a seal has proved the file whole.
Cost: nothing for a scope that was added recently, a few microseconds per part for a new one. Opening after a crash
takes a microsecond or two per row.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path

from stream_car.adapters.checkpoints import checkpoint
from stream_car.adapters.database import (
    SMALL_PAGE_BYTES,
    connect,
    fault_of,
    find_fault,
    open_read_only,
    seal_database,
    sync_log,
    translate_errors,
)
from stream_car.core.scope_names import ALIAS, part_name, scope_parts
from stream_car.errors import Halted, StreamCarError
from stream_car.files.seals import Verdict, break_seal

CURE = "Delete the folder of the index; it is rebuilt from the log."

_SEEN_MAX = 1 << 16
_COUNTED_MAX = 1000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS parts (
    part TEXT, scope TEXT, checksum INTEGER NOT NULL, PRIMARY KEY (part, scope)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS flushed (one INTEGER PRIMARY KEY CHECK (one = 1), position INTEGER NOT NULL);
"""


def find_names_fault(path: Path, verdict: Verdict) -> str:
    """Return what is wrong with the file, as `find_fault` does. Each row is looked at unless a seal proved it whole."""
    if (fault := find_fault(path, verdict)) or verdict == "intact" or not path.is_file():
        return fault
    try:
        with closing(open_read_only(path)) as connection:
            rows: Iterable[tuple[str, str, int]] = connection.execute("SELECT part, scope, checksum FROM parts")
            if all(_checksum(part, scope) == checksum for part, scope, checksum in rows):
                return ""
    except (sqlite3.Error, TypeError, AttributeError) as error:
        return fault_of(path, error)
    return "has a name that was altered"


def _checksum(part: str, scope: str) -> int:
    return zlib.crc32(scope.encode(), zlib.crc32(part.encode()))


class ScopeNames:
    """`part -> scopes` on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: set[str | tuple[str, str]] = set()
        if fault := find_names_fault(path, break_seal(path)):
            raise Halted("damaged", f"The file {path.name} {fault}. {CURE}")
        with translate_errors(path, CURE):
            self._connection = connect(path, synchronous="NORMAL", page_bytes=SMALL_PAGE_BYTES)
            try:
                self._connection.executescript(_SCHEMA)
                row: tuple[int] | None = self._connection.execute("SELECT position FROM flushed").fetchone()
            except BaseException:
                self._connection.close()
                raise
        self.position = row[0] if row is not None else 0

    def add(self, scopes: Iterable[str]) -> None:
        """Add scopes. The next `flush` commits them."""
        new = set(scopes) - self._seen
        if new:
            self._insert(sorted((part_name(key, value), scope) for scope in new for key, value in scope_parts(scope)))
            self._remember(new)

    def add_aliases(self, aliases: Iterable[tuple[str, str]]) -> None:
        """Add scopes under an alias, as (alias, scope). The next `flush` commits them."""
        new = {(part_name(ALIAS, alias), scope) for alias, scope in aliases} - self._seen
        if new:
            self._insert(sorted(new))
            self._remember(new)

    def _insert(self, rows: Sequence[tuple[str, str]]) -> None:
        with translate_errors(self._path, CURE):
            if not self._connection.in_transaction:
                self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                "INSERT OR IGNORE INTO parts VALUES (?, ?, ?)", [(*row, _checksum(*row)) for row in rows]
            )

    def _remember(self, new: set[str] | set[tuple[str, str]]) -> None:
        if len(self._seen) + len(new) > _SEEN_MAX:
            self._seen.clear()
        self._seen |= new

    def find(self, parts: Sequence[tuple[str, str]], limit: int, start: str = "") -> tuple[str, ...]:
        """Return names of scopes that have all these parts, in order of name from `start` on; without parts, all."""
        names = [part_name(key, value) for key, value in parts]
        if len(names) > 1:
            names = sorted(set(names), key=lambda name: (self._count(name), name))
        joins = "".join(f" CROSS JOIN parts AS p{n} ON p{n}.part = ? AND p{n}.scope = p0.scope"
                        for n in range(1, len(names)))  # fmt: skip
        condition = "p0.part = ? AND" if names else ""
        distinct = "DISTINCT" if not names else ""  # a pair of a part and a scope is one row
        with translate_errors(self._path, CURE):
            rows: list[tuple[str]] = self._connection.execute(
                f"SELECT {distinct} p0.scope FROM parts AS p0{joins} WHERE {condition} p0.scope >= ? "
                "ORDER BY p0.scope LIMIT ?",
                (*names[1:], *names[:1], start, limit),
            ).fetchall()
        return tuple(scope for (scope,) in rows)

    def known(self, parts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return those of these parts that a scope has."""
        names = {part_name(key, value): (key, value) for key, value in parts}
        with translate_errors(self._path, CURE):
            rows: list[tuple[str]] = self._connection.execute(
                "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM parts WHERE part = value)",
                (json.dumps(list(names)),),
            ).fetchall()
        return [names[name] for (name,) in rows]

    def _count(self, name: str) -> int:
        with translate_errors(self._path, CURE):
            row: tuple[int] = self._connection.execute(
                "SELECT COUNT(*) FROM (SELECT 1 FROM parts WHERE part = ? LIMIT ?)", (name, _COUNTED_MAX)
            ).fetchone()
        return row[0]

    def flush(self, position: int) -> None:
        """Commit the additions of the records before a position. They survive a power cut after the next `sync`."""
        with translate_errors(self._path, CURE):
            try:
                if not self._connection.in_transaction:
                    self._connection.execute("BEGIN IMMEDIATE")
                self._connection.execute("INSERT OR REPLACE INTO flushed VALUES (1, ?)", (position,))
                self._connection.execute("COMMIT")
            except BaseException:
                self._seen.clear()
                raise
        self.position = position

    def sync(self) -> None:
        """Make the flushed additions durable. Another thread may call this."""
        sync_log(self._path)

    def checkpoint(self) -> None:
        """Copy the flushed additions from the write-ahead log into the file. Another thread may call this."""
        checkpoint(self._path)

    def close(self) -> None:
        """Flush if the disk allows it, and close the file."""
        with suppress(StreamCarError):
            self.flush(self.position)
        with translate_errors(self._path, CURE):
            self._connection.close()
        seal_database(self._path)
