"""Background checkpoints: a thread copies committed pages from a database's write-ahead log into its file.

Promise: a commit does not wait for a checkpoint while the thread keeps up. If the thread falls behind, SQLite itself
makes a checkpoint during a commit, once the log reaches the limit that `connect` sets. Correctness does not depend on
this module: a checkpoint may fail or be left out.
"""

import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

EVERY = 3000  # pages committed between two checkpoints


class Checkpoints:
    """Checkpoints of one file. Use it from one thread at a time."""

    def __init__(self, path: Path, every: int | None = None) -> None:
        """Make no checkpoint yet. `every` is the number of pages between two checkpoints, `EVERY` if it is omitted."""
        self._path = path
        self._every = every if every is not None else EVERY
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._running: Future[None] | None = None
        self._pages = 0  # committed since the last checkpoint began

    def count(self, pages: int) -> None:
        """Count committed pages, as many as rows that lie apart, and start a checkpoint if it is time for one."""
        self._pages += pages
        if self._pages >= self._every and (self._running is None or self._running.done()):
            self._pages = 0
            self._running = self._thread.submit(checkpoint, self._path)

    def close(self) -> None:
        """Wait for the checkpoint that is running."""
        self._thread.shutdown()


def checkpoint(path: Path) -> None:
    """Copy what has been committed so far into the file, while others read and write it."""
    uri = f"{path.resolve().as_uri()}?mode=rw"  # do not create a file that was deleted
    with suppress(sqlite3.Error), closing(sqlite3.connect(uri, uri=True)) as connection:
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
