"""The embedded engine from a file to an answer: `python -m benchmarks.speed.embedded [DOCUMENTS]`.

Promise: everything goes through `stream_car.open`, with all shipped packs. A file of 1 KB documents is
published and the clock stops after the first question, so that they are searchable. Another generation
is built from the log beside it. Then documents are published one by one, each until a question finds
it, beside what the disk itself takes for a durable write. Then the engine is filled to 10^5 documents
and asked; of five runs the best counts, and beside the clock on the wall stands the processor's.
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
from benchmarks.speed.feed import TICKERS, paragraphs
from benchmarks.speed.report import Figure, quantile, show
from benchmarks.speed.stages import Stages
from stream_car.codec import documents_in, encode
from stream_car.core.documents import Document
from stream_car.local.engine import Engine
from stream_car.local.run_sync import at_once

DOCUMENTS = 50_000
QUERIED = 100_000
SIZE = 1_000  # bytes a document
ROUNDS = 300
RATE = 8_000.0
REPLAYED = 10_000.0
VISIBLE_MS = 50.0
STAGE_2_MS = 1.0
QUERY_MS = (3.0, 15.0)
RUNS = 5
ANCHORS = 10


def main(documents: int = DOCUMENTS, queried: int = QUERIED) -> int:
    """Print rates and latencies, and where the time of a bulk publish goes."""
    corpus = list(paragraphs(queried, SIZE))
    gc.collect()
    gc.freeze()  # the corpus belongs to the benchmark, not to what is measured
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "documents.jsonl"
        file.write_bytes(b"".join(encode(document) + b"\n" for document in corpus[:documents]))
        took = min(_published(file, corpus) for _ in range(3))
        with stream_car.open(Path(folder) / "engine") as engine:
            stages = Stages()
            stages.watch(engine)
            begin = perf_counter()
            _publish(engine, file)
            stages.total = perf_counter() - begin
            stages.delete_up_to(engine)
            missed = _bulk(documents, took, stages)
            missed |= _replayed(engine)
            missed |= _single(engine, Path(folder))
            engine.publish(corpus[documents:])
            missed |= asked(engine, queried, QUERY_MS)
    return missed


def _published(file: Path, corpus: Sequence[Document]) -> float:
    with stream_car.open() as engine:
        begin = perf_counter()
        _publish(engine, file)
        found = engine.query(corpus[0].title)
        took = perf_counter() - begin
    assert found.groups
    return took


def _publish(engine: Engine, file: Path) -> None:
    with file.open("rb") as stream:
        published = engine.publish(documents_in(stream))
    assert all(receipt.outcome == "accepted" for receipt in published.receipts)


def _bulk(documents: int, took: float, stages: Stages) -> int:
    rate = Figure(
        name="to frontier and searchable", value=documents / took, unit="docs/s", least=RATE, note="best of three"
    )
    return show(f"one file of {documents:,} documents of 1 KB", [rate, *stages.figures(documents)])


def _replayed(engine: Engine) -> int:
    with engine.rebuild() as rebuild:
        begin, spent = perf_counter(), process_time()
        while rebuild.step():
            pass
        took, spent = perf_counter() - begin, process_time() - spent
        rate = Figure(name="records of the log", value=rebuild.applied / took, unit="docs/s", least=REPLAYED)
        worked = Figure(name="processor's time, all threads", value=spent / rebuild.applied * 1e6, unit="us/doc")
    return show("state, changes and index built beside the old ones from the log", [rate, worked])


def _single(engine: Engine, folder: Path) -> int:
    times = [_until_visible(engine, f"latest{number}", number) for number in range(ROUNDS)]
    floor = list(_durable_writes(folder))
    return show(
        f"one publish acknowledged and visible to a question, {ROUNDS} times",
        [
            Figure(name="p50", value=quantile(times, 0.5), unit="ms"),
            Figure(name="p99", value=quantile(times, 0.99), unit="ms", most=VISIBLE_MS),
            Figure(name="largest", value=max(times), unit="ms"),
            Figure(name="a durable write of 1 KB alone, p50", value=quantile(floor, 0.5), unit="ms"),
            Figure(name="a durable write of 1 KB alone, p99", value=quantile(floor, 0.99), unit="ms"),
        ],
    )


def _until_visible(engine: Engine, word: str, number: int) -> float:
    [document] = paragraphs(1, SIZE, seed=number + 2)
    document = msgspec.structs.replace(document, id=word, type="pre_clearance_denied", title=word)
    begin = perf_counter()
    engine.publish([document])
    answer = engine.query(word)
    took = perf_counter() - begin
    assert answer.groups[0].anchor.id == word
    return took * 1e3


def _durable_writes(folder: Path) -> Iterator[float]:
    with (folder / "floor").open("wb", buffering=0) as file:
        for _ in range(ROUNDS):
            begin = perf_counter()
            file.write(b"x" * SIZE)
            os.fsync(file.fileno())
            yield (perf_counter() - begin) * 1e3


def asked(engine: Engine, documents: int, most: tuple[float, float | None]) -> int:
    """Ask an engine that holds the first so many `paragraphs`, in all packs; `most` are the goals, p50 and p99."""
    random = Random(3)
    engine.query("warm")
    second = _best([lambda: _stage_2(engine, _anchors(random, documents))] * RUNS)
    whole = _best([lambda: _whole(engine, _question(random, documents))] * RUNS)
    deep = _best([lambda: _whole(engine, _question(random, documents), k=100, depth=200)])
    long = _best([lambda: _whole(engine, _long(random), k=100, depth=200)])
    return show(
        f"asked at {documents:,} documents, the best of {RUNS} times {ROUNDS} questions",
        [
            Figure(name=f"stage 2, {ANCHORS} anchors, p50", value=second.wall[0], unit="ms", most=STAGE_2_MS),
            Figure(name=f"stage 2, {ANCHORS} anchors, p99", value=second.wall[1], unit="ms"),
            Figure(name="whole query, p50", value=whole.wall[0], unit="ms", most=most[0]),
            Figure(name="whole query, p99", value=whole.wall[1], unit="ms", most=most[1]),
            Figure(name="  processor's time, p50", value=whole.spent[0], unit="ms"),
            Figure(name="  processor's time, p99", value=whole.spent[1], unit="ms"),
            Figure(name="100 results of 200 anchors, processor's time, p50", value=deep.spent[0], unit="ms"),
            Figure(name="  of a question of 10,000 characters, p50", value=long.spent[0], unit="ms"),
        ],
    )


class Times(msgspec.Struct, frozen=True):
    """Milliseconds by the clock on the wall and by the processor's, each p50 and p99."""

    wall: tuple[float, float]
    spent: tuple[float, float]


