"""The embedded engine from a file to an answer: `python -m benchmarks.speed.embedded [DOCUMENTS]`.

Promise: everything goes through `stream_car.open`, with all shipped packs. (1) A file of 1 KB documents is published;
the clock stops after the first query, so that they are searchable. (2) A new generation is built from the log next to
the current one. (3) Documents are published one by one, each until a query finds it, and compared with the time of a
durable write on this disk. (4) The engine is filled to 10^5 documents and queried; the best of five runs counts, in
wall-clock and processor time.
"""

import gc
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from time import perf_counter, process_time

import msgspec

import stream_car
from benchmarks.speed.event_stream import TICKERS, paragraphs
from benchmarks.speed.report import Figure, quantile, show
from benchmarks.speed.stages import Stages
from stream_car.codec import encode, split_documents
from stream_car.core.documents import Document
from stream_car.local.engine import Engine
from stream_car.local.run_sync import run_sync

DOCUMENTS = 50_000
QUERIED = 100_000
SIZE = 1_000  # bytes per document
ROUNDS = 300
RATE = 8_000.0
REPLAYED = 10_000.0
VISIBLE_MS = 50.0
STAGE_2_MS = 1.0
QUERY_MS = (3.0, 15.0)
RUNS = 5
ANCHORS = 10


def main(documents: int = DOCUMENTS, queried: int = QUERIED) -> int:
    """Print rates, latencies, and where the time of a bulk publish goes."""
    corpus = list(paragraphs(queried, SIZE))
    gc.collect()
    gc.freeze()  # the corpus belongs to the benchmark, not to what is measured
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "documents.jsonl"
        file.write_bytes(b"".join(encode(document) + b"\n" for document in corpus[:documents]))
        fastest = min(_seconds_until_searchable(file, corpus) for _ in range(3))
        with stream_car.open(Path(folder) / "engine") as engine:
            stages = Stages()
            stages.watch(engine)
            begin = perf_counter()
            _publish(engine, file)
            stages.total = perf_counter() - begin
            stages.unwatch(engine)
            missed = _show_bulk_load(documents, fastest, stages)
            missed |= _measure_rebuild(engine)
            missed |= _measure_single_publishes(engine, Path(folder))
            engine.publish(corpus[documents:])
            missed |= measure_queries(engine, queried, QUERY_MS)
    return missed


def _seconds_until_searchable(file: Path, corpus: Sequence[Document]) -> float:
    with stream_car.open() as engine:
        begin = perf_counter()
        _publish(engine, file)
        answer = engine.query(corpus[0].title)
        seconds = perf_counter() - begin
    assert answer.groups
    return seconds


def _publish(engine: Engine, file: Path) -> None:
    with file.open("rb") as stream:
        published = engine.publish(split_documents(stream))
    assert all(receipt.outcome == "accepted" for receipt in published.receipts)


def _show_bulk_load(documents: int, seconds: float, stages: Stages) -> int:
    rate = Figure(
        name="published and searchable", value=documents / seconds, unit="docs/s", at_least=RATE, note="best of three"
    )
    return show(f"one file of {documents:,} documents of 1 KB", [rate, *stages.figures(documents)])


def _measure_rebuild(engine: Engine) -> int:
    with engine.directory.rebuild() as rebuild:
        begin, cpu = perf_counter(), process_time()
        while rebuild.step():
            pass
        wall, cpu = perf_counter() - begin, process_time() - cpu
        rate = Figure(name="records of the log", value=rebuild.applied / wall, unit="docs/s", at_least=REPLAYED)
        cost = Figure(name="processor time, all threads", value=cpu / rebuild.applied * 1e6, unit="us/doc")
    return show("a new state, change log and index built from the log", [rate, cost])


def _measure_single_publishes(engine: Engine, folder: Path) -> int:
    times = [_until_visible(engine, f"latest{number}", number) for number in range(ROUNDS)]
    writes = list(_durable_writes(folder))
    return show(
        f"one publish acknowledged and visible to a query, {ROUNDS} times",
        [
            Figure(name="p50", value=quantile(times, 0.5), unit="ms"),
            Figure(name="p99", value=quantile(times, 0.99), unit="ms", at_most=VISIBLE_MS),
            Figure(name="largest", value=max(times), unit="ms"),
            Figure(name="a durable write of 1 KB alone, p50", value=quantile(writes, 0.5), unit="ms"),
            Figure(name="a durable write of 1 KB alone, p99", value=quantile(writes, 0.99), unit="ms"),
        ],
    )


