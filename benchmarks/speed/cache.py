"""The answer cache: `python -m benchmarks.speed.cache [DOCUMENTS] [QUERIES]`.

Promise: everything goes through `stream_car.open`. So many questions are kept; then it is measured what a
new document pays for them, and what a question costs that is known, known but asked after something
else was published, or new, with the cache and without. Processor time, medians.
"""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random
from time import process_time

import stream_car
from benchmarks.speed.feed import TICKERS, paragraphs
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
        new = [_took(lambda q=q: engine.query(q)) for q in questions]  # type: ignore[misc]
        cache = engine._built.queries.cache
        assert cache is not None
        kept, size = len(cache), cache.size
        known = [_took(lambda q=q: engine.query(q)) for q in questions[:ROUNDS]]  # type: ignore[misc]
        with _off(engine):
            bare = [_took(lambda q=q: engine.query(q)) for q in questions[:ROUNDS]]  # type: ignore[misc]
        inserts, later, later_bare = [], [], []
        for document, question in zip(corpus[documents:], questions[:ROUNDS], strict=False):
            spent = _Spent(engine)
            engine.publish([document])
            inserts.append(spent.stop())
            later.append(_took(lambda q=question: engine.query(q)))  # type: ignore[misc]
        with _off(engine):
            for document, question in zip(corpus[documents + ROUNDS :], questions[:ROUNDS], strict=False):
                engine.publish([document])
                later_bare.append(_took(lambda q=question: engine.query(q)))  # type: ignore[misc]
    figures = [
        Figure(name="an insert pays", value=quantile(inserts, 0.5), unit="us", most=INSERT_US),
        Figure(name="an insert pays, p99", value=quantile(inserts, 0.99), unit="us"),
        Figure(name="a question that is known", value=quantile(known, 0.5), unit="us"),
        Figure(name="the same, one publication later", value=quantile(later, 0.5), unit="us"),
        Figure(name="a question that is new", value=quantile(new, 0.5), unit="us"),
        Figure(name="without the cache", value=quantile(bare, 0.5), unit="us"),
        Figure(name="the same, one publication later", value=quantile(later_bare, 0.5), unit="us"),
        Figure(name="an answer takes", value=size / kept / 1e3, unit="KB", note=f"{kept:,} kept, by the cache's count"),
    ]
    return show(f"{queries:,} questions over {documents:,} documents", figures)


def _questions(documents: int, count: int) -> Iterator[str]:
    random = Random(3)
    for number in range(count):
        person, ticker = random.randrange(documents // 50), random.choice(TICKERS)
        yield f"May EMP{person:05d} rely on pre-clearance {number} to trade {ticker} today?"


def _took(ask: Callable[[], object]) -> float:
    begin = process_time()
    ask()
    return (process_time() - begin) * 1e6


@contextmanager
def _off(engine: Engine) -> Iterator[None]:
    cache, engine._built.queries.cache = engine._built.queries.cache, None
    yield
    engine._built.queries.cache = cache


class _Spent:
    """The time that the cache takes of one publication."""

    def __init__(self, engine: Engine) -> None:
        self.cache = engine._built.queries.cache
        assert self.cache is not None
        self.spent = 0.0
        plain = self.cache.invalidate

        def timed(offset: int, touched: list[bytes]) -> None:
            begin = process_time()
            plain(offset, touched)
            self.spent += process_time() - begin

        self.cache.invalidate = timed  # type: ignore[method-assign,assignment]

    def stop(self) -> float:
        """Microseconds."""
        assert self.cache is not None
        del self.cache.invalidate
        return self.spent * 1e6


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
