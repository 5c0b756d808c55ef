"""The shard machine: read the log, fold, commit, publish, trim; always in this order.

Promise: the state at offset n is the fold of the records before n, whatever crashed before. A shard starts at the
offset in the store, checks that records are contiguous, and commits state, emissions and the next offset together.
Emissions leave the outbox only after they are published, and a repeat is byte-identical. If a commit fails, all decoded
state is dropped. Cost: the fold, one read for the keys that a batch shows it needs, and one commit per batch.
"""

import hashlib
from collections.abc import Generator, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec
from msgspec import Struct

from stream_car.core.timeline import StateContradiction
from stream_car.errors import Halted, Overloaded
from stream_car.ports import Claim, Emission, EventSink, Log, Record, Store
from stream_car.processing.quarantine import (
    NO_CONTENT_FAILURES,
    QUARANTINE,
    ContentFailure,
    Quarantine,
    QuarantinedRecord,
    content_failures,
    describe,
)
from stream_car.processing.state import State, decode_value, encode_value

GENERATION = b"g"
LAST = b"l"  # the digest of the last record that was applied: it ties the state to its log
BATCH_MAX = 1000
CACHE_MAX = 300_000  # decoded values in memory between batches


class HasTouchedKeys(Protocol):
    """The effects of a fold on a shard. `touched` are the keys to write."""

    touched: list[bytes]


R = TypeVar("R")
T = TypeVar("T")
E = TypeVar("E", bound=HasTouchedKeys)


class FoldProtocol(Protocol[R, E]):
    """A pure function of state and record, in the four steps in which the shard machine calls it."""

    @property
    def generation(self) -> str:
        """The name of what a state was built with, such as rules and format."""

    def read(self, record: Record) -> R:
        """Decode a record, and judge it as far as that is possible without state."""

    def keys_needed(self, decoded: R) -> Sequence[bytes]:
        """Return the keys that the record itself shows it needs. `apply` yields further keys as it needs them."""

    def apply(self, state: State, decoded: R) -> Generator[list[bytes], None, E]:
        """Change the state and return the effects. Yield the keys that must be loaded into the state first."""

    def set_aside(
        self, state: State, decoded: R
    ) -> Generator[list[bytes], None, tuple[E, str | None, tuple[str, ...] | None]]:
        """Do the little that is done for a record that `apply` failed on.

        Return its effects, its id, and the scopes that it might have changed; `None` stands for an unknown one.
        """

    def emit(self, decoded: R, effects: E, first: int) -> Sequence[Emission]:
        """Return the emissions for the effects, numbered from `first`."""


class AppliedRecord(Struct, Generic[R, E], frozen=True, gc=False):
    """A record that was applied, in decoded form too, with its effects."""

    record: Record
    decoded: R
    effects: E


