"""Whatever is published between two questions, an answer from the cache equals one that is computed again."""

from collections import Counter
from random import Random

import pytest
from msgspec.structs import replace

from stream_car.core.documents import Document, Statement
from stream_car.local.run_sync import run_sync
from stream_car.ports import IndexedDocument
from stream_car.processing.fold import Fold
from stream_car.queries.answers import Answer
from stream_car.queries.cache import AnswerCache
from stream_car.queries.queries import Queries
from stream_car.queries.shards import OneShard
from tests.support.memory_shard import Memory
from tests.support.plain_index import PeekedStore, PlainIndex
from tests.support.streams import random_rules, random_stream

WORDS = ("ash", "birch", "cedar", "elm", "fir", "larch", "oak", "pine", "yew")
NOW = 8  # documents of a later time wait
QUESTIONS = 12


class World:
    """A shard and an index in memory, queried with a cache and without."""

    def __init__(self, random: Random, *, bytes_max: int = 1 << 20) -> None:
        self.random = random
        ruleset = random_rules(random)
        self.memory = Memory(Fold(ruleset, skew=0))
        self.store, self.index = PeekedStore(self.memory), PlainIndex()
        self.cache = AnswerCache(bytes_max)
        self.cached = Queries(
            shards=OneShard(self.store), index=self.index, ruleset=ruleset, generation="g", cache=self.cache
        )
        self.plain = Queries(shards=OneShard(self.store), index=self.index, ruleset=ruleset, generation="g")
        self.now = NOW
        self.stream: list[Statement] = []
        self.questions = [
            (
                " ".join(random.sample(WORDS, random.choice((1, 2, 3)))),
                random.choice((1, 2, 9)),
                random.choice((1, 3, 9)),
            )
            for _ in range(QUESTIONS)
        ]

    def next_statement(self) -> Statement | None:
        """Return the next statement of a random stream, whose text has few words; now and then a tick."""
        if self.random.random() < 0.1:
            self.now += 1
            return None
        if not self.stream:
            self.stream = random_stream(self.random, 30)
        statement = self.stream.pop()
        if not isinstance(statement, Document):
            return statement
        text = " ".join(self.random.choices(WORDS, k=self.random.randint(1, 12)))
        time = statement.time + self.random.choice((0, 3))
        return replace(statement, text=text, revision=self.random.randint(1, 9), time=time)

    def publish(self) -> None:
        """Apply one more record to state, cache and index."""
        statement = self.next_statement()
        offset = self.memory.offset
        effects = self.memory.feed(statement, self.now)
        self.store.write(effects.touched)
        self.cache.invalidate(offset, effects.touched)
        if effects.outcome in ("accepted", "pending") and isinstance(statement, Document):
            run_sync(self.index.apply([IndexedDocument(document=statement)], (), self.memory.offset))
        elif effects.outcome == "retracted" and statement is not None:
            run_sync(self.index.apply((), [statement.id], self.memory.offset))

    def query(self) -> tuple[Answer, Answer]:
        """Return the answers to the same question with and without the cache."""
        text, k, depth = self.random.choice(self.questions)
        as_of = self.random.choice((None, None, None, 5))
        cached, plain = (
            run_sync(queries.query(text, k=k, depth=depth, as_of=as_of)) for queries in (self.cached, self.plain)
        )
        return cached, plain


def interleave(seed: int, steps: int, *, bytes_max: int = 1 << 20) -> World:
    """Publish and query in random order; every answer is compared."""
    random = Random(seed)
    world = World(random, bytes_max=bytes_max)
    query_rate = random.choice((0.3, 0.6, 0.9))
    for step in range(steps):
        if random.random() < query_rate:
            cached, plain = world.query()
            assert cached == plain, f"seed {seed}, step {step}"
        else:
            world.publish()
    return world


@pytest.mark.parametrize("block", range(5))
def test_no_answer_is_stale_in_ten_thousand_interleavings(block: int) -> None:
    worlds = [interleave(100 * block + n, 100) for n in range(20)]

    assert sum(world.cache.hits for world in worlds) > 200


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_no_answer_is_stale_in_a_million_interleavings(block: int) -> None:
    worlds = [interleave(10_000 + 1000 * block + n, 250) for n in range(200)]

    assert sum(world.cache.hits for world in worlds) > 5000


def test_a_small_cache_evicts_answers_and_stays_correct() -> None:
    worlds = [interleave(seed, 200, bytes_max=30_000) for seed in range(5)]

    assert all(world.cache.size <= 30_000 for world in worlds)
    assert sum(world.cache.hits for world in worlds) > 50
    for world in worlds:
        read = Counter(key for cached in world.cache._answers.values() for key in cached.keys)
        assert {key: mark.readers for key, mark in world.cache._tracked_keys.items()} == read
