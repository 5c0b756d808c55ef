"""Answers given again over shards that others move: only while nothing has changed for them."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from stream_car.core.documents import Document
from stream_car.errors import Unavailable
from stream_car.local.run_sync import at_once
from stream_car.ports import IndexedDocument
from stream_car.queries.answers import Answer
from stream_car.queries.cache import ManyShardsCache
from stream_car.queries.queries import Queries
from tests.support.engines import RULESET, document
from tests.unit.queries.test_shards import TWO, Hops

WORDS = ("ash", "birch", "cedar", "elm", "fir")


class Asked:
    """Both hops, asked with a cache and without."""

    def __init__(self, folder: Path) -> None:
        self.hops = Hops(folder)
        self.plain = self.hops.queries
        self.cache = ManyShardsCache()
        self.cached = Queries(
            shards=self.plain.shards, index=self.plain.index, ruleset=RULESET, generation="g", cache=self.cache
        )

    def publish(self, *said: Document) -> None:
        """Both hops and the index have it."""
        self.take_in(*said)
        self.hops.mark()
        self.hops.apply(0, 1)

    def take_in(self, *said: Document) -> None:
        """Intake and the index have it."""
        self.hops.publish(*said)
        postings = [IndexedDocument(document=one, scopes=RULESET.scopes(one)) for one in said]
        at_once(self.plain.index.apply(postings, (), 0))

    def ask(self, text: str) -> tuple[Answer, Answer]:
        """The same question with and without the cache; what it cost apart."""
        cached, plain = (free_of_cost(at_once(one.query(text, k=3))) for one in (self.cached, self.plain))
        return cached, plain


def free_of_cost(answer: Answer) -> Answer:
    return replace(answer, certificate=replace(answer.certificate, rounds=0, lookups=0))


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Asked]:
    opened = Asked(tmp_path)
    yield opened
    opened.hops.close()


def test_a_question_asked_again_is_answered_from_the_cache_in_one_round(asked: Asked) -> None:
    asked.publish(document("c", topic="1", text="ash"), document("d", "denial", 1, topic="1"))
    first = asked.cached.query("ash")
    reader_rounds = at_once(first).certificate.rounds
    again = at_once(asked.cached.query("ash"))

    assert (asked.cache.hits, asked.cache.misses) == (1, 1)
    assert [one.id for one in again.results] == ["d"]
    assert reader_rounds > 1


def test_a_document_that_voids_what_was_answered_is_in_the_next_answer(asked: Asked) -> None:
    asked.publish(document("c", topic="1", text="ash"))
    asked.ask("ash")
    asked.publish(document("d", "denial", 1, topic="1", text="words"))
    cached, plain = asked.ask("ash")

    assert cached == plain
    assert [one.id for one in cached.results] == ["d"]


def test_an_answer_in_flight_is_not_kept(asked: Asked) -> None:
    asked.publish(document("c", topic="1", text="ash"))
    asked.take_in(document("d", "denial", 1, topic="1", text="ash"))
    at_once(asked.cached.query("ash"))

    assert len(asked.cache) == 0


def test_words_that_the_index_had_not_heard_yet_are_not_kept(asked: Asked) -> None:
    asked.publish(document("c", topic="1", text="ash"))
    asked.hops.publish(document("c", topic="1", text="ash and elm", revision=2))
    asked.hops.mark()
    asked.hops.apply(0, 1)
    at_once(asked.cached.query("ash"))

    assert len(asked.cache) == 0


def test_an_answer_that_could_not_be_compared_is_not_counted(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.publish(document("c", topic="1", text="ash"))
    asked.ask("ash")
    assert asked.cache.size > 0

    async def away(*_: object) -> bool:
        raise Unavailable("the store is away")

    monkeypatch.setattr(asked.cache, "_is_current", away)
    with pytest.raises(Unavailable):
        at_once(asked.cached.query("ash", k=3))
    assert (asked.cache.size, len(asked.cache)) == (0, 0)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_published_in_between_the_answer_is_that_of_asking_anew(asked: Asked, seed: int) -> None:
    random = Random(seed)
    for step in range(60):
        if random.random() < 0.5:
            kind = random.choice(("claim", "denial", "doubt", "note"))
            text = " ".join(random.choices(WORDS, k=3))
            said = document(
                f"n{random.randrange(9)}", kind, step, revision=step + 1, topic=random.choice("123"), text=text
            )
            asked.publish(said)
        else:
            cached, plain = asked.ask(random.choice(WORDS))
            assert cached == plain, step
    assert asked.cache.hits > 0
    assert TWO.frontiers == 2
