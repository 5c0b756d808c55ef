"""A SQLite file that holds what a consumer makes of events, and the cursor after them, in one transaction.

Promise: whatever is written while an event is dealt with is committed together with its cursor, or not at all. A
snapshot is one transaction, so that nobody reads half of it. If the selection is another one than that of the cursor,
the cursor does not count, and everything begins with a snapshot.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from stream_car.adapters.database import connect, translate_errors
from stream_car.subscriptions.events import Event, Reset, SnapshotBegin, SnapshotEnd

CURE = "Remove it to begin with a snapshot of now."
_SCHEMA = "CREATE TABLE IF NOT EXISTS stream_car_cursor (one INTEGER PRIMARY KEY CHECK (one = 1), cursor, selection)"


class EventState:
    """An open file. `connection` is for the consumer's own tables; transactions are begun and ended here."""

    def __init__(self, path: Path, selection: object) -> None:
        self.path = path
        self._selection = msgspec.json.encode(selection, order="sorted").decode()
        self._is_in_snapshot = False
        with self.errors():
            self.connection = connect(path, synchronous="FULL")
            try:
                self.connection.execute(_SCHEMA)
            except BaseException:
                self.connection.close()
                raise

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise SQLite's errors as ours."""
        with translate_errors(self.path, CURE):
            yield

    @property
    def cursor(self) -> str | None:
        """The cursor to continue from; `None` to begin with a snapshot."""
        with self.errors():
            row = self.connection.execute("SELECT cursor, selection FROM stream_car_cursor").fetchone()
        return str(row[0]) if row is not None and row[1] == self._selection else None

    def begin(self) -> None:
        """Begin to deal with an event, in the transaction of its snapshot if it is part of one."""
        if not self.connection.in_transaction:
            with self.errors():
                self.connection.execute("BEGIN IMMEDIATE")

    def settle(self, event: Event) -> None:
        """The event has been dealt with: commit what was written and its cursor."""
        if isinstance(event, Reset | SnapshotBegin):
            self._is_in_snapshot = True
        elif isinstance(event, SnapshotEnd):
            self._is_in_snapshot = False
        if self._is_in_snapshot:
            return
        with self.errors():
            if event.cursor is not None:
                self.write_cursor(event.cursor)
            self.connection.execute("COMMIT")

    def write_cursor(self, cursor: str) -> None:
        """Keep a cursor, in the transaction that is open or at once."""
        with self.errors():
            self.connection.execute("REPLACE INTO stream_car_cursor VALUES (1, ?, ?)", (cursor, self._selection))

    def roll_back(self) -> None:
        """Forget what was written since the last commit: its events come again."""
        self._is_in_snapshot = False
        if self.connection.in_transaction:
            with self.errors():
                self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the file. What is not committed is lost."""
        self.roll_back()
        self.connection.close()
