"""A fenced map per shard with its outbox, in the state file.

Promise: a commit is one transaction. Every value carries a checksum that is verified when it is read: `Halted`
(`damaged`) asks for the file to be deleted. Cost: a few microseconds per key. The coroutines never suspend.
"""

import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from stream_car.adapters.database import add_checksum, strip_checksum, transaction
from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.state_file import StateFile, hash_of
from stream_car.errors import ClaimLost
from stream_car.ports import Claim, Emission

_CHUNK = 512  # keys per query
_decode_events = msgspec.msgpack.Decoder(list[Emission]).decode


class SqliteStore:
    """Implements `ports.Store`.

    With a `journal` in the same file, a commit stores its events there, and the outbox stays empty.
    """

    def __init__(self, file: StateFile, journal: SqliteJournal | None = None) -> None:
        self._file = file
        self._journal = journal

    async def claim(self, shard: int) -> Claim:
        owner = secrets.token_hex(16)
        with self._file.transaction() as connection:
            current = self._current(connection, shard)
            if current is None:
                current = Claim(shard=shard, owner="", next_offset=0, next_oseq=1, trimmed=0)
            return self._put(connection, replace(current, owner=owner))

    async def read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        with self._file.transaction() as connection:
            self._require_claim(connection, claim)
            return self._values(connection, claim.shard, keys)

    async def commit(
        self, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: Sequence[Emission]
    ) -> Claim:
        shard, next_oseq = claim.shard, claim.next_oseq + len(outbox)
        if next_offset < claim.next_offset or [e.oseq for e in outbox] != list(range(claim.next_oseq, next_oseq)):
            raise ValueError("A commit must not go back, and must number its events from the claim's next_oseq on.")
        written = [
            (shard, key, hash_of(key), add_checksum(key, value)) for key, value in writes.items() if value is not None
        ]
        deleted = [(shard, key) for key, value in writes.items() if value is None]
        with self._file.transaction() as connection:
            self._require_claim(connection, claim)
            connection.executemany(
                "INSERT OR REPLACE INTO entries (shard, key, hash, value) VALUES (?, ?, ?, ?)", sorted(written)
            )
            connection.executemany("DELETE FROM entries WHERE shard = ? AND key = ?", deleted)
            trimmed = self._put_events(connection, claim, outbox) if outbox else claim.trimmed
            moved = replace(claim, next_offset=next_offset, next_oseq=next_oseq, trimmed=trimmed)
            self._put(connection, moved)
        self._file.checkpoints.count(len(written) + len(outbox))
        return moved

    def _put_events(self, connection: sqlite3.Connection, claim: Claim, events: Sequence[Emission]) -> int:
        """Store events in the journal or in the outbox. Return the number up to which the outbox is empty."""
        last = events[-1].oseq
        if self._journal is not None and claim.trimmed == claim.next_oseq - 1:
            self._journal.append(connection, claim.shard, events)
            return last
        stored = add_checksum(b"outbox", msgspec.msgpack.encode(events))
        connection.execute("INSERT INTO outbox VALUES (?, ?, ?)", (claim.shard, last, stored))
        return claim.trimmed

    async def outbox(self, claim: Claim) -> Sequence[Emission]:
        with self._file.transaction() as connection:
            self._require_claim(connection, claim)
            rows: list[tuple[bytes]] = connection.execute(
                "SELECT events FROM outbox WHERE shard = ? AND last_oseq > ? ORDER BY last_oseq",
                (claim.shard, claim.trimmed),
            ).fetchall()
        batches = [strip_checksum(b"outbox", stored) for (stored,) in rows]
        events = [event for batch in batches if batch is not None for event in _decode_events(batch)]
        events = [event for event in events if event.oseq > claim.trimmed]
        if [event.oseq for event in events] != list(range(claim.trimmed + 1, claim.next_oseq)):
            raise self._file.damage_error(f"The outbox of shard {claim.shard}")
        return tuple(events)

    async def trim(self, claim: Claim, up_to: int) -> Claim:
        if up_to >= claim.next_oseq:
            raise ValueError(f"Event {up_to} does not exist yet.")
        with self._file.transaction() as connection:
            self._require_claim(connection, claim)
            trimmed = max(up_to, claim.trimmed)
            connection.execute("DELETE FROM outbox WHERE shard = ? AND last_oseq <= ?", (claim.shard, trimmed))
            return self._put(connection, replace(claim, trimmed=trimmed))

    async def peek(self, shard: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        with self._file.translate_errors(), transaction(self._file.connection, "DEFERRED"):
            return self.peek_with(self._file.connection, shard, keys)

    def peek_with(
        self, connection: sqlite3.Connection, shard: int, keys: Sequence[bytes]
    ) -> tuple[int, dict[bytes, bytes]]:
        """Do what `peek` does, within a transaction of this connection."""
        with self._file.translate_errors():
            current = self._current(connection, shard)
            return current.next_offset if current else 0, self._values(connection, shard, keys)

    def keys(self, shard: int, prefix: bytes) -> Iterator[bytes]:
        """Yield the keys with this prefix in order. Keys that are written meanwhile may be missed."""
        last, end = prefix, prefix[:-1] + bytes([prefix[-1] + 1])
        while keys := self.keys_between(shard, last, end, _CHUNK):
            yield from keys
            last = keys[-1]

    def keys_between(self, shard: int, after: bytes, before: bytes, limit: int) -> Sequence[bytes]:
        """Return the first `limit` keys with `after < key < before`, in order."""
        with self._file.translate_errors():
            rows: list[tuple[bytes]] = self._file.connection.execute(
                "SELECT key FROM entries WHERE shard = ? AND key > ? AND key < ? ORDER BY key LIMIT ?",
                (shard, after, before, limit),
            ).fetchall()
        return [key for (key,) in rows]

    def _current(self, connection: sqlite3.Connection, shard: int) -> Claim | None:
        row: tuple[str, int, int, int, bytes] | None = connection.execute(
            "SELECT owner, next_offset, next_oseq, trimmed, guard FROM shards WHERE shard = ?", (shard,)
        ).fetchone()
        if row is None:
            return None
        claim = Claim(shard=shard, owner=row[0], next_offset=row[1], next_oseq=row[2], trimmed=row[3])
        if _claim_checksum(claim) != row[4]:
            raise self._file.damage_error(f"The row of shard {shard}")
        return claim

    def _require_claim(self, connection: sqlite3.Connection, claim: Claim) -> None:
        current = self._current(connection, claim.shard)
        if current != claim:
            why = "another worker took it" if current and current.owner != claim.owner else "it has moved since"
            raise ClaimLost(f"The claim on shard {claim.shard} is lost: {why}. Claim the shard again.")

    @staticmethod
    def _put(connection: sqlite3.Connection, claim: Claim) -> Claim:
        connection.execute(
            "INSERT OR REPLACE INTO shards (shard, owner, next_offset, next_oseq, trimmed, guard) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (claim.shard, claim.owner, claim.next_offset, claim.next_oseq, claim.trimmed, _claim_checksum(claim)),
        )
        return claim

    def _values(self, connection: sqlite3.Connection, shard: int, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        values: dict[bytes, bytes] = {}
        for chunk in _chunks(keys):
            marks = ", ".join("?" * len(chunk))
            rows: Iterator[tuple[bytes, bytes]] = connection.execute(
                f"SELECT key, value FROM entries WHERE shard = ? AND key IN ({marks})", (shard, *chunk)
            )
            for key, stored in rows:
                value = strip_checksum(key, stored)
                if value is None:
                    raise self._file.damage_error(f"The value of key {key!r}")
                values[key] = value
        return values


class ShardKeys:
    """Implements `ports.KeyListing` for one shard of a store."""

    def __init__(self, store: SqliteStore, shard: int = 0) -> None:
        self._store = store
        self._shard = shard

    async def keys(self, after: bytes, before: bytes, limit: int) -> Sequence[bytes]:
        return self._store.keys_between(self._shard, after, before, limit)


def _claim_checksum(claim: Claim) -> bytes:
    text = f"{claim.shard}/{claim.owner}/{claim.next_offset}/{claim.next_oseq}/{claim.trimmed}"
    return add_checksum(b"shard", text.encode())[:4]


def _chunks(keys: Sequence[bytes]) -> Iterator[tuple[bytes, ...]]:
    """Split the distinct keys. They are sorted, so that keys which are neighbours in the tree are read together."""
    distinct = iter(sorted(set(keys)))
    while chunk := tuple(islice(distinct, _CHUNK)):
        yield chunk