def _best(runs: Sequence[Callable[[], None]]) -> Times:
    """The least of every figure; other tasks on the machine make a run slower, never faster."""
    every = [_times(run) for run in runs]
    return Times(
        (min(one.wall[0] for one in every), min(one.wall[1] for one in every)),
        (min(one.spent[0] for one in every), min(one.spent[1] for one in every)),
    )


def _times(ask: Callable[[], None]) -> Times:
    wall, spent = [], []
    for _ in range(ROUNDS):
        begin, worked = perf_counter(), process_time()
        ask()
        spent.append((process_time() - worked) * 1e3)
        wall.append((perf_counter() - begin) * 1e3)
    return Times((quantile(wall, 0.5), quantile(wall, 0.99)), (quantile(spent, 0.5), quantile(spent, 0.99)))


def _anchors(random: Random, documents: int) -> list[str]:
    return [f"event-{random.randrange(documents):07d}" for _ in range(ANCHORS)]


def _question(random: Random, documents: int) -> str:
    person, ticker = random.randrange(documents // 50), random.choice(TICKERS)
    return f"May EMP{person:05d} rely on their pre-clearance to trade {ticker} today?"


def _long(random: Random) -> str:
    """Some ten thousand characters in the words of the documents."""
    return " ".join(one.text for one in paragraphs(20, SIZE, seed=random.randrange(1 << 30)))[:10_000]


def _stage_2(engine: Engine, anchors: Sequence[str]) -> None:
    walked = at_once(engine._built.queries.reader().walk(anchors))
    assert all(one is not None for one in walked)


def _whole(engine: Engine, question: str, *, k: int = 5, depth: int = 50) -> None:
    assert engine.query(question, k=k, depth=depth).groups


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
