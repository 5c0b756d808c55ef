"""A record that the engine fails on is set aside, identically by every worker and in every replay."""

from collections.abc import Callable, Generator
from random import Random

import pytest

from stream_car.codec import encode
from stream_car.errors import Halted, Unavailable
from stream_car.ports import Record
from stream_car.processing.effects import DecodedRecord, Effects
from stream_car.processing.fold import Fold
from stream_car.processing.quarantine import IN_A_ROW_MAX, QUARANTINE, ContentFailure, Quarantine
from stream_car.processing.shard import LAST
from stream_car.processing.state import State, decode_value
from tests.simulation.world import SKEW, Truth, World, finish, random_log
from tests.support.engines import NOW, RULESET, document
from tests.support.streams import random_rules

Steps = Generator[list[bytes], None, Effects]


class FailingFold(Fold):
    """Fails on some records, after it has changed the state."""

    is_poison: Callable[[DecodedRecord], bool] = staticmethod(lambda decoded: decoded.name == "poison")
    error: Callable[[], Exception] = staticmethod(lambda: ZeroDivisionError("division by zero"))

    def apply(self, state: State, decoded: DecodedRecord) -> Steps:
        effects = yield from super().apply(state, decoded)
        if self.is_poison(decoded):
            raise self.error()
        return effects


def records_of(*names: str) -> list[Record]:
    return [
        Record(offset=offset, append_time=NOW, value=encode(document(name, topic="rain")))
        for offset, name in enumerate(names)
    ]


def world_of(records: list[Record], fold: Fold) -> World:
    world = World(records, fold, Random(0), fault_rate=0.0)
    world.log.end = len(records)
    return world


def quarantine_of(world: World) -> Quarantine:
    quarantine = decode_value(QUARANTINE, world.store.state.values.get(QUARANTINE))
    return quarantine if isinstance(quarantine, Quarantine) else Quarantine()


@pytest.mark.parametrize("batch", [1, 2, 5, 100])
def test_the_records_around_it_are_applied_as_if_it_were_not_there(batch: int) -> None:
    world = world_of(records_of("a", "poison", "b", "c"), FailingFold(RULESET))
    shard = world.shard()
    while finish(shard.run_once(batch)):
        pass
    without = world_of(records_of("a", "b", "c"), Fold(RULESET))
    finish(without.shard().run_once())

    [record] = quarantine_of(world).records
    assert (record.offset, record.id, record.scopes) == (1, "poison", ("topic=rain",))
    assert record.error == "ZeroDivisionError: division by zero"
    assert [event.key for event in world.journal.events] == [event.key for event in without.journal.events]
    assert world.store.state.values.keys() - without.store.state.values.keys() == {QUARANTINE}
    assert shard.last_quarantined == record
    assert finish(shard.run_once()) == []
    assert world.store.state.values[LAST] is not None


@pytest.mark.parametrize("error", [MemoryError, TimeoutError, ConnectionError, lambda: Unavailable("Try again.")])
def test_a_failure_that_is_not_the_contents_sets_nothing_aside(error: Callable[[], Exception]) -> None:
    fold = FailingFold(RULESET)
    fold.error = error
    world = world_of(records_of("a", "poison"), fold)

    with pytest.raises(type(error())):
        finish(world.shard().run_once())

    assert world.store.state.claim.next_offset == 0
    assert not quarantine_of(world).total


def test_a_failure_that_does_not_repeat_sets_nothing_aside() -> None:
    failures = iter([ValueError("once"), ValueError("twice")])
    fold = FailingFold(RULESET)
    fold.error = lambda: next(failures, KeyError("again"))
    world = world_of(records_of("poison"), fold)

    with pytest.raises(ContentFailure):
        finish(world.shard().run_once())

    assert not quarantine_of(world).total


def test_a_failure_that_passes_applies_the_record() -> None:
    fold = FailingFold(RULESET)
    failures = iter([True])
    fold.is_poison = lambda decoded: next(failures, False)
    world = world_of(records_of("a", "b"), fold)
    shard = world.shard()
    while finish(shard.run_once()):
        pass

    assert not quarantine_of(world).total
    assert [event.key for event in world.journal.events] == [b"topic=rain"] * 2


def test_more_than_ten_in_a_row_halt_the_shard_and_nine_do_not() -> None:
    names = ["poison"] * (IN_A_ROW_MAX - 1) + ["a"] + ["poison"] * (IN_A_ROW_MAX + 1)
    world = world_of(records_of(*names), FailingFold(RULESET))
    shard = world.shard()

    for _ in range(len(names) - 1):
        assert len(finish(shard.run_once())) == 1
    with pytest.raises(Halted) as caught:
        finish(shard.run_once())

    assert caught.value.code == "quarantine"
    assert world.store.state.claim.next_offset == len(names) - 1


def test_a_dropped_record_is_gone_and_counted() -> None:
    world = world_of(records_of("a", "poison", "poison"), FailingFold(RULESET))
    shard = world.shard()
    while finish(shard.run_once()):
        pass
    finish(shard.drop_quarantined(1))

    assert [record.offset for record in quarantine_of(world).records] == [2]
    assert quarantine_of(world).total == 2
    assert finish(shard.run_once()) == []


@pytest.mark.parametrize("seed", range(100))
def test_every_worker_sets_the_same_records_aside_whatever_befalls_it(seed: int) -> None:
    random = Random(seed)
    fold = FailingFold(random_rules(random), skew=SKEW)
    fold.is_poison = lambda decoded: decoded.name in ("n1", "n2")
    fold.error = lambda: ZeroDivisionError("always")
    records = random_log(random, 30)
    world = World(records, fold, random, fault_rate=random.choice((0.02, 0.06)), truth=Truth(records, fold))
    world.run(600)
    world.recover()
    world.check()

    assert quarantine_of(world).total == sum(fold.is_poison(fold.read(record)) for record in records)
