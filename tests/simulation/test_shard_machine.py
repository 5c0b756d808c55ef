"""The shard machine under crashes, zombies, lost replies and a store that forgets: always the fold of the log."""

import traceback
from collections import Counter
from collections.abc import Sequence

import pytest
from msgspec import structs

from stream_car.errors import ClaimLost, StreamCarError
from stream_car.ports import Claim, Emission, Record
from stream_car.processing.effects import DecodedRecord, Effects
from stream_car.processing.shard import AppliedRecord
from tests.simulation.network import FAULTS, Lost
from tests.simulation.world import MemoryStore, State, Worker, finish, quiet_world, replay_command, simulate

BLOCK = 50


def fails(seed: int, worker: type[Worker] = Worker, store: type[MemoryStore] | None = None) -> bool:
    try:
        simulate(seed, worker=worker, store=store)
    except (AssertionError, LookupError, StreamCarError):
        return True
    return False


@pytest.mark.parametrize("block", range(10))
def test_whatever_crashes_the_state_is_the_fold_of_the_log_and_every_event_is_told_once(block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        try:
            seen.update(simulate(seed).seen)
        except Exception as broken:
            traceback.print_exc()
            pytest.fail(f"seed {seed}: {broken!r}; see it again with: {replay_command(seed)}")
    assert {*FAULTS, "skip", "rollback", "wipe"} <= set(seen)


class TrimsFirst(Worker):
    """A mutant: events leave the outbox before they are published."""

    async def _publish(self, claim: Claim, events: Sequence[Emission]) -> Claim:
        claim = await self.store.trim(claim, events[-1].oseq)
        await self.event_sink.publish(self.shard, events)
        return claim


class KeepsValues(Worker):
    """A mutant: decoded state survives a claim that was lost."""

    async def start(self) -> None:
        kept = self._state
        await super().start()
        self._state = kept


class LeavesTheOutbox(Worker):
    """A mutant: what an earlier worker left in the outbox is taken for published."""

    async def start(self) -> None:
        journal, self.event_sink = self.event_sink, Deaf()
        try:
            await super().start()
        finally:
            self.event_sink = journal


class Deaf:
    """A journal that says it has kept what it was given."""

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        assert events

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        return ()

    async def last(self, shard: int) -> int:
        return 0


class TrustsTheLog(Worker):
    """A mutant: records are numbered as they come, so that one which was skipped is never missed."""

    async def _fold(self, claim: Claim, records: Sequence[Record]) -> list[AppliedRecord[DecodedRecord, Effects]]:
        first = records[0].offset
        return await super()._fold(structs.replace(claim, next_offset=first), records)


class Unfenced(MemoryStore):
    """A mutant: whoever asks may read and write, at whatever offset it believes the shard to be."""

    def check(self, claim: Claim) -> None:
        assert claim.shard == 0


class UnfencedReads(MemoryStore):
    """A mutant: only commits look at the claim's owner, and nothing at the offset."""

    def check(self, claim: Claim) -> None:
        if claim.owner != self.state.claim.owner:
            raise ClaimLost("the shard is another worker's")


class NoOutbox(MemoryStore):
    """A mutant: events are not committed with the state that caused them."""

    def keep(self, state: State) -> Claim:
        return super().keep(State(state.claim, state.values, ()))


@pytest.mark.parametrize("worker", [TrimsFirst, KeepsValues, LeavesTheOutbox, TrustsTheLog])
def test_a_worker_that_breaks_the_order_is_caught(worker: type[Worker]) -> None:
    assert any(fails(seed, worker=worker) for seed in range(200))


@pytest.mark.parametrize("store", [Unfenced, UnfencedReads, NoOutbox])
def test_a_store_that_does_not_keep_its_promise_is_caught(store: type[MemoryStore]) -> None:
    assert any(fails(seed, store=store) for seed in range(200))


def test_a_seed_is_the_same_run_each_time() -> None:
    first, second = simulate(7), simulate(7)

    assert (first.store.past, first.journal.events, first.seen) == (
        second.store.past,
        second.journal.events,
        second.seen,
    )


class Broken(Deaf):
    """A journal that cannot be reached."""

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        raise Lost("no reply")


def test_a_start_that_could_not_publish_the_outbox_is_begun_again() -> None:
    """Else the next batch would trim events that nobody has been told of."""
    world = quiet_world(seed=3)
    shard = world.shard()
    shard.event_sink = Broken()
    for _ in range(2):
        with pytest.raises(Lost):
            finish(shard.run_once(20))
    shard.event_sink = world.journal
    while finish(shard.run_once(5)):
        pass

    world.check()
