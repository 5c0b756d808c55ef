"""The shard machine: read the log, fold, commit, publish, trim; always in this order.

Promise: the state at offset n is the fold of the records before n, whatever crashed before. A shard
starts at the store's own offset, checks that records are contiguous, and commits state, events and
the next offset together; events leave the outbox only after they are published, and a repeat is
byte-identical. When a commit is refused all decoded state is dropped. Cost: the fold, one read for
what a batch shows that it needs, and one commit a batch.
"""

import hashlib
from collections.abc import Callable, Generator, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from stream_car.core.timeline import StateContradiction
from stream_car.errors import Halted
from stream_car.ports import Claim, Emission, EventSink, Log, Record, Store
from stream_car.processing.state import State, decode_value, encode_value

GENERATION = b"g"
LAST = b"l"  # the last record that was applied, by its digest: ties the state to its log
BATCH_MAX = 1000
CACHE_MAX = 300_000  # decoded values kept between batches


class HasTouchedKeys(Protocol):
    """What a fold did to a shard; `touched` are the keys to write."""

    touched: list[bytes]


R = TypeVar("R")
E = TypeVar("E", bound=HasTouchedKeys)


class FoldProtocol(Protocol[R, E]):
    """A pure function of state and record, in the four steps in which the machine takes it."""

    @property
    def generation(self) -> str:
        """Names what a state was built with."""
        ...

    def read(self, record: Record) -> R:
        """The record decoded and judged as far as it goes alone."""
        ...

    def keys_needed(self, decoded: R) -> Sequence[bytes]:
        """Keys that it will need, as far as it shows itself."""
        ...

    def apply(self, state: State, decoded: R) -> Generator[list[bytes], None, E]:
        """Change the state; keys that are not in it are asked for by yielding them."""
        ...

    def emit(self, decoded: R, effects: E, first: int) -> Sequence[Emission]:
        """The events that tell of it, numbered from `first` on."""
        ...


class AppliedRecord(Struct, Generic[R, E], frozen=True, gc=False):
    """A record that was applied, how it was read, and what it did."""

    record: Record
    decoded: R
    effects: E


