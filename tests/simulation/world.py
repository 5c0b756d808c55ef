"""A small world for the shard machine: ports in memory, two workers on one shard, and every fault of the failure model.

Promise: a run is a function of its seed. Every port call is a point at which a worker may be paused,
crash before or after the effect, lose the reply, or have its request executed late or twice; between
calls the store may fall back to an earlier commit or lose everything, and the log may skip records.
Every state that is committed, and every event that is published, is compared at once with those of
an uninterrupted run. Cost: about 10 ms a seed.
"""

from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from random import Random
from typing import TypeVar

import pytest
from msgspec import Struct, structs

from stream_car.codec import encode, encode_mapping
from stream_car.core import pages
from stream_car.core.documents import Document, Statement
from stream_car.errors import ClaimLost, Halted
from stream_car.ports import Claim, Emission, Record
from stream_car.processing.effects import DecodedRecord, Effects
from stream_car.processing.fold import TICK, Fold
from stream_car.processing.shard import Shard
from tests.simulation.network import Crash, Lost, Network
from tests.support.streams import random_rules, random_stream

T = TypeVar("T")
Worker = Shard[DecodedRecord, Effects]
Running = Coroutine[object, object, object]
SKEW = 1


class Violation(AssertionError):
    """The shard machine broke a promise."""


class State(Struct, frozen=True):
    """What a store holds of the shard after one commit, claim or trim."""

    claim: Claim = Claim(shard=0, owner="", next_offset=0, next_oseq=1, trimmed=0)
    values: Mapping[bytes, bytes] = {}
    outbox: tuple[Emission, ...] = ()


class Truth:
    """The uninterrupted run: what state and events there are before every offset."""

    def __init__(self, records: Sequence[Record], fold: Fold) -> None:
        world = World(records, fold, Random(0), fault_rate=0.0)
        self.states: dict[int, Mapping[bytes, bytes]] = {0: {}}
        self.oseqs = {0: 1}
        shard = world.shard()
        while world.store.state.claim.next_offset < len(records):
            finish(shard.run_once(1))
            state = world.store.state
            self.states[state.claim.next_offset] = state.values
            self.oseqs[state.claim.next_offset] = state.claim.next_oseq
        self.events = world.journal.events


def finish(work: Awaitable[T]) -> T:
    """The result of a coroutine, with all its pauses skipped."""
    steps = work.__await__()
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result


class World(Network):
    """The log, the store and the journal of one shard, and the faults between them and the workers."""

    def __init__(
        self,
        records: Sequence[Record],
        fold: Fold,
        random: Random,
        *,
        fault_rate: float,
        truth: Truth | None = None,
        worker: type[Worker] = Shard,
        store: "type[MemoryStore] | None" = None,
    ) -> None:
        super().__init__(random, fault_rate)
        self.records = records
        self.fold = fold
        self.turn_rate = random.choice((0.01, 0.03, 0.1))
        self.truth = truth
        self.worker = worker
        self.log = MemoryLog(self)
        self.store = (store or MemoryStore)(self)
        self.journal = MemoryJournal(self)

    def shard(self) -> Worker:
        return self.worker(shard=0, log=self.log, store=self.store, event_sink=self.journal, fold=self.fold)

    def run(self, steps: int) -> None:
        """Two workers that both believe the shard is theirs; turns end at any port call."""
        workers = [self.shard(), self.shard()]
        running: list[Running | None] = [None, None]
        at = 0
        for _ in range(steps):
            self._mishap()
            if self.happens(self.turn_rate):
                at = 1 - at
            work: Running = running[at] or self._work(workers[at])
            running[at] = None
            try:
                work.send(None)
                running[at] = work
            except Crash:
                workers[at] = self.shard()
            except (StopIteration, ClaimLost, Lost):
                pass
            except Halted as halted:
                if halted.code != "gap":
                    raise
        for left in running:
            if left is not None:
                left.close()
        while self.late:
            self.execute_late()

    def _work(self, worker: Worker) -> Running:
        """One batch, or now and then a heartbeat, by which an idle worker notices that the store fell back."""
        if self.happens(0.1):
            return worker.start()
        return worker.run_once(self.random.randint(1, 5))

    def _mishap(self) -> None:
        self.log.grow()
        if self.late and self.happens(0.1):
            self.execute_late()
        if self.happens(self.rate / 30):
            self.seen["rollback"] += 1
            self.store.roll_back()
        if self.happens(self.rate / 150):
            self.seen["wipe"] += 1
            self.store.wipe()

    def recover(self) -> None:
        """Faults have stopped: a new worker brings the shard to the end of the log."""
        self.rate = 0.0
        self.log.end = len(self.records)
        shard = self.shard()
        finish(shard.start())
        while finish(shard.run_once()):
            pass

    def check(self) -> None:
        """Nothing is missing, nothing is left over."""
        assert self.truth is not None
        state = self.store.state
        if state.claim.next_offset != len(self.records) or state.outbox:
            raise Violation(f"stopped at {state.claim.next_offset} with {len(state.outbox)} events in the outbox")
        if self.journal.events != self.truth.events:
            raise Violation(f"{len(self.journal.events)} events were published, not {len(self.truth.events)}")


