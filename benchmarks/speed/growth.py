"""How the cost of the core step grows: `python -m benchmarks.speed.growth [LARGEST]`.

Promise: the cost per document is compared between 10^4 and 10^6 documents, relative to a dictionary's own growth
(larger memory is slower), and between ordinary scopes, one hot scope and chains. Times are processor time, because
everything runs on one thread: other work on the machine hardly affects them.
"""

import gc
import sys
from collections.abc import Sequence
from math import inf
from time import process_time

from benchmarks.speed.event_stream import Arrival, chains, hot, mixed, uniform
from benchmarks.speed.report import Figure, show
from benchmarks.speed.rivals.plain import dictionary
from benchmarks.speed.shard import compliance_fold, microseconds, seconds

SMALL = 10_000
LARGEST = 1_000_000
SHAPED = 100_000
CHAIN = 1_000
GROWTH = 1.2  # times the dictionary's growth
SHAPES = 2.0  # times the uniform stream's cost


def main(largest: int = LARGEST) -> int:
    """Print the cost per document by size and by shape."""
    small, large = _sizes(largest)
    figures = [
        Figure(name="core step, 10,000 documents", value=small[0], unit="us"),
        *_middle(largest),
        Figure(name=f"core step, {largest:,} documents", value=large[0], unit="us"),
        Figure(name="dictionary insert, 10,000", value=small[1], unit="us"),
        Figure(name=f"dictionary insert, {largest:,}", value=large[1], unit="us"),
        Figure(name="dictionary's growth", value=large[1] / small[1], unit="times"),
        Figure(
            name="core step's growth",
            value=large[0] / small[0],
            unit="times",
            at_most=GROWTH * large[1] / small[1],
        ),
        *_shapes(),
    ]
    return show("growth of the core step, R1-R10", figures)


def _sizes(largest: int) -> tuple[tuple[float, float], tuple[float, float]]:
    return _measure(mixed(SMALL), 9), _measure(mixed(largest), 2)


def _middle(largest: int) -> list[Figure]:
    if largest <= SHAPED:
        return []
    cost = _measure(mixed(SHAPED), 3)[0]
    return [Figure(name=f"core step, {SHAPED:,} documents", value=cost, unit="us")]


def _measure(stream: Sequence[Arrival], rounds: int) -> tuple[float, float]:
    """Measure microseconds per document of the core step and of a dictionary, the best of some rounds."""
    _freeze()
    ours = microseconds(compliance_fold(), stream, rounds, process_time)
    bare = min(seconds(lambda: dictionary(stream), process_time) for _ in range(rounds + 3)) / len(stream) * 1e6
    gc.unfreeze()
    return ours, bare


def _shapes() -> list[Figure]:
    streams = {
        "uniform scopes of 4": uniform(SHAPED),
        f"one hot scope of {SHAPED:,}": hot(SHAPED),
        f"chains of {CHAIN:,}": chains(SHAPED, CHAIN),
    }
    costs = dict.fromkeys(streams, inf)
    _freeze()
    for _ in range(4):  # in turn, so that a slow moment of the machine affects all shapes
        for name, stream in streams.items():
            costs[name] = min(costs[name], microseconds(compliance_fold(), stream, 1, process_time))
    base = costs["uniform scopes of 4"]
    return [
        Figure(name=name, value=cost, unit="us", at_most=SHAPES * base if cost is not base else None)
        for name, cost in costs.items()
    ]


def _freeze() -> None:
    """Exclude the stream from garbage collection: it belongs to the benchmark, not to what is measured."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
