"""What was committed to a database's write-ahead log is brought into its file by a thread.

Promise: whoever commits does not wait for it, while the thread keeps up; SQLite itself does it at a commit
once the log has `connect`'s limit. Nothing depends on it: it can fail, or be left out.
"""

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

EVERY = 3000  # rows committed between two checkpoints, each of them a page of the log if they lie apart


class Checkpoints:
    """Those of one file. Not to be used from several threads at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._running: Future[None] | None = None
        self._written = 0

    def wrote(self, rows: int) -> None:
        """So many rows were committed."""
        self._written += rows
        if self._written >= EVERY and (self._running is None or self._running.done()):
            self._written = 0
            self._running = self._thread.submit(checkpoint, self._path)

    def close(self) -> None:
        """Wait for the one that goes on."""
        self._thread.shutdown()


def checkpoint(path: Path) -> None:
    """Bring into the file what was committed so far, beside those who read and write it."""
    there = f"{path.resolve().as_uri()}?mode=rw"  # a file that is gone is not made anew
    with suppress(sqlite3.Error), closing(sqlite3.connect(there, uri=True)) as connection:
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
