"""The keys of a state that cannot list its own keys, in an SQLite file beside the text index.

Promise: every key that was added is listed in byte order, and the input positions that were indexed by then are
remembered with it. After a crash some prefix of the additions is there. Keys are never removed, so a listed key may no
longer have a value. Cost: a few microseconds per key, one transaction per call.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from stream_car.adapters.database import connect, transaction, translate_errors

CURE = "Delete the folder of the index; it is rebuilt from the log."

_POSITIONS_MAX = 1000  # remembered positions: after a crash the index may stand at an older one
_SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (key BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS fed (total INTEGER PRIMARY KEY, parts BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS owner (name TEXT NOT NULL);
"""


class SqliteKeys:
    """Implements `ports.KeyListing`. `owner` names what the keys belong to; keys of another owner are deleted."""

    def __init__(self, path: Path, owner: str) -> None:
        self._path = path
        self._owner = owner
        with translate_errors(path, CURE):
            self._connection = connect(path, synchronous="NORMAL")
            try:
                self._connection.executescript(_SCHEMA)
                row: tuple[str] | None = self._connection.execute("SELECT name FROM owner").fetchone()
            except BaseException:
                self._connection.close()
                raise
        if row != (owner,):
            self.reset()

    def reset(self) -> None:
        """Delete all keys and positions."""
        with translate_errors(self._path, CURE), transaction(self._connection):
            for table in ("keys", "fed", "owner"):
                self._connection.execute(f"DELETE FROM {table}")
            self._connection.execute("INSERT INTO owner VALUES (?)", (self._owner,))

    def add(self, keys: Iterable[bytes], positions: Sequence[int]) -> None:
        """Add keys. `positions` is the number of indexed records of each partition."""
        rows = sorted((key,) for key in keys)
        with translate_errors(self._path, CURE), transaction(self._connection):
            self._connection.executemany("INSERT OR IGNORE INTO keys VALUES (?)", rows)
            self._connection.execute(
                "INSERT OR REPLACE INTO fed VALUES (?, ?)", (sum(positions), msgspec.json.encode(positions))
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
        return msgspec.json.decode(row[0], type=list[int]) if row is not None else None

    async def keys(self, after: bytes, before: bytes, limit: int) -> Sequence[bytes]:
        with translate_errors(self._path, CURE):
            rows: list[tuple[bytes]] = self._connection.execute(
                "SELECT key FROM keys WHERE key > ? AND key < ? ORDER BY key LIMIT ?", (after, before, limit)
            ).fetchall()
        return [key for (key,) in rows]

    def close(self) -> None:
        """Close the file. Further calls do nothing."""
        with translate_errors(self._path, CURE):
            self._connection.close()