class Shard(Generic[R, E]):
    """One worker's view of one shard. Not to be driven by two tasks at once."""

    def __init__(
        self,
        *,
        shard: int,
        log: Log,
        store: Store,
        event_sink: EventSink,
        fold: FoldProtocol[R, E],
        decode: Callable[[Record], R] | None = None,
        cache_max: int = CACHE_MAX,
    ) -> None:
        """`read` says what `fold.read` would, where somebody has read the record already."""
        self.shard = shard
        self.log = log
        self.store = store
        self.change_log = event_sink
        self.fold = fold
        self._read = decode or fold.read
        self.cache_max = cache_max
        self.generation = fold.generation
        self._state = State()
        self._claim: Claim | None = None
        self._published_up_to = 0  # events up to this one have been published in earlier lives

    @property
    def next_offset(self) -> int:
        """The offset of the first record that is not applied yet, as far as this worker knows."""
        return self._claim.next_offset if self._claim is not None else 0

    @property
    def is_started(self) -> bool:
        """Whether it holds a claim, as far as it knows; a failure lets go of it."""
        return self._claim is not None

    @property
    def settled(self) -> int | None:
        """The next offset, if every event of the records before it is published; `None` without a claim."""
        claim = self._claim
        return claim.next_offset if claim is not None and claim.trimmed + 1 == claim.next_oseq else None

    async def lag(self) -> int:
        """How many records of the log are not applied yet, as far as this worker knows."""
        _, end = await self.log.range(self.shard)
        return end - self.next_offset

    async def start(self) -> None:
        """Claim the shard, check that state and log belong together, and publish what is in the outbox.

        Raises `Halted`: `generation` (the state was built with other rules), `ahead` (the log ends
        before the state), `lost_history` (the log begins after it), `foreign` (it is another log).
        """
        self._release()
        claim = await self.store.claim(self.shard)
        known = await self.store.read(claim, [GENERATION, LAST])
        if claim.next_offset and known.get(GENERATION) != self.generation.encode():
            raise Halted(
                "generation", "the state was built with other rules or another format; build it anew from the log"
            )
        first, end = await self.log.range(self.shard)
        if claim.next_offset > end:
            lost = f"the state has applied {claim.next_offset} records but the log holds only {end}"
            cure = "restore it from a backup, or remove the state if this is the log to go on with"
            raise Halted("ahead", f"{lost}: the log lost its end; {cure}")
        if claim.next_offset < first:
            raise Halted("lost_history", f"the log begins at {first}, after the state's offset {claim.next_offset}")
        if claim.next_offset > first:
            last = await self.log.fetch(self.shard, claim.next_offset - 1, 1)
            if last and last[0].offset == claim.next_offset - 1 and known.get(LAST) != digest_of(last[0]):
                raise Halted("foreign", "the state was built from another log; build it anew from this one")
        self._state.is_whole = not claim.next_offset
        self._published_up_to = await self.change_log.last(self.shard)
        waiting = await self.store.outbox(claim)
        self._claim = await self._publish(claim, waiting) if waiting else claim

    async def run_once(self, max_records: int = BATCH_MAX) -> list[AppliedRecord[R, E]]:
        """Apply one batch of the log; nothing is returned when the shard has caught up.

        Raises `ClaimLost` when another worker took the shard; `start` again.
        """
        claim = self._claim
        if claim is None:
            await self.start()
            claim = self._claim
            assert claim is not None
        try:
            records = await self.log.fetch(self.shard, claim.next_offset, max_records)
            if not records:
                return []
            handled = await self._fold(claim, records)
            self._claim = await self._commit(claim, handled)
        except BaseException:
            self._release()
            raise
        self._state.shrink(self.cache_max)
        return handled

    async def beat(self) -> None:
        """Notice that the store no longer stands where this worker left it: for one whose log is quiet.

        Raises `ClaimLost`; whatever is called next starts again.
        """
        if self._claim is None:
            return
        try:
            await self.store.read(self._claim, [GENERATION])
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        self._claim = None
        self._state = State()

    async def _fold(self, claim: Claim, records: Sequence[Record]) -> list[AppliedRecord[R, E]]:
        fold = self.fold
        read = [self._read(record) for record in records]
        if not self._state.is_whole:
            wanted = {key for one in read for key in fold.keys_needed(one)}
            await self._load(claim, [key for key in wanted if key not in self._state])
        handled: list[AppliedRecord[R, E]] = []
        expected = claim.next_offset
        for record, one in zip(records, read, strict=True):
            if record.offset != expected:
                raise Halted("gap", f"the log answered offset {record.offset} where {expected} was due")
            expected += 1
            handled.append(AppliedRecord(record, one, await self._drive(claim, fold.apply(self._state, one))))
        return handled

    async def _drive(self, claim: Claim, steps: Generator[list[bytes], None, E]) -> E:
        while True:
            try:
                keys = next(steps)
            except StopIteration as stop:
                effects: E = stop.value
                return effects
            except StateContradiction as fault:
                raise Halted("damaged", f"{fault}; rebuild the state from the log") from None
            await self._load(claim, keys)

    async def _load(self, claim: Claim, keys: Sequence[bytes]) -> None:
        if not keys:
            return
        found = await self.store.read(claim, keys)
        for key in keys:
            value = found.get(key)
            if value is None and key[:1] == b"p":
                raise Halted("damaged", f"the page {key!r} is gone; rebuild the state from the log")
            self._state[key] = decode_value(key, value)

    async def _commit(self, claim: Claim, handled: Sequence[AppliedRecord[R, E]]) -> Claim:
        touched = dict.fromkeys(key for one in handled for key in one.effects.touched)
        writes = {key: encode_value(self._state.get(key)) for key in touched}
        writes[GENERATION] = self.generation.encode()
        writes[LAST] = digest_of(handled[-1].record)
        outbox: list[Emission] = []
        for one in handled:
            outbox += self.fold.emit(one.decoded, one.effects, claim.next_oseq + len(outbox))
        moved = await self.store.commit(claim, handled[-1].record.offset + 1, writes, outbox)
        return await self._publish(moved, outbox) if outbox else moved

    async def _publish(self, claim: Claim, events: Sequence[Emission]) -> Claim:
        last = events[-1].oseq
        if last > self._published_up_to:
            await self.change_log.publish(self.shard, [event for event in events if event.oseq > self._published_up_to])
        return await self.store.trim(claim, last)


def digest_of(record: Record) -> bytes:
    return hashlib.blake2b(msgspec.msgpack.encode(record), digest_size=16).digest()
