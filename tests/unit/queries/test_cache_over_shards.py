"""Answers given again over shards that others move: only while nothing has changed for them."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from stream_car.core.documents import Document
from stream_car.errors import Unavailable
from stream_car.local.run_sync import run_sync
from stream_car.ports import IndexedDocument
from stream_car.queries.answers import Answer
from stream_car.queries.cache import ManyShardsCache
from stream_car.queries.queries import Queries
from tests.support.engines import RULESET, document
from tests.support.two_hop_folds import TWO
from tests.support.two_hops import TwoHops

WORDS = ("ash", "birch", "cedar", "elm", "fir")


class CachedHops:
    """Both hops, queried with a cache and without."""

    def __init__(self, folder: Path) -> None:
        self.hops = TwoHops(folder)
        self.plain = self.hops.queries
        self.cache = ManyShardsCache()
        self.cached = Queries(
            shards=self.plain.shards, index=self.plain.index, ruleset=RULESET, generation="g", cache=self.cache
        )

    def publish(self, *documents: Document) -> None:
        """Publish to both hops and to the index."""
        self.take_in(*documents)
        self.hops.emit_watermarks()
        self.hops.apply(0, 1)

    def take_in(self, *documents: Document) -> None:
        """Publish to intake and the index only."""
        self.hops.publish(*documents)
        postings = [IndexedDocument(document=document, scopes=RULESET.scopes(document)) for document in documents]
        run_sync(self.plain.index.apply(postings, (), 0))

    def query(self, text: str) -> tuple[Answer, Answer]:
        """The same question with and without the cache, without what it cost."""
        cached, plain = (free_of_cost(run_sync(queries.query(text, k=3))) for queries in (self.cached, self.plain))
        return cached, plain


def free_of_cost(answer: Answer) -> Answer:
    return replace(answer, certificate=replace(answer.certificate, rounds=0, lookups=0))


@pytest.fixture
def hops(tmp_path: Path) -> Iterator[CachedHops]:
    cached_hops = CachedHops(tmp_path)
    yield cached_hops
    cached_hops.hops.close()


def test_a_question_asked_again_is_answered_from_the_cache_in_one_round(hops: CachedHops) -> None:
    hops.publish(document("c", topic="1", text="ash"), document("d", "denial", 1, topic="1"))
    first = hops.cached.query("ash")
    reader_rounds = run_sync(first).certificate.rounds
    again = run_sync(hops.cached.query("ash"))

    assert (hops.cache.hits, hops.cache.misses) == (1, 1)
    assert [document.id for document in again.results] == ["d"]
    assert reader_rounds > 1


def test_a_document_that_voids_what_was_answered_is_in_the_next_answer(hops: CachedHops) -> None:
    hops.publish(document("c", topic="1", text="ash"))
    hops.query("ash")
    hops.publish(document("d", "denial", 1, topic="1", text="words"))
    cached, plain = hops.query("ash")

    assert cached == plain
    assert [document.id for document in cached.results] == ["d"]


def test_an_answer_in_flight_is_not_kept(hops: CachedHops) -> None:
    hops.publish(document("c", topic="1", text="ash"))
    hops.take_in(document("d", "denial", 1, topic="1", text="ash"))
    run_sync(hops.cached.query("ash"))

    assert len(hops.cache) == 0


def test_words_that_the_index_had_not_heard_yet_are_not_kept(hops: CachedHops) -> None:
    hops.publish(document("c", topic="1", text="ash"))
    hops.hops.publish(document("c", topic="1", text="ash and elm", revision=2))
    hops.hops.emit_watermarks()
    hops.hops.apply(0, 1)
    run_sync(hops.cached.query("ash"))

    assert len(hops.cache) == 0


def test_an_answer_that_could_not_be_compared_is_not_counted(hops: CachedHops, monkeypatch: pytest.MonkeyPatch) -> None:
    hops.publish(document("c", topic="1", text="ash"))
    hops.query("ash")
    assert hops.cache.size > 0

    async def away(*_: object) -> bool:
        raise Unavailable("the store is away")

    monkeypatch.setattr(hops.cache, "_is_current", away)
    with pytest.raises(Unavailable):
        run_sync(hops.cached.query("ash", k=3))
    assert (hops.cache.size, len(hops.cache)) == (0, 0)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_published_in_between_the_answer_is_that_of_asking_anew(hops: CachedHops, seed: int) -> None:
    random = Random(seed)
    for step in range(60):
        if random.random() < 0.5:
            kind = random.choice(("claim", "denial", "doubt", "note"))
            text = " ".join(random.choices(WORDS, k=3))
            name, topic = f"n{random.randrange(9)}", random.choice("123")
            hops.publish(document(name, kind, step, revision=step + 1, topic=topic, text=text))
        else:
            cached, plain = hops.query(random.choice(WORDS))
            assert cached == plain, step
    assert hops.cache.hits > 0
    assert TWO.frontiers == 2
