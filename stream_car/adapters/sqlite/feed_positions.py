"""How far feeds were read, in a file beside the log.

Promise: `put` keeps all of its rows or none. Rows that were kept for a log which has since lost its end (a
backup that was put back) are forgotten, so that feeds are read again: that costs time and changes nothing,
for what the log still holds it knows. Cost: one look-up a record.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from stream_car.files.database import connect, transaction, translated

FILE = "feeds.sqlite"
CURE = "delete it: feeds are then read from their beginning, and what is known already changes nothing"
CACHE_KIB = 4096  # memory stays flat however long the feed is


class PositionFile:
    """Bytes by feed and name. `end` is how many records the log has now."""

    def __init__(self, path: Path, *, end: int) -> None:
        self._path = path
        with translated(path, CURE):
            self._connection = connect(path, synchronous="NORMAL")
            try:
                self._prepare(end)
            except sqlite3.Error:
                self._connection.close()
                raise

    def _prepare(self, end: int) -> None:
        run = self._connection.execute
        run(f"PRAGMA cache_size=-{CACHE_KIB}")
        run(
            "CREATE TABLE IF NOT EXISTS kept"
            " (feed TEXT, name TEXT, value BLOB NOT NULL, PRIMARY KEY (feed, name)) WITHOUT ROWID"
        )
        run("CREATE TABLE IF NOT EXISTS log (one INTEGER PRIMARY KEY CHECK (one = 1), reached INTEGER NOT NULL)")
        reached = run("SELECT reached FROM log").fetchone()
        if reached is not None and reached[0] > end:
            with transaction(self._connection):
                run("DELETE FROM kept")
                run("DELETE FROM log")

    def get(self, feed: str, name: str) -> bytes | None:
        """What was kept under a name."""
        with translated(self._path, CURE):
            row = self._connection.execute(
                "SELECT value FROM kept WHERE feed = ? AND name = ?", (feed, name)
            ).fetchone()
        return row[0] if row is not None else None

    def put(self, feed: str, rows: Iterable[tuple[str, bytes]], *, reached: int) -> None:
        """Keep these; `reached` is how many records the log has with all that they tell of."""
        with translated(self._path, CURE), transaction(self._connection):
            self._connection.executemany(
                "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", [(feed, name, value) for name, value in rows]
            )
            self._connection.execute("INSERT OR REPLACE INTO log VALUES (1, ?)", (reached,))

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()
