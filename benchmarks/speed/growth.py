"""How the core step grows: `python -m benchmarks.speed.growth [LARGEST]`.

Promise: the cost a document is compared between 10^4 and 10^6 documents, beside a dictionary's own
growth (memory gets slower as it gets larger), and between ordinary scopes, one hot scope and chains.
Times are the processor's, for all here is one thread: other work on the machine hardly disturbs them.
"""

import gc
import sys
from collections.abc import Sequence
from math import inf
from time import process_time

from benchmarks.speed.feed import Arrival, chains, hot, mixed, uniform
from benchmarks.speed.report import Figure, show
from benchmarks.speed.rivals.plain import dictionary
from benchmarks.speed.shard import compliance, microseconds, seconds

SMALL = 10_000
LARGEST = 1_000_000
SHAPED = 100_000
CHAIN = 1_000
GROWTH = 1.2  # times the dictionary's growth
SHAPES = 2.0  # times the uniform stream's cost


def main(largest: int = LARGEST) -> int:
    """Print the cost a document by size and by shape."""
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
            most=GROWTH * large[1] / small[1],
        ),
        *_shapes(),
    ]
    return show("growth of the core step, R1-R10", figures)


def _sizes(largest: int) -> tuple[tuple[float, float], tuple[float, float]]:
    return _measured(mixed(SMALL), 9), _measured(mixed(largest), 2)


def _middle(largest: int) -> list[Figure]:
    if largest <= SHAPED:
        return []
    cost = _measured(mixed(SHAPED), 3)[0]
    return [Figure(name=f"core step, {SHAPED:,} documents", value=cost, unit="us")]


def _measured(stream: Sequence[Arrival], rounds: int) -> tuple[float, float]:
    """Microseconds a document of the core step and of a dictionary, the best of some rounds."""
    _freeze()
    ours = microseconds(compliance(), stream, rounds, process_time)
    bare = min(seconds(lambda: dictionary(stream), process_time) for _ in range(rounds + 3)) / len(stream) * 1e6
    gc.unfreeze()
    return ours, bare


def _shapes() -> list[Figure]:
    streams = {
        "uniform scopes of 4": uniform(SHAPED),
        f"one hot scope of {SHAPED:,}": hot(SHAPED),
        f"chains of {CHAIN:,}": chains(SHAPED, CHAIN),
    }
    found = dict.fromkeys(streams, inf)
    _freeze()
    for _ in range(4):  # in turn, so that a slow moment of the machine meets all shapes alike
        for name, stream in streams.items():
            found[name] = min(found[name], microseconds(compliance(), stream, 1, process_time))
    base = found["uniform scopes of 4"]
    return [
        Figure(name=name, value=cost, unit="us", most=SHAPES * base if cost is not base else None)
        for name, cost in found.items()
    ]


def _freeze() -> None:
    """The stream belongs to the benchmark; the collector looks only at what the fold makes."""
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