class MemoryLog:
    """Implements `ports.Log`. It may answer from a later offset than was asked for."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.end = 0 if world.truth is not None else len(world.records)

    def grow(self) -> None:
        if self.end < len(self.world.records) and self.world.happens(0.3):
            self.end += 1

    async def append(self, partition: int, messages: Sequence[object]) -> int:
        raise NotImplementedError("the world writes its log itself")

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        skipped = 0
        if self.world.happens(self.world.rate):
            self.world.seen["skip"] += 1
            skipped = 1
        start = from_offset + skipped
        return await self.world.call(lambda: self.world.records[start : min(start + max_records, self.end)])

    async def range(self, partition: int) -> tuple[int, int]:
        return await self.world.call(lambda: (0, self.end))


class MemoryStore:
    """Implements `ports.Store`, remembering every state that it was ever in."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.state = State()
        self.past = [self.state]
        self.owners = 0

    def roll_back(self) -> None:
        del self.past[self.world.random.randrange(len(self.past)) + 1 :]
        self.state = self.past[-1]

    def wipe(self) -> None:
        self.state = State()
        self.past = [self.state]

    def keep(self, state: State) -> Claim:
        self.state = state
        self.past.append(state)
        truth = self.world.truth
        if truth is not None:
            at = state.claim.next_offset
            if state.values != truth.states[at]:
                wrong = {
                    key
                    for key in {*state.values, *truth.states[at]}
                    if state.values.get(key) != truth.states[at].get(key)
                }
                raise Violation(f"at offset {at} these values are not the fold of the log: {sorted(wrong)}")
            if state.claim.next_oseq != truth.oseqs[at]:
                raise Violation(f"at offset {at} the next event is {state.claim.next_oseq}, not {truth.oseqs[at]}")
        return state.claim

    def check(self, claim: Claim) -> None:
        if claim != self.state.claim:
            raise ClaimLost("the shard is another worker's, or has moved")

    async def claim(self, shard: int) -> Claim:
        return await self.world.call(self._claim)

    def _claim(self) -> Claim:
        self.owners += 1
        return self.keep(structs.replace(self.state, claim=structs.replace(self.state.claim, owner=str(self.owners))))

    async def read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return await self.world.call(lambda: self._read(claim, keys))

    def _read(self, claim: Claim, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        self.check(claim)
        return {key: self.state.values[key] for key in keys if key in self.state.values}

    async def commit(
        self, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: Sequence[Emission]
    ) -> Claim:
        return await self.world.call(lambda: self._commit(claim, next_offset, writes, tuple(outbox)))

    def _commit(
        self, claim: Claim, next_offset: int, writes: Mapping[bytes, bytes | None], outbox: tuple[Emission, ...]
    ) -> Claim:
        self.check(claim)
        values = {**self.state.values, **{key: value for key, value in writes.items() if value is not None}}
        for key, value in writes.items():
            if value is None:
                values.pop(key, None)
        moved = structs.replace(claim, next_offset=next_offset, next_oseq=claim.next_oseq + len(outbox))
        return self.keep(State(moved, values, (*self.state.outbox, *outbox)))

    async def outbox(self, claim: Claim) -> Sequence[Emission]:
        return await self.world.call(lambda: self._outbox(claim))

    def _outbox(self, claim: Claim) -> Sequence[Emission]:
        self.check(claim)
        return self.state.outbox

    async def trim(self, claim: Claim, up_to: int) -> Claim:
        return await self.world.call(lambda: self._trim(claim, up_to))

    def _trim(self, claim: Claim, upto: int) -> Claim:
        self.check(claim)
        left = tuple(event for event in self.state.outbox if event.oseq > upto)
        return self.keep(State(structs.replace(claim, trimmed=upto), self.state.values, left))

    async def peek(self, shard: int, keys: Sequence[bytes]) -> tuple[int, dict[bytes, bytes]]:
        raise NotImplementedError("workers do not peek")


class MemoryJournal:
    """Implements `ports.ChangeLog`; first deliveries must be in order, repeats identical."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.events: list[Emission] = []

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        await self.world.call(lambda: self._publish(events))

    def _publish(self, events: Sequence[Emission]) -> None:
        for event in events:
            if event.oseq > len(self.events) + 1:
                raise Violation(f"event {event.oseq} was published before event {len(self.events) + 1}")
            if event.oseq <= len(self.events):
                if event != self.events[event.oseq - 1]:
                    raise Violation(f"event {event.oseq} was repeated with other content")
                continue
            self.events.append(event)
            truth = self.world.truth
            if truth is not None and (event.oseq > len(truth.events) or event != truth.events[event.oseq - 1]):
                raise Violation(f"event {event.oseq} is not that of the uninterrupted run")

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        raise NotImplementedError("workers do not read events")

    async def last(self, shard: int) -> int:
        return len(self.events)


def random_log(random: Random, length: int) -> list[Record]:
    """Documents, corrections, retractions, ticks and nonsense; append times about as late as the documents' own."""
    records: list[Record] = []
    clock = 0
    for offset, statement in enumerate(random_stream(random, length)):
        clock += random.choice((0, 0, 1, 1))
        what = random.random()
        value: bytes | None = bytes_of(statement)
        key: bytes | None = None
        headers: tuple[tuple[str, bytes], ...] = ()
        if what < 0.05:
            value = random.choice((b"", b"{", b'{"id": "n1", "type": "unheard of", "time": "2024-01-01T00:00:00Z"}'))
        elif what < 0.1:
            value, key = None, statement.id.encode()
        elif what < 0.15:
            value, headers = None, (TICK,)
        records.append(Record(offset=offset, append_time=clock, value=value, key=key, headers=headers))
    return records


def bytes_of(statement: Statement) -> bytes:
    if isinstance(statement, Document):
        return encode(statement)
    revision = {} if statement.revision is None else {"revision": statement.revision}
    return encode_mapping({"id": statement.id, "retracted": True, **revision})


def simulate(
    seed: int,
    *,
    worker: type[Worker] = Shard,
    store: type[MemoryStore] | None = None,
    length: int = 30,
    steps: int = 800,
) -> World:
    """A seeded run with faults, then recovery, in small folders. Raises `Violation`, or what the engine raised."""
    with pytest.MonkeyPatch.context() as patched:
        for name, most in (("INLINE_MAX", 1), ("PAGE_MAX", 2), ("FOLDER_MAX", 2)):
            patched.setattr(pages, name, most)
        return _simulate(Random(seed), worker, store, length, steps)


def _simulate(random: Random, worker: type[Worker], store: type[MemoryStore] | None, length: int, steps: int) -> World:
    ruleset = random_rules(random)
    fold = Fold(ruleset, skew=SKEW)
    records = random_log(random, length)
    world = World(
        records,
        fold,
        random,
        fault_rate=random.choice((0.02, 0.06, 0.15)),
        truth=Truth(records, fold),
        worker=worker,
        store=store,
    )
    world.run(steps)
    world.recover()
    world.check()
    return world


def quiet_world(seed: int, length: int = 30) -> World:
    """A world in which nothing goes wrong, and the whole log is there."""
    random = Random(seed)
    fold = Fold(random_rules(random), skew=SKEW)
    records = random_log(random, length)
    world = World(records, fold, random, fault_rate=0.0, truth=Truth(records, fold))
    world.log.end = length
    return world


def replay_command(seed: int) -> str:
    """What to type to see a failed seed again."""
    return f'python -c "from tests.simulation.world import simulate; simulate({seed})"'


__all__ = [
    "MemoryStore",
    "Violation",
    "World",
    "bytes_of",
    "finish",
    "quiet_world",
    "replay_command",
    "simulate",
]
