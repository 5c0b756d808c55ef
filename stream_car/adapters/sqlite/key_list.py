"""The keys of a state that cannot list its own, in an SQLite file beside the text index.

Promise: every key that was added is listed, in order of its bytes, together with how far each partition of
the input had been fed by then; a crash keeps some beginning of what was added. Keys are never removed: what
they name may have gone since. Cost: a few microseconds a key, one transaction a call.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from stream_car.files.database import connect, transaction, translated

CURE = "remove the folder of the index, it is built anew"

_KEPT = 1000  # positions that are remembered: the index may have kept an older one
_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (key BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fed (total INTEGER PRIMARY KEY, parts BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS owner (name TEXT NOT NULL);
"""


class SqliteKeys:
    """Implements `ports.KeyListing`. `owner` names what the keys belong to; those of another are forgotten."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        self._owner = owner
        with translated(path, CURE):
            self._connection = connect(path, synchronous="NORMAL")
            try:
                self._connection.executescript(_SCHEMA)
                found: tuple[str] | None = self._connection.execute("SELECT name FROM owner").fetchone()
            except BaseException:
                self._connection.close()
                raise
        if found != (owner,):
            self.reset()

    def reset(self) -> None:
        """Forget all."""
        with translated(self._path, CURE), transaction(self._connection):
            for table in ("keys", "fed", "owner"):
                self._connection.execute(f"DELETE FROM {table}")
            self._connection.execute("INSERT INTO owner VALUES (?)", (self._owner,))

    def add(self, keys: Iterable[bytes], fed: Sequence[int]) -> None:
        """Make keys known, and how many records of each partition have given theirs."""
        rows = sorted((key,) for key in keys)
        with translated(self._path, CURE), transaction(self._connection):
            self._connection.executemany("INSERT OR IGNORE INTO keys VALUES (?)", rows)
            self._connection.execute("INSERT OR REPLACE INTO fed VALUES (?, ?)", (sum(fed), msgspec.json.encode(fed)))
            self._connection.execute(
                "DELETE FROM fed WHERE total <= (SELECT total FROM fed ORDER BY total DESC LIMIT 1 OFFSET ?)", (_KEPT,)
            )

    def fed(self, total: int) -> list[int] | None:
        """The positions that add up to this, if they were ever reached here."""
        with translated(self._path, CURE):
            row: tuple[bytes] | None = self._connection.execute(
                "SELECT parts FROM fed WHERE total = ?", (total,)
            ).fetchone()
        return msgspec.json.decode(row[0], type=list[int]) if row is not None else None

    async def keys(self, after: bytes, before: bytes, limit: int) -> Sequence[bytes]:
        """Keys with `after < key < before`, the first ones."""
        with translated(self._path, CURE):
            rows: list[tuple[bytes]] = self._connection.execute(
                "SELECT key FROM keys WHERE key > ? AND key < ? ORDER BY key LIMIT ?", (after, before, limit)
            ).fetchall()
        return [key for (key,) in rows]

    def close(self) -> None:
        """Let go of the file; again is harmless."""
        with translated(self._path, CURE):
            self._connection.close()
