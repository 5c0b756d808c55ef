"""The core step as a shard runs it, on a plain dictionary: no bytes, no store, no log."""

import gc
from collections.abc import Callable, Generator, Sequence
from time import perf_counter

from benchmarks.speed.event_stream import Arrival
from stream_car.core.revisions import Input
from stream_car.core.thresholds import no_rule_supersedes, threshold_of
from stream_car.core.timeline import all_members
from stream_car.processing.effects import Effects
from stream_car.processing.fold import Fold
from stream_car.processing.state import State
from stream_car.rule_packs import load


def compliance_fold() -> Fold:
    """Return a fold with the shipped pack R1-R10."""
    return Fold(load(["compliance"]))


def apply(fold: Fold, state: State, arrivals: Sequence[Arrival], *, start: int = 0) -> int:
    """Apply arrivals in order; return the number of changes."""
    changes = 0
    for offset, arrival in enumerate(arrivals, start):
        scopes = fold.scopes(arrival.statement)
        position = Input(offset, arrival.append_time, arrival.digest)
        effects = _drive(state, fold.step(state, arrival.statement, scopes, position))
        changes += len(effects.changes)
    return changes


def _drive(state: State, steps: Generator[list[bytes], None, Effects]) -> Effects:
    """Run a step to its end. The state is complete, so every requested key that is missing is new."""
    while True:
        try:
            keys = next(steps)
        except StopIteration as stop:
            effects: Effects = stop.value
            return effects
        for key in keys:
            state[key] = None


def seconds(work: Callable[[], object], clock: Callable[[], float] = perf_counter) -> float:
    """Measure how long the work takes, after a garbage collection and with the collector on."""
    gc.collect()
    begin = clock()
    work()
    return clock() - begin


def microseconds(
    fold: Fold, arrivals: Sequence[Arrival], rounds: int = 5, clock: Callable[[], float] = perf_counter
) -> float:
    """Measure the core step per document: the best of some rounds, each from an empty state."""
    best = min(seconds(lambda: apply(fold, State(is_whole=True), arrivals), clock) for _ in range(rounds))
    return best / len(arrivals) * 1e6


def active_members(fold: Fold, state: State) -> set[tuple[str, str]]:
    """Return the active members as `(scope, id)`; every competitor must arrive at the same."""
    members: set[tuple[str, str]] = set()
    for scope in state.scopes.values():
        if scope is not None:
            for member in all_members(scope, state.pages):
                type_rules = fold.ruleset.type_rules(scope.name, member.type)
                if no_rule_supersedes(member, threshold_of(scope, state.pages, type_rules, fold.ruleset), type_rules):
                    members.add((scope.name, member.id))
    return members
