"""Derived state in an SQLite file of its own: a fenced map per shard, its outbox, and the journal of events.

Promise: a commit is one transaction. The file can be lost: it is rebuilt from the log, so it is not
flushed at every commit, only kept from being half-written, and a file that cannot be read is begun
anew. Every value carries a checksum that is tested when it is read: `Halted` (`damaged`) asks for
`reset`. Cost: a few microseconds a key. Its coroutines never suspend.
"""

import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import msgspec

from stream_car.errors import ClaimLost, Halted
from stream_car.files.checkpoints import Checkpoints
from stream_car.files.database import connect, guarded, remove, transaction, translated, unguarded
from stream_car.ports import Claim, Emission

FORMAT = 1
CURE = "it holds derived state only: reset it, and it is rebuilt from the log"

_CHUNK = 512  # keys a query
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (shard INTEGER, key BLOB, value BLOB NOT NULL, PRIMARY KEY (shard, key));
CREATE TABLE IF NOT EXISTS shards (
    shard INTEGER PRIMARY KEY, owner TEXT NOT NULL, next_offset INTEGER NOT NULL, next_oseq INTEGER NOT NULL,
    trimmed INTEGER NOT NULL, guard BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS outbox (
    shard INTEGER, last_oseq INTEGER, events BLOB NOT NULL, PRIMARY KEY (shard, last_oseq)
);
CREATE TABLE IF NOT EXISTS changes (
    at INTEGER PRIMARY KEY, shard INTEGER NOT NULL, oseq INTEGER NOT NULL, stream TEXT NOT NULL,
    key BLOB NOT NULL, value BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS forgotten (shard INTEGER PRIMARY KEY, upto INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS changes_by_stream ON changes (shard, stream, oseq);
CREATE INDEX IF NOT EXISTS changes_by_key ON changes (shard, stream, key, oseq);
"""

EventRow = tuple[int, str, bytes, bytes]
_events = msgspec.msgpack.Decoder(list[Emission])


class StateFile:
    """The file that a store and a journal share.

    A file that is unreadable at opening, or of another format, is begun anew: nothing in it is original.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        try:
            self.connection = self._open()
        except Halted:
            remove(self.path)
            self.connection = self._open()
        self.checkpoints = Checkpoints(self.path)

    def _open(self) -> sqlite3.Connection:
        with self.translated():
            connection = connect(self.path, synchronous="NORMAL", mapped=True)
        try:
            with self.translated():
                found: tuple[int] = connection.execute("PRAGMA user_version").fetchone()
                if found[0] not in (0, FORMAT):
                    raise Halted("format", f"{self.path.name} has format {found[0]}; {CURE}")
                connection.executescript(_SCHEMA)
                connection.execute(f"PRAGMA user_version={FORMAT}")
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Turns driver errors within into ours."""
        with translated(self.path, CURE):
            yield

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """What happens within is kept whole, or on any exception not at all."""
        with self.translated(), transaction(self.connection):
            yield self.connection

    def reset(self) -> None:
        """Forget everything, readable or not. Claims on the old state are lost."""
        self.close()
        remove(self.path)
        self.connection = self._open()
        self.checkpoints = Checkpoints(self.path)

    def damaged(self, what: str) -> Halted:
        """The error for bytes that are not those that were written."""
        return Halted("damaged", f"{what} in {self.path.name} is damaged; {CURE}")

    def close(self) -> None:
        """Let go of the file; again is harmless."""
        self.checkpoints.close()
        with self.translated():
            self.connection.close()


class SqliteStore:
    """Implements `ports.Store`."""

    def __init__(self, file: StateFile) -> None:
        self._file = file

    async def claim(self, shard: int) -> Claim:
        """Take the shard from whoever holds it; a shard never seen starts at offset 0, event 1."""
        owner = secrets.token_hex(16)
        with self._file.transaction() as connection:
            held = self._standing(connection, shard) or Claim(
                shard=shard, owner="", next_offset=0, next_oseq=1, trimmed=0
            )
            return self._keep(connection, held, owner, held.next_offset, held.next_oseq, held.trimmed)

    async def read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that have one, all as of the claim's offset."""
        with self._file.transaction() as connection:
            self._check(connection, claim)
            return self._values(connection, claim.shard, keys)

    async def commit(
        self, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: Sequence[Emission]
    ) -> Claim:
        """Write values (`None` deletes), events and the next offset at once; the claim to go on with."""
        shard, next_oseq = claim.shard, claim.next_oseq + len(outbox)
        if next_offset < claim.next_offset or [e.oseq for e in outbox] != list(range(claim.next_oseq, next_oseq)):
            raise ValueError("a commit goes forward, and numbers its events on from the claim's next_oseq")
        kept = [(shard, key, guarded(key, value)) for key, value in writes.items() if value is not None]
        gone = [(shard, key) for key, value in writes.items() if value is None]
        with self._file.transaction() as connection:
            self._check(connection, claim)
            connection.executemany("INSERT OR REPLACE INTO entries (shard, key, value) VALUES (?, ?, ?)", sorted(kept))
            connection.executemany("DELETE FROM entries WHERE shard = ? AND key = ?", gone)
            if outbox:
                events = guarded(b"outbox", msgspec.msgpack.encode(outbox))
                connection.execute("INSERT INTO outbox VALUES (?, ?, ?)", (shard, next_oseq - 1, events))
            kept_claim = self._keep(connection, claim, claim.owner, next_offset, next_oseq, claim.trimmed)
        self._file.checkpoints.wrote(len(kept))
        return kept_claim

    async def outbox(self, claim: Claim) -> Sequence[Emission]:
        """The events that are not trimmed, in order."""
        with self._file.transaction() as connection:
            self._check(connection, claim)
            rows: list[tuple[bytes]] = connection.execute(
                "SELECT events FROM outbox WHERE shard = ? AND last_oseq > ? ORDER BY last_oseq",
                (claim.shard, claim.trimmed),
            ).fetchall()
        batches = [unguarded(b"outbox", kept) for (kept,) in rows]
        events = [event for batch in batches if batch is not None for event in _events.decode(batch)]
        events = [event for event in events if event.oseq > claim.trimmed]
        if [event.oseq for event in events] != list(range(claim.trimmed + 1, claim.next_oseq)):
            raise self._file.damaged(f"the outbox of shard {claim.shard}")
        return tuple(events)

    async def trim(self, claim: Claim, up_to: int) -> Claim:
        """Forget the events up to and including `upto`; only after they are published."""
        if up_to >= claim.next_oseq:
            raise ValueError(f"event {up_to} does not exist yet")
        with self._file.transaction() as connection:
            self._check(connection, claim)
            trimmed = max(up_to, claim.trimmed)
            connection.execute("DELETE FROM outbox WHERE shard = ? AND last_oseq <= ?", (claim.shard, trimmed))
            return self._keep(connection, claim, claim.owner, claim.next_offset, claim.next_oseq, trimmed)

    async def peek(self, shard: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        """The shard's next offset and the values of these keys, all as of one moment."""
        with self._file.translated(), transaction(self._file.connection, "DEFERRED"):
            standing = self._standing(self._file.connection, shard)
            return standing.next_offset if standing else 0, self._values(self._file.connection, shard, keys)

    def _unguarded(self, key: bytes, kept: bytes) -> bytes:
        value = unguarded(key, kept)
        if value is None:
            raise self._file.damaged(f"the value of key {key!r}")
        return value

    def keys(self, shard: int, prefix: bytes) -> Iterator[bytes]:
        """The keys that begin so, in order; those written meanwhile may be left out."""
        last, end = prefix, prefix[:-1] + bytes([prefix[-1] + 1])
        while found := self.listed(shard, last, end, _CHUNK):
            yield from found
            last = found[-1]

    def listed(self, shard: int, after: bytes, before: bytes, limit: int) -> Sequence[bytes]:
        """Keys with `after < key < before`, the first ones."""
        with self._file.translated():
            rows: list[tuple[bytes]] = self._file.connection.execute(
                "SELECT key FROM entries WHERE shard = ? AND key > ? AND key < ? ORDER BY key LIMIT ?",
                (shard, after, before, limit),
            ).fetchall()
        return [key for (key,) in rows]

    def _standing(self, connection: sqlite3.Connection, shard: int) -> Claim | None:
        row: tuple[str, int, int, int, bytes] | None = connection.execute(
            "SELECT owner, next_offset, next_oseq, trimmed, guard FROM shards WHERE shard = ?", (shard,)
        ).fetchone()
        if row is None:
            return None
        if _guard(shard, *row[:4]) != row[4]:
            raise self._file.damaged(f"the row of shard {shard}")
        return Claim(shard=shard, owner=row[0], next_offset=row[1], next_oseq=row[2], trimmed=row[3])

    def _check(self, connection: sqlite3.Connection, claim: Claim) -> None:
        standing = self._standing(connection, claim.shard)
        if standing != claim:
            why = "another worker took it" if standing and standing.owner != claim.owner else "it has moved since"
            raise ClaimLost(f"shard {claim.shard} is no longer this claim's: {why}; claim it again")

    @staticmethod
    def _keep(
        connection: sqlite3.Connection, before: Claim, owner: str, next_offset: int, next_oseq: int, trimmed: int
    ) -> Claim:
        connection.execute(
            "INSERT OR REPLACE INTO shards (shard, owner, next_offset, next_oseq, trimmed, guard) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (before.shard, owner, next_offset, next_oseq, trimmed,
             _guard(before.shard, owner, next_offset, next_oseq, trimmed)),
        )  # fmt: skip
        return Claim(shard=before.shard, owner=owner, next_offset=next_offset, next_oseq=next_oseq, trimmed=trimmed)

    def _values(self, connection: sqlite3.Connection, shard: int, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for chunk in _chunks(keys):
            marks = ", ".join("?" * len(chunk))
            rows: Iterator[tuple[bytes, bytes]] = connection.execute(
                f"SELECT key, value FROM entries WHERE shard = ? AND key IN ({marks})", (shard, *chunk)
            )
            for key, kept in rows:
                found[key] = self._unguarded(key, kept)
        return found


class ShardKeys:
    """Implements `ports.KeyListing` for one shard of a store."""

    def __init__(self, store: SqliteStore, shard: int = 0) -> None:
        self._store = store
        self._shard = shard

    async def keys(self, after: bytes, before: bytes, limit: int) -> Sequence[bytes]:
        """Keys with `after < key < before`, the first ones."""
        return self._store.listed(self._shard, after, before, limit)


class SqliteJournal:
    """Implements `ports.ChangeLog` and `ports.RetainedChangeLog`."""

    def __init__(self, file: StateFile) -> None:
        self._file = file

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Keep the events, in order; a repeat of one already kept changes nothing."""
        if not events:
            return
        rows = [(_at(shard, e.oseq), shard, e.oseq, e.stream, e.key, guarded(e.key, e.value)) for e in events]
        with self._file.transaction() as connection:
            connection.executemany("INSERT OR IGNORE INTO changes VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._file.checkpoints.wrote(len(rows))

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        """Events of a stream with `oseq > after`, oldest first; with a key only that key's."""
        index, only = ("changes_by_stream", "") if key is None else ("changes_by_key", "AND key = ?")
        asked = (shard, stream, after, limit) if key is None else (shard, stream, after, key, limit)
        with self._file.translated():
            rows: list[EventRow] = self._file.connection.execute(
                f"SELECT oseq, stream, key, value FROM changes INDEXED BY {index} "
                f"WHERE shard = ? AND stream = ? AND oseq > ? {only} ORDER BY oseq LIMIT ?",
                asked,
            ).fetchall()
        return tuple(_event(self._file, row) for row in rows)

    async def last(self, shard: int) -> int:
        """The highest `oseq` kept, 0 if none."""
        with self._file.translated():
            row: tuple[int | None] = self._file.connection.execute(
                "SELECT MAX(at) FROM changes WHERE at BETWEEN ? AND ?", (_at(shard, 0), _at(shard + 1, 0) - 1)
            ).fetchone()
        return 0 if row[0] is None else row[0] - _at(shard, 0)

    async def deleted_up_to(self, shard: int) -> int:
        """Events up to this number may be gone; 0 if all are here."""
        with self._file.translated():
            row: tuple[int] | None = self._file.connection.execute(
                "SELECT upto FROM forgotten WHERE shard = ?", (shard,)
            ).fetchone()
        return row[0] if row is not None else 0

    async def delete_up_to(self, shard: int, stream: str, up_to: int, limit: int) -> int:
        """Let go of a stream's events up to this number, at most so many at once; how many went."""
        with self._file.transaction() as connection:
            rows: list[tuple[int]] = connection.execute(
                "SELECT oseq FROM changes INDEXED BY changes_by_stream "
                "WHERE shard = ? AND stream = ? AND oseq <= ? ORDER BY oseq LIMIT ?",
                (shard, stream, up_to, limit),
            ).fetchall()
            if rows:
                gone = [(_at(shard, oseq),) for (oseq,) in rows]
                connection.executemany("DELETE FROM changes WHERE at = ?", gone)
                connection.execute("INSERT OR REPLACE INTO forgotten VALUES (?, ?)", (shard, rows[-1][0]))
        return len(rows)


def _guard(shard: int, owner: str, next_offset: int, next_oseq: int, trimmed: int) -> bytes:
    return guarded(b"shard", f"{shard}/{owner}/{next_offset}/{next_oseq}/{trimmed}".encode())[:4]


def _event(file: StateFile, row: EventRow) -> Emission:
    oseq, stream, key, kept = row
    value = unguarded(key, kept)
    if value is None:
        raise file.damaged(f"event {oseq}")
    return Emission(oseq=oseq, stream=stream, key=key, value=value)


def _at(shard: int, oseq: int) -> int:
    """A row number that puts a shard's events in order, at the end of its part of the tree."""
    return (shard << 40) + oseq


def _chunks(keys: Sequence[bytes]) -> Iterator[tuple[bytes, ...]]:
    """Sorted, so that neighbours in the tree are read together."""
    source = iter(sorted(set(keys)))
    while chunk := tuple(islice(source, _CHUNK)):
        yield chunk
