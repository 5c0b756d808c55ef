"""The answer cache of an engine: what is returned again, what is computed again, and what a cached answer reports."""

import pytest

from stream_car import Engine, Retraction, StreamCarError
from stream_car.queries.answers import Answer
from stream_car.queries.cache import AnswerCache
from tests.support.engines import DAY, NOW, RULESET, StoppedClock, document, engine, on_day


def cache_of(car: Engine) -> AnswerCache:
    cache = car.directory.cache
    assert cache is not None
    return cache


def filled_engine() -> Engine:
    car = engine()
    car.publish([document("c1", at=1, topic="moon"), document("c2", at=2, topic="sun"), document("c3", topic="tea")])
    return car


def ids(answer: Answer) -> list[str]:
    return [result.id for result in answer.results]


def test_the_same_question_is_answered_once() -> None:
    with filled_engine() as car:
        first = car.query("moon")
        again = car.query("moon")

        assert again is first
        assert (cache_of(car).hits, cache_of(car).misses) == (1, 1)


def test_a_cached_answer_names_the_present_cut() -> None:
    with filled_engine() as car:
        car.query("moon")
        car.publish([document("c4", at=3, topic="stars")])
        answer = car.query("moon")

        assert cache_of(car).hits == 1
        assert answer.certificate.cut == (4,)


def test_a_document_that_voids_a_result_is_noticed() -> None:
    with filled_engine() as car:
        assert ids(car.query("moon")) == ["c1"]
        car.publish([document("d1", "denial", at=5, topic="moon", text="nothing in common")])

        assert ids(car.query("moon")) == ["d1"]


def test_a_new_anchor_is_noticed() -> None:
    with filled_engine() as car:
        car.query("moon")
        car.publish([document("c5", at=9, topic="crater", text="moon")])

        assert sorted(ids(car.query("moon"))) == ["c1", "c5"]


def test_a_correction_of_the_words_alone_is_noticed() -> None:
    with filled_engine() as car:
        car.query("moon")
        car.publish([document("c1", at=1, revision=2, text="the moon is far", topic="moon")])

        assert car.query("moon").results[0].text == "the moon is far"


def test_a_retraction_is_noticed() -> None:
    with filled_engine() as car:
        car.query("moon")
        car.publish([Retraction(id="c1")])

        assert ids(car.query("moon")) == []


def test_a_release_is_noticed_though_nothing_was_published() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as car:
        car.publish([document("c1", at=1, topic="moon"), document("d1", "denial", at=1001, topic="moon")])
        assert ids(car.query("moon")) == ["c1"]
        clock.time = NOW + 2 * DAY

        assert ids(car.query("moon")) == ["d1"]


def test_questions_that_differ_in_anything_are_answered_separately() -> None:
    with filled_engine() as car:
        car.query("about")
        car.query("about", k=1)
        car.query("about", depth=1)
        car.query("about", as_of=on_day(1000))

        assert (cache_of(car).hits, len(cache_of(car))) == (0, 4)


def test_the_cache_can_be_turned_off() -> None:
    with Engine(ruleset=RULESET, cache_bytes=0) as car:
        car.publish([document("c1", at=1, topic="moon")])

        assert car.directory.cache is None
        assert ids(car.query("moon")) == ids(car.query("moon")) == ["c1"]


def test_a_record_that_was_left_out_empties_the_cache() -> None:
    with filled_engine() as car:
        car.query("moon")
        cache = cache_of(car)
        cache.invalidate(car.directory.next_offset + 1, [])

        assert len(cache) == 0


def test_a_search_that_fails_leaves_no_trace_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with filled_engine() as car:
        car.query("moon")
        car.publish([document("c4", at=3, topic="stars")])
        cache, index = cache_of(car), car.directory.projection.index
        with monkeypatch.context() as broken:
            broken.setattr(index, "search", fail)
            with pytest.raises(StreamCarError):
                car.query("moon")

        assert (len(cache), cache.size, cache._tracked_keys) == (0, 0, {})
        assert ids(car.query("moon")) == ["c1"]


async def fail(*_: object, **__: object) -> None:
    raise StreamCarError("no search")
