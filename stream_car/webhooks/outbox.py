"""Messages that wait to be delivered, in a SQLite file, with the cursor of the events that they were made of.

Promise: a message is in the file as soon as the cursor is past its event, and leaves it when it was delivered or is
dead. Of each record only the oldest message is due, so messages about one record are delivered in order; a dead one no
longer holds up the others.
Cost: one transaction per event, and one per try. None reads the messages that wait behind others.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from msgspec import Struct

from stream_car.adapters.sqlite.event_state import EventState
from stream_car.subscriptions.events import Event

COUNTED_MAX = 100_000  # messages that wait; more are not counted
SET_ASIDE = ".damaged"  # after the name of a file that was damaged
_SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, record TEXT NOT NULL, body BLOB NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL DEFAULT 0, is_dead INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT ''
)"""
_ADDED = {"is_head": "INTEGER NOT NULL DEFAULT 0", "added": "REAL NOT NULL DEFAULT 0"}  # columns of later releases
_INDEXES = (
    "CREATE INDEX IF NOT EXISTS messages_of_record ON messages (is_dead, record, number)",
    "CREATE INDEX IF NOT EXISTS heads ON messages (due, number) WHERE is_head",
    "CREATE INDEX IF NOT EXISTS waiting ON messages (added) WHERE is_dead = 0",
)
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
        try:
            self._begin()
        except BaseException:
            self._file.close()
            raise

    def _begin(self) -> None:
        """Make the tables. The file of an earlier release gets what it lacks in one transaction."""
        with self._transaction():
            self._execute(_SCHEMA)
            with self._file.errors():
                known = {row[1] for row in self._file.connection.execute("PRAGMA table_info(messages)")}
            for name in _ADDED.keys() - known:
                self._execute(f"ALTER TABLE messages ADD COLUMN {name} {_ADDED[name]}")
            for index in _INDEXES:
                self._execute(index)
            if "is_head" not in known:
                self._find_heads()
            if "added" not in known:  # since when they wait is not known
                self._execute("UPDATE messages SET added = ?", time.time())

    @property
    def cursor(self) -> str | None:
        """The cursor to continue from."""
        return self._file.cursor

    def begin_at(self, cursor: str) -> None:
        """Begin with the events after this cursor."""
        self._file.write_cursor(cursor)

    def add(self, event: Event, *, message_id: str, record: str, body: bytes) -> None:
        """Keep the message of an event, and the event's cursor with it."""
        with self._transaction():
            self._execute(
                "INSERT INTO messages (id, record, body, added, is_head) VALUES (?1, ?2, ?3, ?4, "
                "NOT EXISTS (SELECT 1 FROM messages WHERE is_dead = 0 AND record = ?2))",
                message_id,
                record,
                body,
                time.time(),
            )
            self.skip(event)

    def skip(self, event: Event) -> None:
        """Keep the cursor of an event that needs no message."""
        if event.cursor is not None:
            self._file.write_cursor(event.cursor)

    def heads(self, limit: int) -> Sequence[OutgoingMessage]:
        """The oldest message of each record, the one that is due first first."""
        return self._select("WHERE is_head ORDER BY due, number LIMIT ?", limit)

    def dead(self) -> Sequence[OutgoingMessage]:
        """The messages that were given up, the oldest first."""
        return self._select("WHERE is_dead = 1 ORDER BY number LIMIT ?", -1)

    def waiting(self) -> int:
        """How many messages wait, at most `COUNTED_MAX`."""
        return int(self._number(f"SELECT count(*) FROM (SELECT 1 FROM messages WHERE is_dead = 0 LIMIT {COUNTED_MAX})"))

    def dead_count(self) -> int:
        """How many messages were given up, at most `COUNTED_MAX`."""
        return int(self._number(f"SELECT count(*) FROM (SELECT 1 FROM messages WHERE is_dead = 1 LIMIT {COUNTED_MAX})"))

    def age_s(self) -> float:
        """For how many seconds the oldest message has waited; 0 if none waits."""
        oldest = self._number("SELECT coalesce(min(added), 0) FROM messages WHERE is_dead = 0")
        return max(0.0, time.time() - oldest) if oldest else 0.0

    def delivered(self, message: OutgoingMessage) -> None:
        """Remove a message that has arrived."""
        with self._transaction():
            self._execute("DELETE FROM messages WHERE number = ?", message.number)
            self._find_head(message.record)

    def failed(self, message: OutgoingMessage, error: str, due: float | None) -> None:
        """Try a message again when it is due; without a time, give it up."""
        with self._transaction():
            self._execute(
                "UPDATE messages SET tries = tries + 1, error = ?, due = ?, is_dead = ?, is_head = 0 WHERE number = ?",
                error,
                due or 0.0,
                due is None,
                message.number,
            )
            self._find_head(message.record)

    def revive(self) -> int:
        """Try all dead messages again, in their order, and return how many there are."""
        with self._transaction():
            count = int(self._number("SELECT count(*) FROM messages WHERE is_dead = 1"))
            self._execute("UPDATE messages SET is_dead = 0, tries = 0, due = 0 WHERE is_dead = 1")
            self._find_heads()
        return count

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _find_head(self, record: str) -> None:
        self._execute(
            "UPDATE messages SET is_head = 1 "
            "WHERE number = (SELECT min(number) FROM messages WHERE is_dead = 0 AND record = ?)",
            record,
        )

    def _find_heads(self) -> None:
        self._execute("UPDATE messages SET is_head = 0 WHERE is_head")
        self._execute(
            "UPDATE messages SET is_head = 1 "
            "WHERE number IN (SELECT min(number) FROM messages WHERE is_dead = 0 GROUP BY record)"
        )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._file.begin()
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            self._file.roll_back()
            raise

    def _select(self, condition: str, *values: object) -> list[OutgoingMessage]:
        with self._file.errors():
            rows = self._file.connection.execute(f"SELECT {_COLUMNS} FROM messages {condition}", values)
            return [OutgoingMessage(*row) for row in rows]

    def _number(self, query: str) -> float:
        with self._file.errors():
            [number] = self._file.connection.execute(query).fetchone()
        return float(number)

    def _execute(self, statement: str, *values: object) -> None:
        with self._file.errors():
            self._file.connection.execute(statement, values)


def set_aside(path: Path) -> Path:
    """Rename a damaged file, so that another one can be begun, and return its new name."""
    ends = (f"{SET_ASIDE}-{number}" for number in count(1))
    new = next(aside for end in ends if not (aside := path.with_name(path.name + end)).exists())
    rename_outbox(path, new)
    return new


def rename_outbox(path: Path, new: Path) -> None:
    """Rename a file that is not open, with those beside it."""
    for part in ("-wal", "-shm", ""):  # the file itself last: a crash before it repeats this
        with suppress(FileNotFoundError):
            path.with_name(path.name + part).rename(new.with_name(new.name + part))
