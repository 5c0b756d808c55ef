"""The core step as a shard takes it, over a plain dictionary: no bytes, no store, no log."""

import gc
from collections.abc import Callable, Generator, Sequence
from time import perf_counter

from benchmarks.speed.feed import Arrival
from stream_car.core.revisions import Input
from stream_car.core.thresholds import holds, threshold_of
from stream_car.core.timeline import all_members
from stream_car.processing.effects import Effects
from stream_car.processing.fold import Fold
from stream_car.processing.state import State
from stream_car.rule_packs import load


def compliance() -> Fold:
    """The fold with the shipped pack R1-R10."""
    return Fold(load(["compliance"]))


def take(fold: Fold, values: State, arrivals: Sequence[Arrival], *, start: int = 0) -> int:
    """Apply arrivals in order; how many changes they made."""
    changes = 0
    for offset, arrival in enumerate(arrivals, start):
        scopes = fold.scopes(arrival.said)
        steps = fold.step(values, arrival.said, scopes, Input(offset, arrival.append_time, arrival.digest))
        effects = _driven(values, steps)
        changes += len(effects.changes)
    return changes


def _driven(values: State, steps: Generator[list[bytes], None, Effects]) -> Effects:
    """What a step did; whatever it asks for and is not there is new."""
    while True:
        try:
            keys = next(steps)
        except StopIteration as stop:
            effects: Effects = stop.value
            return effects
        for key in keys:
            values[key] = None


def seconds(work: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    """How long it takes, collector on, beginning with a clean house."""
    gc.collect()
    begin = clock()
    work()
    return clock() - begin


def microseconds(
    fold: Fold, arrivals: Sequence[Arrival], rounds: int = 5, clock: Callable[[], float] = perf_counter
) -> float:
    """The core step a document: the best of some rounds, each from nothing."""
    return (
        min(seconds(lambda: take(fold, State(is_whole=True), arrivals), clock) for _ in range(rounds))
        / len(arrivals)
        * 1e6
    )


def held(fold: Fold, values: State) -> set[tuple[str, str]]:
    """The members that hold at the end, by scope: what every competitor must agree on."""
    found: set[tuple[str, str]] = set()
    for scope in values.scopes.values():
        if scope is not None:
            for member in all_members(scope, values.pages):
                bearing = fold.ruleset.type_rules(scope.name, member.type)
                if holds(member, threshold_of(scope, values.pages, bearing, fold.ruleset), bearing):
                    found.add((scope.name, member.id))
    return found
