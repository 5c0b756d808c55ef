"""A fenced map per shard in one hash of Redis: implements `ports.Store`.

Promise: a commit is one compare-and-set script with exactly one `HSET` of absolute values, so any prefix of the
append-only file is a state that was committed. What a claim expects is compared on the server, in the same step as the
read or write. Every value carries a checksum over its key and itself; a changed value raises `Halted` (`damaged`). A
deleted key is set to an empty value and swept later.
Cost: one exchange per call. A commit with events takes one more if older events are not trimmed yet, to keep them.
"""

import re
import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from stream_car.adapters.redis.scripts import ARGUMENTS_MAX, HashFields, RedisClient, ScriptCalls
from stream_car.errors import ClaimLost, Halted, Overloaded, StreamCarError, Unavailable
from stream_car.ports import Claim, Emission

HEAD = b"head"  # owner, next offset, next oseq, trimmed, checksum, stamp of the call: space-separated
OUTBOX = b"outbox"
NO_HEAD = b" "  # no head begins like this
CLAIM_TRIES = 100
PEEK_TRIES = 20
COMMIT_BYTES = 256 << 20  # half of what Redis accepts as one value
SWEEP_AT = 500  # emptied fields that are collected before they are swept
READ_MAX = ARGUMENTS_MAX - 1

_decoder = msgspec.msgpack.Decoder(list[Emission])


