"""The embedded engine from a file to an answer: `python -m tests.benchmarks.embedded [DOCUMENTS]`.

Promise: everything goes through `stream_car.open`, with all shipped packs. A file of 1 KB documents is
published and the clock stops after the first question, so that they are searchable. Another generation
is built from the log beside it. Then documents are published one by one, each until a question finds
it, beside what the disk itself takes for a durable write. Then the engine is filled to 10^5 documents
and asked.
"""

import gc
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from time import perf_counter, process_time

import msgspec

import stream_car
from stream_car.codec import documents_in, encode
from stream_car.core.documents import Document
from stream_car.runtime.at_once import at_once
from stream_car.runtime.embedded import Engine
from tests.benchmarks.feed import TICKERS, paragraphs
from tests.benchmarks.report import Figure, quantile, show
from tests.benchmarks.stages import Stages

DOCUMENTS = 50_000
QUERIED = 100_000
SIZE = 1_000  # bytes a document
ROUNDS = 300
RATE = 8_000.0
REPLAYED = 10_000.0
VISIBLE_MS = 50.0
STAGE_2_MS = 1.0
QUERY_MS = (3.0, 15.0)
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
            stages.forget(engine)
            missed = _bulk(documents, took, stages)
            missed |= _replayed(engine)
            missed |= _single(engine, Path(folder))
            engine.publish(corpus[documents:])
            missed |= _asked(engine, corpus)
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


def _asked(engine: Engine, corpus: Sequence[Document]) -> int:
    random = Random(3)
    engine.query("warm")
    second = [_stage_2(engine, [random.choice(corpus).id for _ in range(ANCHORS)]) for _ in range(ROUNDS)]
    whole = [_whole(engine, _question(random, len(corpus))) for _ in range(ROUNDS)]
    return show(
        f"asked at {len(corpus):,} documents, {ROUNDS} times",
        [
            Figure(name=f"stage 2, {ANCHORS} anchors, p50", value=quantile(second, 0.5), unit="ms", most=STAGE_2_MS),
            Figure(name=f"stage 2, {ANCHORS} anchors, p99", value=quantile(second, 0.99), unit="ms"),
            Figure(name="whole query, p50", value=quantile(whole, 0.5), unit="ms", most=QUERY_MS[0]),
            Figure(name="whole query, p99", value=quantile(whole, 0.99), unit="ms", most=QUERY_MS[1]),
        ],
    )


def _question(random: Random, documents: int) -> str:
    person, ticker = random.randrange(documents // 50), random.choice(TICKERS)
    return f"May EMP{person:05d} rely on their pre-clearance to trade {ticker} today?"


def _stage_2(engine: Engine, anchors: Sequence[str]) -> float:
    begin = perf_counter()
    walked = at_once(engine._built.queries.reader().walk(anchors))
    took = perf_counter() - begin
    assert all(one is not None for one in walked)
    return took * 1e3


def _whole(engine: Engine, question: str) -> float:
    begin = perf_counter()
    answer = engine.query(question)
    took = perf_counter() - begin
    assert answer.groups
    return took * 1e3


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
