"""Stage 2 from one document over values in memory: its walk, and its amenders."""

from collections.abc import Generator, Mapping
from typing import TypeVar

from stream_car.core.amendments import Amenders, amenders
from stream_car.core.rules import Ruleset
from stream_car.core.walk import Walk, WalkResult
from stream_car.processing.state import Value

T = TypeVar("T")


def walk(
    anchor: str, values: Mapping[bytes, Value], ruleset: Ruleset, as_of: int | None = None, *, has_links: bool
) -> tuple[WalkResult | None, int]:
    """Return the walk from an anchor, and how many rounds of reads it took."""
    known: dict[bytes, object] = {}
    return _run(Walk(anchor, known, ruleset, has_links=has_links, as_of=as_of).run(), known, values)


def find_amenders(
    name: str, values: Mapping[bytes, Value], ruleset: Ruleset, as_of: int | None = None, *, has_links: bool
) -> Amenders:
    """Return the documents that amend a document."""
    known: dict[bytes, object] = {}
    return _run(amenders(name, known, ruleset, has_links=has_links, as_of=as_of), known, values)[0]


def _run(
    steps: Generator[list[bytes], None, T], known: dict[bytes, object], values: Mapping[bytes, Value]
) -> tuple[T, int]:
    """Read what the steps need, and check that nothing is read twice."""
    rounds = 0
    while True:
        try:
            keys = next(steps)
        except StopIteration as stop:
            result: T = stop.value
            return result, rounds
        if not keys:  # other work may run
            continue
        assert not any(key in known for key in keys)
        known.update((key, values.get(key)) for key in keys)
        rounds += 1
