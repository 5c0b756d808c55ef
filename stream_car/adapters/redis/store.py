"""A fenced map per shard in one hash of Redis: implements `ports.Store`.

Promise: a commit is one compare-and-set script with exactly one `HSET` of absolute values, so that any
prefix of the append-only file is a state that was committed. What a claim expects is compared on the
server, in the same step as the read or write. Every value carries a checksum over its key and itself:
`Halted` (`damaged`) where it is not what was written. A deleted key is set empty and swept later.
Cost: one round a call; a commit while older events still wait takes one more, to keep them.
"""

import secrets
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b

import msgspec

from stream_car.adapters.redis.scripts import ARGUMENTS_MAX, Calls, Client, Question
from stream_car.errors import ClaimLost, Halted, StreamCarError, Unavailable
from stream_car.ports import Claim, Emission

HEAD = b"head"  # owner, next offset, next oseq, trimmed, checksum, stamp of the call: apart by spaces
OUTBOX = b"outbox"
CLAIM_TRIES = 100
PEEK_TRIES = 20
SWEEP_AT = 500  # emptied keys that are gathered before they are swept
READ_MAX = ARGUMENTS_MAX - 1

_events = msgspec.msgpack.Decoder(list[Emission])


class RedisStore:
    """Shards of one namespace; another generation uses another namespace."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.calls = Calls(client)
        self._namespace = namespace
        self._emptied: dict[int, list[bytes]] = {}

    async def claim(self, shard: int) -> Claim:
        """Take the shard from whoever holds it; a shard never seen starts at offset 0, event 1."""
        key, owner = self._key(shard), secrets.token_hex(16)
        (value,) = await self.calls.read(key, [HEAD])
        held = value or b""
        for _ in range(CLAIM_TRIES):
            standing = _standing(shard, key, held)
            claim = msgspec.structs.replace(standing, owner=owner)
            head = _head(key, claim)
            is_done, held = await self.calls.swap(key, _start(standing) if held else b"", (HEAD, head))
            if is_done or held == head:
                self._emptied.pop(shard, None)
                return claim
        raise Unavailable(f"shard {shard} moved {CLAIM_TRIES} times while it was claimed; other workers hold on to it")

    async def read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of those keys that have one, all as of the claim's offset."""
        found: dict[bytes, bytes] = {}
        for chunk in _chunks(keys):
            head, *values = await self.calls.read(self._key(claim.shard), [HEAD, *map(_field, chunk)])
            self._check(claim, head)
            found.update(_unguarded(chunk, values))
        return found

    async def commit(
        self, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: Sequence[Emission]
    ) -> Claim:
        """Write values (`None` deletes), events and the next offset at once; the claim to go on with.

        Raises `TooMuch` beyond about 3,900 values.
        """
        next_oseq = claim.next_oseq + len(outbox)
        if next_offset < claim.next_offset or [e.oseq for e in outbox] != list(range(claim.next_oseq, next_oseq)):
            raise ValueError("a commit goes forward, and numbers its events on from the claim's next_oseq")
        pairs: list[bytes] = []
        emptied: list[bytes] = []
        for key, value in writes.items():
            field = _field(key)
            pairs += (field, b"" if value is None else _guarded(key, value))
            if value is None:
                emptied.append(field)
        if outbox:
            waiting = await self.outbox(claim) if claim.trimmed + 1 < claim.next_oseq else ()
            pairs += (OUTBOX, _packed([*waiting, *outbox]))
        moved = msgspec.structs.replace(claim, next_offset=next_offset, next_oseq=next_oseq)
        await self._move(claim, moved, pairs)
        await self._sweep(claim.shard, emptied)
        return moved

    async def outbox(self, claim: Claim) -> Sequence[Emission]:
        """The events that are not trimmed, in order."""
        head, packed = await self.calls.read(self._key(claim.shard), [HEAD, OUTBOX])
        self._check(claim, head)
        kept = _unpacked(packed) if packed else ()
        events = tuple(event for event in kept if event.oseq > claim.trimmed)
        if [event.oseq for event in events] != list(range(claim.trimmed + 1, claim.next_oseq)):
            raise _damaged(f"the outbox of shard {claim.shard}")
        return events

    async def trim(self, claim: Claim, up_to: int) -> Claim:
        """Forget the events up to and including `upto`; only after they are published."""
        if up_to >= claim.next_oseq:
            raise ValueError(f"event {up_to} does not exist yet")
        trimmed = max(up_to, claim.trimmed)
        moved = msgspec.structs.replace(claim, trimmed=trimmed)
        if trimmed + 1 == claim.next_oseq:
            pairs = [OUTBOX, b""]
        else:
            pairs = [OUTBOX, _packed([event for event in await self.outbox(claim) if event.oseq > trimmed])]
        await self._move(claim, moved, pairs)
        return moved

    async def peek(self, shard: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        """The shard's next offset and the values of these keys, all as of one moment.

        Beyond about 7,900 keys that takes several rounds, which are read again when the shard moves between.
        """
        key = self._key(shard)
        for _ in range(PEEK_TRIES):
            heads: set[bytes] = set()
            found: dict[bytes, bytes] = {}
            for chunk in _chunks(keys):
                head, *values = await self.calls.read(key, [HEAD, *map(_field, chunk)])
                heads.add(head or b"")
                found.update(_unguarded(chunk, values))
            if len(heads) == 1:
                return _standing(shard, key, heads.pop()).next_offset, found
        raise Unavailable(f"shard {shard} moves too fast to be read at one moment; ask for fewer keys")

    def question(self, shard: int, keys: Sequence[bytes]) -> Question:
        """What `peek` asks, for whoever asks several shards at once; `answer` reads what came back."""
        return self._key(shard), [HEAD, *map(_field, keys)]

    def answer(self, shard: int, keys: Sequence[bytes], told: Sequence[bytes | None]) -> tuple[int, dict[bytes, bytes]]:
        """The shard's next offset and the values of the keys of a `question`."""
        head, *values = told
        return _standing(shard, self._key(shard), head or b"").next_offset, dict(_unguarded(keys, values))

    async def drop(self, shards: Iterable[int]) -> None:
        """Forget these shards altogether: their state is rebuilt from the log."""
        await self.calls.unlink([self._key(shard) for shard in shards])

    def _key(self, shard: int) -> bytes:
        """Braces all around: a cluster keeps a shard in one slot, and spreads shards."""
        return f"{{{self._namespace}:{shard}}}".encode()

    async def _move(self, claim: Claim, moved: Claim, pairs: Sequence[bytes]) -> None:
        key = self._key(claim.shard)
        head = _head(key, moved)
        is_done, held = await self.calls.swap(key, _start(claim), (HEAD, head, *pairs))
        if not is_done and held != head:  # equal: this very call was done before, and its reply was lost
            self._check(claim, held)

    async def _sweep(self, shard: int, emptied: Sequence[bytes]) -> None:
        """Put off until there is enough to do. What is left behind costs memory only."""
        waiting = self._emptied.setdefault(shard, [])
        waiting += emptied
        if len(waiting) >= SWEEP_AT:
            fields, self._emptied[shard] = waiting[:ARGUMENTS_MAX], []
            await self.calls.sweep(self._key(shard), fields)

    def _check(self, claim: Claim, head: bytes | None) -> None:
        if head is None or not head.startswith(_start(claim)):
            standing = _standing(claim.shard, self._key(claim.shard), head or b"")
            why = "another worker took it" if standing.owner != claim.owner else "it has moved since"
            raise ClaimLost(f"shard {claim.shard} is no longer this claim's: {why}; claim it again")


def _start(claim: Claim) -> bytes:
    """How a head begins while a claim holds."""
    return f"{claim.owner} {claim.next_offset} {claim.next_oseq} {claim.trimmed} ".encode()


def _head(key: bytes, claim: Claim) -> bytes:
    """The stamp tells a call that was executed twice from another call that says the same."""
    start = _start(claim)
    return start + f"{_sum(key, start):08x} {secrets.token_hex(4)}".encode()


def _standing(shard: int, key: bytes, head: bytes) -> Claim:
    if not head:
        return Claim(shard=shard, owner="", next_offset=0, next_oseq=1, trimmed=0)
    parts = head.split(b" ")
    if len(parts) == 6 and parts[4] == f"{_sum(key, b' '.join(parts[:4]) + b' '):08x}".encode():
        owner, *numbers = (part.decode() for part in parts[:4])
        next_offset, next_oseq, trimmed = map(int, numbers)
        return Claim(shard=shard, owner=owner, next_offset=next_offset, next_oseq=next_oseq, trimmed=trimmed)
    raise _damaged(f"the head of shard {shard}")


def _sum(name: bytes, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(name))


def _field(key: bytes) -> bytes:
    """The field of a key: a digest, so that long keys cost no more, and no key looks like another field."""
    return blake2b(key, digest_size=16).digest()


def _guarded(key: bytes, value: bytes) -> bytes:
    return _sum(key, value).to_bytes(4, "big") + value


def _unguarded(keys: Sequence[bytes], values: Sequence[bytes | None]) -> Iterator[tuple[bytes, bytes]]:
    if len(keys) != len(values):
        raise StreamCarError(f"Redis answered {len(values)} values to {len(keys)} keys")
    for key, kept in zip(keys, values, strict=True):
        if kept:
            value = kept[4:]
            if kept[:4] != _sum(key, value).to_bytes(4, "big"):
                raise _damaged(f"the value of key {key!r}")
            yield key, value


def _packed(events: Sequence[Emission]) -> bytes:
    return _guarded(OUTBOX, msgspec.msgpack.encode(events)) if events else b""


def _unpacked(packed: bytes) -> list[Emission]:
    for _, value in _unguarded([OUTBOX], [packed]):
        return _events.decode(value)
    return []


def _damaged(what: str) -> Halted:
    return Halted("damaged", f"{what} in Redis is damaged; drop the shard, and it is rebuilt from the log")


def _chunks(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """At least one, so that the head is always read."""
    distinct = list(dict.fromkeys(keys))
    for start in range(0, max(len(distinct), 1), READ_MAX):
        yield distinct[start : start + READ_MAX]