class RedisStore:
    """The shards of one namespace. Each generation uses a namespace of its own."""

    def __init__(self, client: RedisClient, namespace: str) -> None:
        self.calls = ScriptCalls(client)
        self._namespace = namespace
        self._emptied: dict[int, list[bytes]] = {}

    async def claim(self, shard: int) -> Claim:
        key, owner = self._key(shard), secrets.token_hex(16)
        (value,) = await self.calls.read(key, [HEAD])
        head = value or b""
        for _ in range(CLAIM_TRIES):
            current = _decode_head(shard, key, head)
            claim = replace(current, owner=owner)
            new_head = _encode_head(key, claim)
            is_written, head = await self.calls.swap(key, _head_prefix(current) if head else b"", (HEAD, new_head))
            if is_written or head == new_head:  # equal: this very call was executed before, and its reply was lost
                self._emptied.pop(shard, None)
                return claim
        raise Unavailable(
            f"Shard {shard} moved {CLAIM_TRIES} times while it was claimed: another worker has it. Try again later."
        )

    async def read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        values: dict[bytes, bytes] = {}
        for chunk in _chunks(keys):
            head, *stored = await self.calls.read(*self.peek_request(claim.shard, chunk))
            self._require_claim(claim, head)
            values.update(_strip_checksums(chunk, stored))
        return values

    async def commit(
        self, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: Sequence[Emission]
    ) -> Claim:
        """Commit as `ports.Store` promises. Raises `Overloaded` beyond about 3,900 values, or `COMMIT_BYTES`."""
        next_oseq = claim.next_oseq + len(outbox)
        if next_offset < claim.next_offset or [e.oseq for e in outbox] != list(range(claim.next_oseq, next_oseq)):
            raise ValueError("A commit must not go back, and must number its events from the claim's next_oseq on.")
        pairs: list[bytes] = []
        emptied: list[bytes] = []
        for key, value in writes.items():
            field = _field(key)
            pairs += (field, b"" if value is None else _add_checksum(key, value))
            if value is None:
                emptied.append(field)
        if outbox:
            older = await self.outbox(claim) if claim.trimmed + 1 < claim.next_oseq else ()
            pairs += (OUTBOX, _encode_events([*older, *outbox]))
        if (size := sum(map(len, pairs))) > COMMIT_BYTES:
            raise Overloaded(f"A commit of {size:,} bytes is too large for Redis. Use smaller batches.")
        moved = replace(claim, next_offset=next_offset, next_oseq=next_oseq)
        await self._swap_head(claim, moved, pairs)
        await self._sweep(claim.shard, emptied)
        return moved

    async def outbox(self, claim: Claim) -> Sequence[Emission]:
        head, stored = await self.calls.read(self._key(claim.shard), [HEAD, OUTBOX])
        self._require_claim(claim, head)
        events = tuple(event for event in _decode_events(stored) if event.oseq > claim.trimmed)
        if [event.oseq for event in events] != list(range(claim.trimmed + 1, claim.next_oseq)):
            raise _damaged(f"The outbox of shard {claim.shard}")
        return events

    async def trim(self, claim: Claim, up_to: int) -> Claim:
        if up_to >= claim.next_oseq:
            raise ValueError(f"Event {up_to} does not exist yet.")
        trimmed = max(up_to, claim.trimmed)
        moved = replace(claim, trimmed=trimmed)
        older = await self.outbox(claim) if trimmed + 1 < claim.next_oseq else ()
        await self._swap_head(
            claim, moved, [OUTBOX, _encode_events([event for event in older if event.oseq > trimmed])]
        )
        return moved

    async def peek(self, shard: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        """Read as `ports.Store` promises.

        More than about 7,900 keys take several exchanges, which are repeated if the shard moves between them.
        """
        for _ in range(PEEK_TRIES):
            heads: set[bytes] = set()
            values: dict[bytes, bytes] = {}
            for chunk in _chunks(keys):
                head, *stored = await self.calls.read(*self.peek_request(shard, chunk))
                heads.add(head or b"")
                values.update(_strip_checksums(chunk, stored))
            if len(heads) == 1:
                return _decode_head(shard, self._key(shard), heads.pop()).next_offset, values
        raise Unavailable(f"Shard {shard} moves too fast to be read as of one moment. Request fewer keys.")

    def peek_request(self, shard: int, keys: Sequence[bytes]) -> HashFields:
        """Return what `peek` reads, for a caller that reads several shards at once. `decode_peek` takes the values."""
        return self._key(shard), [HEAD, *map(_field, keys)]

    def decode_peek(
        self, shard: int, keys: Sequence[bytes], read: Sequence[bytes | None]
    ) -> tuple[int, dict[bytes, bytes]]:
        """Return the next offset of the shard and the values of the keys, from what a `peek_request` read."""
        head, *stored = read
        return _decode_head(shard, self._key(shard), head or b"").next_offset, dict(_strip_checksums(keys, stored))

    async def require_writable(self, shard: int) -> None:
        """Raise `StreamCarError` unless this user may write the state of a shard. Nothing is written."""
        await self.calls.swap(self._key(shard), NO_HEAD, (HEAD, b""))

    async def foreign_fields(self, shard: int, keys: Iterable[bytes]) -> list[bytes]:
        """Return the fields of a shard that have a value and belong to none of these keys. The shard may move."""
        filled = {field async for field in self.calls.filled_fields(self._key(shard))}
        return self.without_keys(filled, keys)

    def without_keys(self, fields: Iterable[bytes], keys: Iterable[bytes]) -> list[bytes]:
        """Return the fields that belong to none of these keys, in order."""
        return sorted({*fields} - {HEAD, OUTBOX} - {*map(_field, keys)})

    async def peek_fields(self, shard: int, fields: Sequence[bytes]) -> tuple[int, list[bytes]]:
        """Return the next offset of a shard, and those of the fields that have a value; of the first few thousand."""
        fields = fields[:READ_MAX]
        head, *values = await self.calls.read(self._key(shard), [HEAD, *fields])
        next_offset = _decode_head(shard, self._key(shard), head or b"").next_offset
        return next_offset, [field for field, value in zip(fields, values, strict=True) if value]

    async def foreign_keys(self, shards: Iterable[int]) -> list[bytes]:
        """Return the keys in this namespace that belong to none of these shards."""
        escaped = re.sub(rb"([\\*?\[\]^-])", rb"\\\1", self._namespace.encode())
        known = {self._key(shard) for shard in shards}
        return sorted(key for key in await self.calls.keys(b"{" + escaped + b":*") if key not in known)

    async def drop(self, shards: Iterable[int]) -> None:
        """Delete the state of these shards. It is rebuilt from the log."""
        await self.calls.unlink([self._key(shard) for shard in shards])

    def _key(self, shard: int) -> bytes:
        # the braces make a cluster hash the whole key, so that shards are spread over its slots
        return f"{{{self._namespace}:{shard}}}".encode()

    async def _swap_head(self, claim: Claim, moved: Claim, pairs: Sequence[bytes]) -> None:
        key = self._key(claim.shard)
        new_head = _encode_head(key, moved)
        is_written, head = await self.calls.swap(key, _head_prefix(claim), (HEAD, new_head, *pairs))
        if not is_written and head != new_head:  # equal: this very call was executed before, and its reply was lost
            self._require_claim(claim, head)

    async def _sweep(self, shard: int, emptied: Sequence[bytes]) -> None:
        """Delete emptied fields once there are enough of them. Those that are never swept cost memory only."""
        collected = self._emptied.setdefault(shard, [])
        collected += emptied
        if len(collected) >= SWEEP_AT:
            fields, self._emptied[shard] = collected[:ARGUMENTS_MAX], []
            await self.calls.sweep(self._key(shard), fields)

    def _require_claim(self, claim: Claim, head: bytes | None) -> None:
        if head is None or not head.startswith(_head_prefix(claim)):
            current = _decode_head(claim.shard, self._key(claim.shard), head or b"")
            why = "another worker took it" if current.owner != claim.owner else "it has moved since"
            raise ClaimLost(f"The claim on shard {claim.shard} is lost: {why}. Claim the shard again.")


def _head_prefix(claim: Claim) -> bytes:
    """Return how the head begins while the claim holds."""
    return f"{claim.owner} {claim.next_offset} {claim.next_oseq} {claim.trimmed} ".encode()


def _encode_head(key: bytes, claim: Claim) -> bytes:
    """Return a new head. Its stamp tells a call that was executed twice from another call with the same effect."""
    prefix = _head_prefix(claim)
    return prefix + f"{_checksum(key, prefix):08x} {secrets.token_hex(4)}".encode()


def _decode_head(shard: int, key: bytes, head: bytes) -> Claim:
    if not head:
        return Claim(shard=shard, owner="", next_offset=0, next_oseq=1, trimmed=0)
    parts = head.split(b" ")
    if len(parts) == 6 and parts[4] == f"{_checksum(key, b' '.join(parts[:4]) + b' '):08x}".encode():
        owner, *numbers = (part.decode() for part in parts[:4])
        next_offset, next_oseq, trimmed = map(int, numbers)
        return Claim(shard=shard, owner=owner, next_offset=next_offset, next_oseq=next_oseq, trimmed=trimmed)
    raise _damaged(f"The head of shard {shard}")


def _checksum(name: bytes, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(name))


def _field(key: bytes) -> bytes:
    """Return the field of a key: a digest, so that a long key costs no more and no key equals `HEAD` or `OUTBOX`."""
    return blake2b(key, digest_size=16).digest()


def _add_checksum(key: bytes, value: bytes) -> bytes:
    return _checksum(key, value).to_bytes(4, "big") + value


def _strip_checksums(keys: Sequence[bytes], stored: Sequence[bytes | None]) -> Iterator[tuple[bytes, bytes]]:
    """Yield each key that has a value, with the value. Raises `Halted` (`damaged`) if a value has changed."""
    if len(keys) != len(stored):
        raise StreamCarError(f"Redis returned {len(stored)} values for {len(keys)} keys. Please report this as a bug.")
    for key, content in zip(keys, stored, strict=True):
        if content:
            value = content[4:]
            if content[:4] != _checksum(key, value).to_bytes(4, "big"):
                raise _damaged(f"The value of key {key!r}")
            yield key, value


def _encode_events(events: Sequence[Emission]) -> bytes:
    return _add_checksum(OUTBOX, msgspec.msgpack.encode(events)) if events else b""


def _decode_events(stored: bytes | None) -> list[Emission]:
    return [event for _, value in _strip_checksums([OUTBOX], [stored]) for event in _decoder.decode(value)]


def _damaged(what: str) -> Halted:
    return Halted("damaged", f"{what} in Redis is damaged. Drop the shard, and it is rebuilt from the log.")


def _chunks(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """Split the distinct keys. There is at least one chunk, so that the head is always read."""
    distinct = list(dict.fromkeys(keys))
    for start in range(0, max(len(distinct), 1), READ_MAX):
        yield distinct[start : start + READ_MAX]