class Shard(Generic[R, E]):
    """One worker's view of one shard. It must not be used by two tasks at the same time."""

    def __init__(
        self,
        *,
        shard: int,
        log: Log,
        store: Store,
        event_sink: EventSink,
        fold: FoldProtocol[R, E],
        cache_max: int = CACHE_MAX,
    ) -> None:
        """Create the shard without claiming it."""
        self.shard = shard
        self.log = log
        self.store = store
        self.event_sink = event_sink
        self.fold = fold
        self.cache_max = cache_max
        self.generation = fold.generation
        self._state = State()
        self._claim: Claim | None = None
        self._published_up_to = 0  # emissions up to this number were published before the start
        self.last_quarantined: QuarantinedRecord | None = None  # the last record that this worker set aside
        self.quarantined = 0  # records that are set aside, as far as this worker knows
        self._alone_until = 0  # records before this offset are applied one at a time, because some of them fails

    @property
    def next_offset(self) -> int:
        """The offset of the next record to apply, as far as this worker knows."""
        return self._claim.next_offset if self._claim is not None else 0

    @property
    def published_offset(self) -> int | None:
        """The next offset, or `None` if some emission before it is not published or the shard has no claim."""
        claim = self._claim
        return claim.next_offset if claim is not None and claim.trimmed + 1 == claim.next_oseq else None

    async def lag(self) -> int:
        """Return the number of records in the log that are not applied yet, as far as this worker knows."""
        _, end = await self.log.range(self.shard)
        return end - self.next_offset

    async def start(self) -> None:
        """Claim the shard, check that state and log belong together, and publish what is in the outbox.

        Raises:
            Halted: the state was built with other rules (`generation`), the log ends before the state's offset
                (`ahead`), the log begins after it (`lost_history`), or the state was built from another log
                (`foreign`).
        """
        self._release()
        claim = await self.store.claim(self.shard)
        known = await self.store.read(claim, [GENERATION, LAST, QUARANTINE])
        if claim.next_offset and known.get(GENERATION) != self.generation.encode():
            reason = "The state was built with different rules or another format. Rebuild it from the log."
            raise Halted("generation", reason)
        first, end = await self.log.range(self.shard)
        if claim.next_offset > end:
            reason = (
                f"The state has applied {claim.next_offset} records, but the log ends at {end}: it has lost its end. "
                "Restore it from a backup, or remove the state if you want to continue with this log."
            )
            raise Halted("ahead", reason)
        if claim.next_offset < first:
            reason = f"The log begins at {first}, after the state's offset {claim.next_offset}."
            raise Halted("lost_history", reason)
        if claim.next_offset > first:
            last = await self.log.fetch(self.shard, claim.next_offset - 1, 1)
            if last and last[0].offset == claim.next_offset - 1 and known.get(LAST) != digest_of(last[0]):
                raise Halted("foreign", "The state was built from another log. Rebuild it from this one.")
        quarantine = decode_value(QUARANTINE, known.get(QUARANTINE))
        self.quarantined = len(quarantine.records) if isinstance(quarantine, Quarantine) else 0
        self._state.is_whole = not claim.next_offset
        self._published_up_to = await self.event_sink.last(self.shard)
        unpublished = await self.store.outbox(claim)
        self._claim = await self._publish(claim, unpublished) if unpublished else claim

    async def run_once(self, max_records: int = BATCH_MAX) -> list[AppliedRecord[R, E]]:
        """Apply one batch of the log and return it. An empty list means that the shard has caught up.

        A record that fails alone and identically twice, each time with fresh state, is set aside.

        Raises:
            ClaimLost: another worker took the shard, or it has moved. The next call starts the shard again.
            Halted: as in `start`, or the log returned a wrong offset (`gap`), log or state is damaged (`damaged`), or
                too many records in a row failed (`quarantine`).
        """
        earlier: tuple[int, str] | None = None  # the record that failed alone, and how
        while True:
            claim = await self._claimed()
            limit = 1 if claim.next_offset < self._alone_until else max_records
            records: Sequence[Record] = ()
            try:
                records = await self.log.fetch(self.shard, claim.next_offset, limit)
                if not records:
                    return []
                applied = await self._fold(claim, records)
                self._claim = await self._commit(claim, applied)
            except ContentFailure as error:
                self._release()
                self._alone_until = records[-1].offset + 1
                if len(records) > 1:
                    continue
                offset, failure = records[0].offset, (records[0].offset, str(error))
                if earlier == failure and (await self._claimed()).next_offset == offset:
                    return [await self._set_aside(records[0], error)]
                if earlier is not None and earlier[0] == offset and earlier != failure:
                    raise
                earlier = failure
                continue
            except BaseException:
                self._release()
                raise
            self._state.shrink(self.cache_max)
            return applied

    async def _claimed(self) -> Claim:
        if self._claim is None:
            await self.start()
        assert self._claim is not None
        return self._claim

    async def _set_aside(self, record: Record, failure: ContentFailure) -> AppliedRecord[R, E]:
        """Commit that a record is in quarantine, and what is known of it."""
        claim = await self._claimed()
        try:
            with content_failures():
                decoded = self.fold.read(record)
            effects, name, scopes = await self._drive(claim, self.fold.set_aside(self._state, decoded))
            quarantine = await self._quarantine(claim)
            quarantined = describe(record, failure, name, scopes)
            self._state[QUARANTINE] = quarantine.with_record(quarantined)
            effects.touched.append(QUARANTINE)
            applied = AppliedRecord(record, decoded, effects)
            self._claim = await self._commit(claim, [applied])
        except BaseException:
            self._release()
            raise
        self.last_quarantined = quarantined
        self.quarantined = len(quarantine.records) + 1
        return applied

    async def drop_quarantined(self, offset: int) -> None:
        """Drop a record that was set aside."""
        claim = await self._claimed()
        try:
            self._state[QUARANTINE] = quarantine = (await self._quarantine(claim)).without(offset)
            writes = {QUARANTINE: encode_value(quarantine)}
            self._claim = await self.store.commit(claim, claim.next_offset, writes, [])
            self.quarantined = len(quarantine.records)
        except BaseException:
            self._release()
            raise

    async def _quarantine(self, claim: Claim) -> Quarantine:
        if QUARANTINE not in self._state:
            await self._load(claim, [QUARANTINE])
        quarantine = self._state[QUARANTINE]
        return quarantine if isinstance(quarantine, Quarantine) else Quarantine()

    async def check_claim(self) -> None:
        """Check that the claim is still good. Call it for a shard whose log is quiet.

        Raises:
            ClaimLost: the store is not in the state in which this worker left it. The next call starts the shard again.
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
        decode = self.fold.read
        with content_failures():
            batch = [decode(record) for record in records]
            needed = set() if self._state.is_whole else {key for each in batch for key in fold.keys_needed(each)}
        if needed:
            await self._load(claim, [key for key in needed if key not in self._state])
        applied: list[AppliedRecord[R, E]] = []
        expected = claim.next_offset
        for record, decoded in zip(records, batch, strict=True):
            if record.offset != expected:
                raise Halted(
                    "gap", f"The log returned offset {record.offset} instead of {expected}. Start the shard again."
                )
            expected += 1
            effects = await self._drive(claim, fold.apply(self._state, decoded))
            applied.append(AppliedRecord(record, decoded, effects))
        return applied

    async def _drive(self, claim: Claim, steps: Generator[list[bytes], None, T]) -> T:
        while True:
            try:
                keys = next(steps)
            except StopIteration as stop:
                effects: T = stop.value
                return effects
            except StateContradiction as error:
                if (await self._quarantine(claim)).total:  # a record that was set aside is missing in the state
                    raise ContentFailure(error) from error
                raise Halted("damaged", f"{error}. Rebuild the state from the log.") from None
            except NO_CONTENT_FAILURES:
                raise
            except Exception as error:
                raise ContentFailure(error) from error
            await self._load(claim, keys)

    async def _load(self, claim: Claim, keys: Sequence[bytes]) -> None:
        if not keys:
            return
        values = await self.store.read(claim, keys)
        for key in keys:
            value = values.get(key)
            if value is None and key[:1] == b"p":
                raise Halted("damaged", f"The page {key!r} is missing. Rebuild the state from the log.")
            self._state[key] = decode_value(key, value)

    async def _commit(self, claim: Claim, applied: Sequence[AppliedRecord[R, E]]) -> Claim:
        last = applied[-1].record
        outbox: list[Emission] = []
        with content_failures():
            touched = dict.fromkeys(key for item in applied for key in item.effects.touched)
            writes = {key: encode_value(self._state.get(key)) for key in touched}
            writes[GENERATION] = self.generation.encode()
            writes[LAST] = digest_of(last)
            for item in applied:
                outbox += self.fold.emit(item.decoded, item.effects, claim.next_oseq + len(outbox))
        try:
            committed = await self.store.commit(claim, last.offset + 1, writes, outbox)
        except Overloaded as error:
            if len(applied) > 1:
                raise
            raise ContentFailure(error) from error
        is_published = committed.trimmed + 1 == committed.next_oseq
        return committed if is_published else await self._publish(committed, outbox)

    async def _publish(self, claim: Claim, events: Sequence[Emission]) -> Claim:
        last = events[-1].oseq
        if last > self._published_up_to:
            await self.event_sink.publish(self.shard, [event for event in events if event.oseq > self._published_up_to])
        return await self.store.trim(claim, last)


def digest_of(record: Record) -> bytes:
    """Return 16 bytes that identify a record."""
    return hashlib.blake2b(msgspec.msgpack.encode(record), digest_size=16).digest()
