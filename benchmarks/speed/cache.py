"""The answer cache: `python -m benchmarks.speed.cache [DOCUMENTS] [QUERIES]`.

Promise: everything goes through the library's `Engine`. After the cache is filled with answers to QUERIES queries, the
benchmark measures what they add to the cost of a publication, and the cost of a query that is cached, cached but
repeated after another publication, or new, with and without the cache. Processor time, medians.
"""

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from random import Random
from time import process_time

import stream_car
from benchmarks.speed.event_stream import TICKERS, paragraphs
from benchmarks.speed.report import Figure, quantile, show
from stream_car.local.engine import Engine
from stream_car.rule_packs import load

DOCUMENTS = 50_000
QUERIES = 10_000
ROUNDS = 300
SIZE = 1_000
INSERT_US = 20.0


def main(documents: int = DOCUMENTS, queries: int = QUERIES) -> int:
    """Print what the cache costs and what it saves."""
    corpus = list(paragraphs(documents + 2 * ROUNDS, SIZE))
    gc.collect()
    gc.freeze()
    with stream_car.Engine(ruleset=load(()), cache_bytes=1 << 30) as engine:
        engine.publish(corpus[:documents])
        engine.query("warm")
        questions = list(_questions(documents, queries))
        new = [_microseconds(lambda q=q: engine.query(q)) for q in questions]  # type: ignore[misc]
        cache = engine.directory.projection.queries.cache
        assert cache is not None
        entries, size = len(cache), cache.size
        cached = [_microseconds(lambda q=q: engine.query(q)) for q in questions[:ROUNDS]]  # type: ignore[misc]
        with _without_cache(engine):
            uncached = [_microseconds(lambda q=q: engine.query(q)) for q in questions[:ROUNDS]]  # type: ignore[misc]
        inserts, repeated, repeated_uncached = [], [], []
        for document, question in zip(corpus[documents:], questions[:ROUNDS], strict=False):
            timer = _InvalidationTimer(engine)
            engine.publish([document])
            inserts.append(timer.stop())
            repeated.append(_microseconds(lambda q=question: engine.query(q)))  # type: ignore[misc]
        with _without_cache(engine):
            for document, question in zip(corpus[documents + ROUNDS :], questions[:ROUNDS], strict=False):
                engine.publish([document])
                repeated_uncached.append(_microseconds(lambda q=question: engine.query(q)))  # type: ignore[misc]
    figures = [
        Figure(name="added cost of a publication", value=quantile(inserts, 0.5), unit="us", at_most=INSERT_US),
        Figure(name="added cost of a publication, p99", value=quantile(inserts, 0.99), unit="us"),
        Figure(name="cached query", value=quantile(cached, 0.5), unit="us"),
        Figure(name="the same, one publication later", value=quantile(repeated, 0.5), unit="us"),
        Figure(name="new query", value=quantile(new, 0.5), unit="us"),
        Figure(name="without the cache", value=quantile(uncached, 0.5), unit="us"),
        Figure(name="the same, one publication later", value=quantile(repeated_uncached, 0.5), unit="us"),
        Figure(
            name="size of an answer", value=size / entries / 1e3, unit="KB", note=f"{entries:,} cached, as it counts"
        ),
    ]
    return show(f"{queries:,} queries on {documents:,} documents", figures)


def _questions(documents: int, count: int) -> Iterator[str]:
    random = Random(3)
    for number in range(count):
        person, ticker = random.randrange(documents // 50), random.choice(TICKERS)
        yield f"May EMP{person:05d} rely on pre-clearance {number} to trade {ticker} today?"


def _microseconds(query: Callable[[], object]) -> float:
    begin = process_time()
    query()
    return (process_time() - begin) * 1e6


@contextmanager
def _without_cache(engine: Engine) -> Iterator[None]:
    cache, engine.directory.projection.queries.cache = engine.directory.projection.queries.cache, None
    yield
    engine.directory.projection.queries.cache = cache


class _InvalidationTimer:
    """Measures the time that the cache takes during one publication."""

    def __init__(self, engine: Engine) -> None:
        self.cache = engine.directory.projection.queries.cache
        assert self.cache is not None
        self.seconds = 0.0
        invalidate = self.cache.invalidate

        def timed(offset: int, touched: Iterable[bytes]) -> None:
            begin = process_time()
            invalidate(offset, touched)
            self.seconds += process_time() - begin

        self.cache.invalidate = timed  # type: ignore[method-assign]

    def stop(self) -> float:
        """Stop the timer; return microseconds."""
        assert self.cache is not None
        del self.cache.invalidate
        return self.seconds * 1e6


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
