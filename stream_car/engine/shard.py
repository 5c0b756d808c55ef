"""The shard machine: read the log, fold, commit, publish, trim; always in this order.

Promise: the state at offset n is the fold of the records before n, whatever crashed before. A shard
starts at the store's own offset, checks that records are contiguous, and commits state, events and
the next offset together; events leave the outbox only after they are published, and a repeat is
byte-identical. When a commit is refused all decoded state is dropped. Cost: the fold, one read for
what a batch shows that it needs, and one commit a batch.
"""

import itertools
from collections.abc import Generator, Iterator, Sequence

import msgspec
from msgspec import Struct

from stream_car.codec import content_digest, decode
from stream_car.core.documents import Document, Statement
from stream_car.core.intake import Input
from stream_car.engine.fold import Effects, Fold, Value
from stream_car.engine.stored import FORMAT, decode_value, encode_value
from stream_car.errors import ClaimLost, Halted, InvalidDocument
from stream_car.ports import Claim, Event, Journal, Log, Record, Store

CHANGES = "changes"
REJECTED = "rejected"
TICK = ("stream-car-tick", b"1")
GENERATION = b"g"
BATCH_MAX = 1000
DIGEST_BYTES = 8  # tells a repeat from a conflict under one id and revision; more would only cost memory
CACHE_MAX = 300_000  # decoded values kept between batches


class Handled(Struct, frozen=True, gc=False):
    """A record that was applied, what it said (`None`: a tick or unreadable), and what it did."""

    record: Record
    said: Statement | None
    effects: Effects
    scopes: tuple[str, ...] = ()


def generation_of(fold: Fold) -> str:
    """Names what a state was built with: rules, format, and how documents from the future are treated."""
    return f"{fold.ruleset.digest}-{FORMAT}{'' if fold.future == 'wait' else '-' + fold.future}"


class Shard:
    """One worker's view of one shard. Not to be driven by two tasks at once."""

    def __init__(
        self, *, shard: int, log: Log, store: Store, journal: Journal, fold: Fold, cache_max: int = CACHE_MAX
    ) -> None:
        self.shard = shard
        self.log = log
        self.store = store
        self.journal = journal
        self.fold = fold
        self.cache_max = cache_max
        self.generation = generation_of(fold)
        self._encoder = msgspec.json.Encoder(order="deterministic")
        self._values: dict[bytes, Value] = {}
        self._claim: Claim | None = None

    @property
    def next_offset(self) -> int:
        """The offset of the first record that is not applied yet, as far as this worker knows."""
        return self._claim.next_offset if self._claim is not None else 0

    @property
    def is_started(self) -> bool:
        """Whether it holds a claim, as far as it knows; a failure lets go of it."""
        return self._claim is not None

    async def start(self) -> None:
        """Claim the shard, check that state and log belong together, and publish what is in the outbox.

        Raises `Halted`: `generation` (the state was built with other rules), `ahead` (the log ends
        before the state), `lost_history` (the log begins after it).
        """
        self._claim = None
        self._values.clear()
        claim = await self.store.claim(self.shard)
        known = (await self.store.read(claim, [GENERATION])).get(GENERATION)
        if claim.next_offset and known != self.generation.encode():
            raise Halted(
                "generation", "the state was built with other rules or another format; build it anew from the log"
            )
        first, end = await self.log.range(self.shard)
        if claim.next_offset > end:
            lost = f"the state has applied {claim.next_offset} records but the log holds only {end}"
            raise Halted("ahead", f"{lost}: the log lost its end; restore it from a backup")
        if claim.next_offset < first:
            raise Halted("lost_history", f"the log begins at {first}, after the state's offset {claim.next_offset}")
        waiting = await self.store.outbox(claim)
        self._claim = await self._publish(claim, waiting) if waiting else claim

    async def run_once(self, max_records: int = BATCH_MAX) -> list[Handled]:
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
            self._claim = None
            self._values.clear()
            raise
        self._evict()
        return handled

    async def _fold(self, claim: Claim, records: Sequence[Record]) -> list[Handled]:
        read = [self._read(record) for record in records]
        wanted = {key for said, scopes, _ in read for key in self._foreseen(said, scopes)}
        await self._load(claim, [key for key in wanted if key not in self._values])
        handled: list[Handled] = []
        expected = claim.next_offset
        for record, (said, scopes, digest) in zip(records, read, strict=True):
            if record.offset != expected:
                raise Halted("gap", f"the log answered offset {record.offset} where {expected} was due")
            expected += 1
            at = Input(record.offset, record.append_time, digest)
            effects = await self._drive(claim, self.fold.step(self._values, said, scopes, at))
            handled.append(Handled(record, None if isinstance(said, InvalidDocument) else said, effects, scopes))
        return handled

    async def _drive(self, claim: Claim, steps: Generator[list[bytes], None, Effects]) -> Effects:
        while True:
            try:
                keys = next(steps)
            except StopIteration as stop:
                effects: Effects = stop.value
                return effects
            await self._load(claim, keys)

    def _read(self, record: Record) -> tuple[Statement | InvalidDocument | None, tuple[str, ...], bytes]:
        if TICK in record.headers:
            return None, (), b""
        try:
            said = decode(record.value, key=record.key, headers=record.headers)
            scopes = self.fold.scopes(said)
        except InvalidDocument as refused:
            return refused, (), b""
        return said, scopes, content_digest(said)[:DIGEST_BYTES] if isinstance(said, Document) else b""

    def _foreseen(self, said: Statement | InvalidDocument | None, scopes: Sequence[str]) -> list[bytes]:
        return [] if said is None or isinstance(said, InvalidDocument) else self.fold.foresee(said, scopes)

    async def _load(self, claim: Claim, keys: Sequence[bytes]) -> None:
        if not keys:
            return
        found = await self.store.read(claim, keys)
        for key in keys:
            value = found.get(key)
            if value is None and key[:1] == b"p":
                raise Halted("damaged", f"the page {key!r} is gone; rebuild the state from the log")
            self._values[key] = decode_value(key, value)

    async def _commit(self, claim: Claim, handled: Sequence[Handled]) -> Claim:
        touched = dict.fromkeys(key for one in handled for key in one.effects.touched)
        writes = {key: encode_value(self._values.get(key)) for key in touched}
        writes[GENERATION] = self.generation.encode()
        numbers = itertools.count(claim.next_oseq)
        outbox = [event for one in handled for event in self._events(one.effects, numbers)]
        moved = await self.store.commit(claim, handled[-1].record.offset + 1, writes, outbox)
        return await self._publish(moved, outbox) if outbox else moved

    def _events(self, effects: Effects, numbers: Iterator[int]) -> list[Event]:
        events = [
            Event(oseq=next(numbers), stream=CHANGES, key=change.scope.encode(), value=self._encoder.encode(change))
            for change in effects.changes
        ]
        refused = effects.rejection
        if refused is not None:
            key = (refused.id or "").encode()
            events.append(Event(oseq=next(numbers), stream=REJECTED, key=key, value=self._encoder.encode(refused)))
        return events

    async def _publish(self, claim: Claim, events: Sequence[Event]) -> Claim:
        await self.journal.publish(self.shard, events)
        return await self.store.trim(claim, events[-1].oseq)

    def _evict(self) -> None:
        over = len(self._values) - self.cache_max
        if over > 0:
            for key in list(itertools.islice(self._values, over + self.cache_max // 8)):
                del self._values[key]


__all__ = ["CHANGES", "REJECTED", "TICK", "ClaimLost", "Handled", "Shard", "generation_of"]
