"""A bulk publish beside the SQLite that a user would build: `python -m benchmarks.speed.bulk_publish [DOCUMENTS]`.

Promise: both take the same file of 1 KB documents, in turn, each time in a process of its own, and the clock stops when
a query has found documents. Processor time is that of all threads; the best round of each counts. Afterwards a sample
of the documents must be superseded, or not, on both sides alike. A second argument sets the number of rounds.
"""

import gc
import sys
import tempfile
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time

from msgspec import Struct

import stream_car
from benchmarks.speed.event_stream import paragraphs
from benchmarks.speed.report import Figure, show
from benchmarks.speed.rivals.sqlite_search import SqliteSearch
from benchmarks.speed.shard import compliance_fold
from stream_car.codec import encode, split_documents

DOCUMENTS = 50_000
SIZE = 1_000  # bytes per document
ROUNDS = 3
SAMPLED = 100  # documents that are compared
RATE = 2.0  # times that of SQLite
COST = 0.6  # times its processor time


class Run(Struct, frozen=True):
    """Seconds of wall-clock and processor time, bytes on disk, and the documents of the sample that are superseded."""

    wall: float
    cpu: float
    disk: int
    superseded: tuple[str, ...]


def main(documents: int = DOCUMENTS, rounds: int = ROUNDS) -> int:
    """Print rates, costs and their ratios beside the goals."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "documents.jsonl"
        with file.open("wb") as stream:
            stream.writelines(encode(document) + b"\n" for document in paragraphs(documents, SIZE))
        pairs = [(_run(_stream_car, file, documents), _run(_sqlite, file, documents)) for _ in range(rounds)]
    assert all(ours.superseded == theirs.superseded for ours, theirs in pairs), "frontiers differ"
    ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    rate = min(run.wall for run in theirs) / min(run.wall for run in ours)
    cost = min(run.cpu for run in ours) / min(run.cpu for run in theirs)
    return show(
        f"{documents:,} documents of 1 KB from a file to the frontier and searchable, best of {rounds} rounds in turn",
        [
            *_figures("Stream-CAR", ours, documents),
            *_figures("SQLite, triggers and FTS5", theirs, documents),
            Figure(name="rate / SQLite's", value=rate, unit="times", at_least=RATE),
            Figure(name="processor time / SQLite's", value=cost, unit="times", at_most=COST),
        ],
    )


def _figures(name: str, runs: Sequence[Run], documents: int) -> list[Figure]:
    best = min(run.cpu for run in runs) / documents * 1e6
    each = ", ".join(f"{run.cpu / documents * 1e6:.0f}" for run in runs)
    return [
        Figure(name=name, value=documents / min(run.wall for run in runs), unit="docs/s"),
        Figure(name="  processor time, all threads", value=best, unit="us/doc", note=f"rounds {each}"),
        Figure(name="  disk", value=runs[0].disk / documents, unit="bytes/doc"),
    ]


def _run(publish: Callable[[Path, Path, int], Run], file: Path, documents: int) -> Run:
    """Run one side in a process of its own, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder, get_context("spawn").Pool(1) as process:
        return process.apply(publish, (Path(folder), file, documents))


def _stream_car(folder: Path, file: Path, documents: int) -> Run:
    with stream_car.open(folder / "engine") as engine:
        gc.collect()
        begin, cpu = perf_counter(), process_time()
        with file.open("rb") as stream:
            published = engine.publish(split_documents(stream))
        assert engine.query(_name(documents - 1)).groups
        wall, cpu = perf_counter() - begin, process_time() - cpu
        assert all(receipt.outcome == "accepted" for receipt in published.receipts)
        resolved = engine.resolve(_sample(documents))
        superseded = tuple(document.name for document in resolved if document.status == "superseded")
    return Run(wall, cpu, _size(folder), superseded)


def _sqlite(folder: Path, file: Path, documents: int) -> Run:
    database = SqliteSearch(folder / "documents.sqlite", compliance_fold())
    gc.collect()
    begin, cpu = perf_counter(), process_time()
    with file.open("rb") as stream:
        database.publish(stream)
    assert database.query("clearance")
    wall, cpu = perf_counter() - begin, process_time() - cpu
    superseded = database.superseded()
    database.close()
    return Run(wall, cpu, _size(folder), tuple(name for name in _sample(documents) if name in superseded))


def _name(number: int) -> str:
    return f"event-{number:07d}"


def _sample(documents: int) -> list[str]:
    return [_name(number) for number in range(0, documents, max(1, documents // SAMPLED))]


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