def _until_visible(engine: Engine, word: str, number: int) -> float:
    [document] = paragraphs(1, SIZE, seed=number + 2)
    document = msgspec.structs.replace(document, id=word, type="pre_clearance_denied", title=word)
    begin = perf_counter()
    engine.publish([document])
    answer = engine.query(word)
    seconds = perf_counter() - begin
    assert answer.groups[0].anchor.id == word
    return seconds * 1e3


def _durable_writes(folder: Path) -> Iterator[float]:
    with (folder / "floor").open("wb", buffering=0) as file:
        for _ in range(ROUNDS):
            begin = perf_counter()
            file.write(b"x" * SIZE)
            os.fsync(file.fileno())
            yield (perf_counter() - begin) * 1e3


def measure_queries(engine: Engine, documents: int, limits_ms: tuple[float, float | None]) -> int:
    """Query an engine that has the first `documents` of `paragraphs`; `limits_ms` are the goals for p50 and p99."""
    random = Random(3)
    engine.query("warm")
    stage_2 = _best([lambda: _stage_2(engine, _anchors(random, documents))] * RUNS)
    whole = _best([lambda: _query(engine, question(random, documents))] * RUNS)
    deep = _best([lambda: _query(engine, question(random, documents), k=100, depth=200)])
    long = _best([lambda: _query(engine, _long_question(random), k=100, depth=200)])
    return show(
        f"queries with {documents:,} documents, the best of {RUNS} times {ROUNDS} queries",
        [
            Figure(name=f"stage 2, {ANCHORS} anchors, p50", value=stage_2.wall[0], unit="ms", at_most=STAGE_2_MS),
            Figure(name=f"stage 2, {ANCHORS} anchors, p99", value=stage_2.wall[1], unit="ms"),
            Figure(name="whole query, p50", value=whole.wall[0], unit="ms", at_most=limits_ms[0]),
            Figure(name="whole query, p99", value=whole.wall[1], unit="ms", at_most=limits_ms[1]),
            Figure(name="  processor time, p50", value=whole.cpu[0], unit="ms"),
            Figure(name="  processor time, p99", value=whole.cpu[1], unit="ms"),
            Figure(name="100 results of 200 anchors, processor time, p50", value=deep.cpu[0], unit="ms"),
            Figure(name="  of a question of 10,000 characters, p50", value=long.cpu[0], unit="ms"),
        ],
    )


class Times(msgspec.Struct, frozen=True):
    """Milliseconds of wall-clock and processor time, each p50 and p99."""

    wall: tuple[float, float]
    cpu: tuple[float, float]


def _best(runs: Sequence[Callable[[], None]]) -> Times:
    """Return the minimum of every figure; other tasks on the machine make a run slower, never faster."""
    times = [_measure(run) for run in runs]
    return Times(
        (min(each.wall[0] for each in times), min(each.wall[1] for each in times)),
        (min(each.cpu[0] for each in times), min(each.cpu[1] for each in times)),
    )


def _measure(run: Callable[[], None]) -> Times:
    wall, cpu = [], []
    for _ in range(ROUNDS):
        begin, cpu_begin = perf_counter(), process_time()
        run()
        cpu.append((process_time() - cpu_begin) * 1e3)
        wall.append((perf_counter() - begin) * 1e3)
    return Times((quantile(wall, 0.5), quantile(wall, 0.99)), (quantile(cpu, 0.5), quantile(cpu, 0.99)))


def _anchors(random: Random, documents: int) -> list[str]:
    return [f"event-{random.randrange(documents):07d}" for _ in range(ANCHORS)]


def question(random: Random, documents: int) -> str:
    """Return a question about a person and a security in the first `documents` of `paragraphs`."""
    person, ticker = random.randrange(documents // 50), random.choice(TICKERS)
    return f"May EMP{person:05d} rely on their pre-clearance to trade {ticker} today?"


def _long_question(random: Random) -> str:
    """Return ten thousand characters in the words of the documents."""
    return " ".join(document.text for document in paragraphs(20, SIZE, seed=random.randrange(1 << 30)))[:10_000]


def _stage_2(engine: Engine, anchors: Sequence[str]) -> None:
    walked = run_sync(engine.directory.projection.walks(anchors))
    assert all(walk is not None for walk in walked)


def _query(engine: Engine, text: str, *, k: int = 5, depth: int = 50) -> None:
    assert engine.query(text, k=k, depth=depth).groups


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
