"""The core step compared with its rivals: `python -m benchmarks.speed.core_step [DOCUMENTS]`.

The core step turns decoded statements into named, numbered changes: scopes, intake fold, frontier fold; no bytes, and
the digest is given. Packs, stream and garbage collection are the same for all. Every rival's frontiers are compared
with the fold's at the end, and a rival that differs fails the run.
"""

import gc
import sys
from collections.abc import Callable, Sequence

from benchmarks.speed.event_stream import Arrival, mixed
from benchmarks.speed.report import Figure, show
from benchmarks.speed.rivals import Outcome, plain
from benchmarks.speed.rivals.sqlite import sqlite_triggers
from benchmarks.speed.shard import active_members, apply, compliance_fold, microseconds, seconds
from stream_car.core import frontier
from stream_car.processing.state import State

DOCUMENTS = 100_000
DEFINED = 1_000  # documents for which the definition is recomputed
LONG = 10.0  # seconds after which a rival runs only once
TIMES_PATHWAY = 3.0
NOT_RUN = 'not run: needs pip install "stream-car[bench]"'

Rival = Callable[[Sequence[Arrival]], Outcome]


def main(documents: int = DOCUMENTS) -> int:
    """Run all rivals on one stream and print microseconds per document."""
    fold = compliance_fold()
    stream = mixed(documents)
    gc.collect()
    gc.freeze()  # the stream belongs to the benchmark, not to what is measured
    rivals, not_run = _rivals()
    ours = microseconds(fold, stream)
    notes: list[str] = []
    figures = [
        Figure(name="bare dictionary insert", value=_dictionary(stream), unit="us"),
        Figure(name="core step", value=ours, unit="us", note=f"best of five, {_form()}"),
    ]
    pathway = 0.0
    for name, size, run in rivals:
        part = stream[:size]
        outcome = _best(run, part)
        state = State()
        apply(fold, state, part)
        differing = len(outcome.members ^ active_members(fold, state))
        if differing:
            notes.append(f"{name} is WRONG: {differing} members differ from the fold's")
        cost = outcome.seconds / len(part) * 1e6
        if name == PATHWAY:
            pathway = cost
        note = f"{cost / ours:,.1f} times the core step" + (f", at {size:,}" if size < documents else "")
        figures.append(Figure(name=name, value=cost, unit="us", note=note))
    if pathway:
        figures.append(Figure(name="Pathway / core step", value=pathway / ours, unit="times", at_least=TIMES_PATHWAY))
    return show(f"core step, R1-R10, mixed stream of {documents:,}", figures, notes + not_run) or int(bool(notes))


def _form() -> str:
    return "interpreted" if str(frontier.__file__).endswith(".py") else "compiled"


PATHWAY = "Pathway, changes awaited after each 100"


def _rivals() -> tuple[list[tuple[str, int, Rival]], list[str]]:
    """Return the installed rivals as name, size and function, and a line for each that is not installed."""
    fold = compliance_fold()
    rivals: list[tuple[str, int, Rival]] = [
        ("definition recomputed", DEFINED, lambda part: plain.definition(fold, part)),
        ("SQLite triggers", sys.maxsize, lambda part: sqlite_triggers(fold, part)),
    ]
    not_run: list[str] = []
    try:
        from benchmarks.speed.rivals import duck

        rivals.append(("DuckDB, commits of 100", sys.maxsize, lambda part: duck.duckdb_batches(fold, part)))
    except ImportError:
        not_run.append(f"DuckDB {NOT_RUN}")
    try:
        from benchmarks.speed.rivals import pathway_joins

        rivals += [
            (PATHWAY, sys.maxsize, lambda part: pathway_joins.whole_task(fold, part)),
            ("Pathway, without waiting", sys.maxsize, lambda part: pathway_joins.whole_task(fold, part, wait=False)),
            (
                "Pathway, frontier only, without waiting",
                sys.maxsize,
                lambda part: pathway_joins.frontier_only(fold, part),
            ),
        ]
    except ImportError:
        not_run.append(f"Pathway {NOT_RUN}")
    return rivals, not_run


def _best(run: Rival, stream: Sequence[Arrival]) -> Outcome:
    """Return the fastest of three runs, or the only run if it takes long."""
    outcome = run(stream)
    for _ in range(2 if outcome.seconds < LONG else 0):
        outcome = min(outcome, run(stream), key=lambda each: each.seconds)
    return outcome


def _dictionary(stream: Sequence[Arrival]) -> float:
    return min(seconds(lambda: plain.dictionary(stream)) for _ in range(5)) / len(stream) * 1e6


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
