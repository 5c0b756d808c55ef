"""How far feeds were read, in a file beside the log.

Promise: `put` stores all of its rows or none. If the file is damaged, or the log has lost its end since (a backup was
restored), all rows are deleted and feeds are read again. That costs time and changes nothing else, because the log
recognises what it has. Cost: one look-up per record.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from stream_car.adapters.database import (
    connect,
    delete_database,
    require_unchanged,
    seal_database,
    transaction,
    translate_errors,
)
from stream_car.errors import Halted

_log = logging.getLogger(__name__)

FILE = "feeds.sqlite"
CURE = "Delete it: feeds are then read from their beginning, and records that were read before change nothing."
CACHE_KIB = 4096  # bounds memory however long the feed is


class FeedPositionFile:
    """Bytes by feed and name. `end` is the number of records that the log has now."""

    def __init__(self, path: Path, *, end: int) -> None:
        self._path = path
        try:
            require_unchanged(path, CURE)
        except Halted as halted:
            _log.warning("%s That is done now.", halted)
            delete_database(path)
        with translate_errors(path, CURE):
            self._connection = connect(path, synchronous="NORMAL")
            try:
                self._prepare(end)
            except BaseException:
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
        if reached is not None and not isinstance(reached[0], int):
            raise self.damaged("How far the log had reached")
        if reached is not None and reached[0] > end:
            with transaction(self._connection):
                run("DELETE FROM kept")
                run("DELETE FROM log")

    def get(self, feed: str, name: str) -> bytes | None:
        """Return the bytes stored under a name, if any."""
        with translate_errors(self._path, CURE):
            row = self._connection.execute(
                "SELECT value FROM kept WHERE feed = ? AND name = ?", (feed, name)
            ).fetchone()
        return row[0] if row is not None else None

    def put(self, feed: str, rows: Iterable[tuple[str, bytes]], *, reached: int) -> None:
        """Store rows. `reached` is the length of the log that holds everything the rows count as read."""
        with translate_errors(self._path, CURE), transaction(self._connection):
            self._connection.executemany(
                "INSERT OR REPLACE INTO kept VALUES (?, ?, ?)", [(feed, name, value) for name, value in rows]
            )
            self._connection.execute("INSERT OR REPLACE INTO log VALUES (1, ?)", (reached,))

    def damaged(self, what: str) -> Halted:
        """Return the error for bytes that have changed since they were written. `what` names them."""
        return Halted("damaged", f"{what} in {self._path.name} is damaged. {CURE}")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
        seal_database(self._path)
