"""Messages that wait to be delivered, in a SQLite file, with the cursor of the events that they were made of.

Promise: a message is in the file as soon as the cursor is past its event, and leaves it when it was delivered or is
dead. Of each record only the oldest message is due, so messages about one record are delivered in order; a dead one no
longer holds up the others.
Cost: one transaction per event, and one per try.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from stream_car.adapters.sqlite.event_state import EventState
from stream_car.subscriptions.events import Event

_SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, record TEXT NOT NULL, body BLOB NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL DEFAULT 0, is_dead INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT ''
)"""
_INDEX = "CREATE INDEX IF NOT EXISTS messages_of_record ON messages (is_dead, record, number)"
_COLUMNS = "number, id, record, body, tries, due, error"


class OutgoingMessage(Struct, frozen=True):
    """A message. `due` is when it is tried next, in seconds since 1970; `error` says why the last try failed."""

    number: int
    id: str
    record: str
    body: bytes
    tries: int
    due: float
    error: str


class Outbox:
    """An open file."""

    def __init__(self, path: Path, selection: object = None) -> None:
        self._file = EventState(path, selection)
        with self._file.errors():
            self._file.connection.execute(_SCHEMA)
            self._file.connection.execute(_INDEX)

    @property
    def cursor(self) -> str | None:
        """The cursor to continue from."""
        return self._file.cursor

    def begin_at(self, cursor: str) -> None:
        """Begin with the events after this cursor."""
        self._file.write_cursor(cursor)

    def add(self, event: Event, *, message_id: str, record: str, body: bytes) -> None:
        """Keep the message of an event, and the event's cursor with it."""
        self._file.begin()
        with self._file.errors():
            self._file.connection.execute(
                "INSERT INTO messages (id, record, body) VALUES (?, ?, ?)", (message_id, record, body)
            )
        self._commit(event)

    def skip(self, event: Event) -> None:
        """Keep the cursor of an event that needs no message."""
        if event.cursor is not None:
            self._file.write_cursor(event.cursor)

    def _commit(self, event: Event) -> None:
        self.skip(event)
        with self._file.errors():
            self._file.connection.execute("COMMIT")

    def heads(self, limit: int) -> Sequence[OutgoingMessage]:
        """The oldest message of each record, the one that is due first first."""
        return self._select(
            "WHERE number IN (SELECT min(number) FROM messages WHERE NOT is_dead GROUP BY record) "
            "ORDER BY due, number LIMIT ?",
            limit,
        )

    def dead(self) -> Sequence[OutgoingMessage]:
        """The messages that were given up, the oldest first."""
        return self._select("WHERE is_dead ORDER BY number LIMIT ?", -1)

    def waiting(self) -> int:
        """How many messages wait."""
        return self._number("SELECT count(*) FROM messages WHERE NOT is_dead")

    def delivered(self, number: int) -> None:
        """Remove a message that has arrived."""
        self._execute("DELETE FROM messages WHERE number = ?", number)

    def failed(self, number: int, error: str, due: float | None) -> None:
        """Try a message again when it is due; without a time, give it up."""
        self._execute(
            "UPDATE messages SET tries = tries + 1, error = ?, due = ?, is_dead = ? WHERE number = ?",
            error,
            due or 0.0,
            due is None,
            number,
        )

    def revive(self) -> int:
        """Try all dead messages again, in their order, and return how many there are."""
        count = self._number("SELECT count(*) FROM messages WHERE is_dead")
        self._execute("UPDATE messages SET is_dead = 0, tries = 0, due = 0 WHERE is_dead")
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _select(self, condition: str, *values: object) -> list[OutgoingMessage]:
        with self._file.errors():
            rows = self._file.connection.execute(f"SELECT {_COLUMNS} FROM messages {condition}", values)
            return [OutgoingMessage(*row) for row in rows]

    def _number(self, query: str) -> int:
        with self._file.errors():
            [count] = self._file.connection.execute(query).fetchone()
        return int(count)

    def _execute(self, statement: str, *values: object) -> None:
        with self._file.errors():
            self._file.connection.execute(statement, values)
