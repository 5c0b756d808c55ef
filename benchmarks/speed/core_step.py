"""The core step beside what else could do it: `python -m benchmarks.speed.core_step [DOCUMENTS]`.

The core step takes decoded statements to named, numbered changes: scopes, intake fold, frontier
fold; no bytes, and the digest given. Packs, stream and collector are the same for all. Every rival's
frontiers are compared with the fold's at the end, and a rival that differs fails the run.
"""

import gc
import sys
from collections.abc import Callable, Sequence

from benchmarks.speed.feed import Arrival, mixed
from benchmarks.speed.report import Figure, show
from benchmarks.speed.rivals import Outcome, plain
from benchmarks.speed.rivals.sqlite import sqlite_triggers
from benchmarks.speed.shard import compliance, held, microseconds, seconds, take
from stream_car.core import frontier
from stream_car.processing.state import State

DOCUMENTS = 100_000
DEFINED = 1_000  # documents that the definition is recomputed over
LONG = 10.0  # seconds beyond which a rival runs once
TIMES_PATHWAY = 3.0
NOT_RUN = 'not run: needs pip install "stream-car[bench]"'

Rival = Callable[[Sequence[Arrival]], Outcome]


def main(documents: int = DOCUMENTS) -> int:
    """Run all on one stream and print microseconds a document."""
    fold = compliance()
    stream = mixed(documents)
    gc.collect()
    gc.freeze()  # the stream belongs to the benchmark, not to what is measured
    begun, lacking = _rivals()
    ours = microseconds(fold, stream)
    notes: list[str] = []
    figures = [
        Figure(name="bare dictionary insert", value=_dictionary(stream), unit="us"),
        Figure(name="core step", value=ours, unit="us", note=f"best of five, {_form()}"),
    ]
    pathway = 0.0
    for name, size, run in begun:
        part = stream[:size]
        outcome = _best(run, part)
        values = State()
        take(fold, values, part)
        differing = len(outcome.held ^ held(fold, values))
        if differing:
            notes.append(f"{name} is WRONG: {differing} members differ from the fold's")
        each = outcome.seconds / len(part) * 1e6
        if name == PATHWAY:
            pathway = each
        note = f"{each / ours:,.1f} times the core step" + (f", at {size:,}" if size < documents else "")
        figures.append(Figure(name=name, value=each, unit="us", note=note))
    if pathway:
        figures.append(Figure(name="Pathway / core step", value=pathway / ours, unit="times", least=TIMES_PATHWAY))
    return show(f"core step, R1-R10, mixed stream of {documents:,}", figures, notes + lacking) or int(bool(notes))


def _form() -> str:
    return "interpreted" if str(frontier.__file__).endswith(".py") else "compiled"


PATHWAY = "Pathway, changes awaited after each 100"


def _rivals() -> tuple[list[tuple[str, int, Rival]], list[str]]:
    """Name, size and function of what is installed, and a line for what is not."""
    fold = compliance()
    found: list[tuple[str, int, Rival]] = [
        ("definition recomputed", DEFINED, lambda part: plain.definition(fold, part)),
        ("SQLite triggers", sys.maxsize, lambda part: sqlite_triggers(fold, part)),
    ]
    lacking: list[str] = []
    try:
        from benchmarks.speed.rivals import duck

        found.append(("DuckDB, commits of 100", sys.maxsize, lambda part: duck.duckdb_batches(fold, part)))
    except ImportError:
        lacking.append(f"DuckDB {NOT_RUN}")
    try:
        from benchmarks.speed.rivals import path

        found += [
            (PATHWAY, sys.maxsize, lambda part: path.whole_task(fold, part)),
            ("Pathway, nobody waits", sys.maxsize, lambda part: path.whole_task(fold, part, wait=False)),
            ("Pathway, frontier alone, nobody waits", sys.maxsize, lambda part: path.frontier_only(fold, part)),
        ]
    except ImportError:
        lacking.append(f"Pathway {NOT_RUN}")
    return found, lacking


def _best(run: Rival, stream: Sequence[Arrival]) -> Outcome:
    """The fastest of three; of one where that takes long."""
    outcome = run(stream)
    for _ in range(2 if outcome.seconds < LONG else 0):
        outcome = min(outcome, run(stream), key=lambda one: one.seconds)
    return outcome


def _dictionary(stream: Sequence[Arrival]) -> float:
    return min(seconds(lambda: plain.dictionary(stream)) for _ in range(5)) / len(stream) * 1e6


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
