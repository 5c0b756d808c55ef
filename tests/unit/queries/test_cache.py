"""The engine's answer cache: what is given again, what is asked anew, and what an answer from it says of itself."""

import pytest

from stream_car import Engine, Retraction, StreamCarError
from stream_car.queries.answers import Answer
from stream_car.queries.cache import AnswerCache
from tests.support.engines import DAY, NOW, RULESET, StoppedClock, document, engine


def cache_of(here: Engine) -> AnswerCache:
    cache = here._built.queries.cache
    assert cache is not None
    return cache


def filled() -> Engine:
    here = engine()
    here.publish([document("c1", at=1, topic="moon"), document("c2", at=2, topic="sun"), document("c3", topic="tea")])
    return here


def ids(answer: Answer) -> list[str]:
    return [one.id for one in answer.results]


def test_the_same_question_is_worked_out_once() -> None:
    with filled() as here:
        first = here.query("moon")
        again = here.query("moon")

        assert again is first
        assert (cache_of(here).hits, cache_of(here).misses) == (1, 1)


def test_an_answer_given_again_names_the_present_cut() -> None:
    with filled() as here:
        here.query("moon")
        here.publish([document("c4", at=3, topic="stars")])
        answer = here.query("moon")

        assert cache_of(here).hits == 1
        assert answer.certificate.cut == (4,)


def test_what_voids_a_result_is_seen() -> None:
    with filled() as here:
        assert ids(here.query("moon")) == ["c1"]
        here.publish([document("d1", "denial", at=5, topic="moon", text="nothing in common")])

        assert ids(here.query("moon")) == ["d1"]


def test_a_new_anchor_is_seen() -> None:
    with filled() as here:
        here.query("moon")
        here.publish([document("c5", at=9, topic="crater", text="moon")])

        assert sorted(ids(here.query("moon"))) == ["c1", "c5"]


def test_a_correction_of_the_words_alone_is_seen() -> None:
    with filled() as here:
        here.query("moon")
        here.publish([document("c1", at=1, revision=2, text="the moon is far", topic="moon")])

        assert here.query("moon").results[0].text == "the moon is far"


def test_a_retraction_is_seen() -> None:
    with filled() as here:
        here.query("moon")
        here.publish([Retraction(id="c1")])

        assert ids(here.query("moon")) == []


def test_a_release_is_seen_though_nothing_was_published() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as here:
        here.publish([document("c1", at=1, topic="moon"), document("d1", "denial", at=1001, topic="moon")])
        assert ids(here.query("moon")) == ["c1"]
        clock.time = NOW + 2 * DAY

        assert ids(here.query("moon")) == ["d1"]


def test_questions_that_differ_in_anything_have_answers_of_their_own() -> None:
    with filled() as here:
        here.query("about")
        here.query("about", k=1)
        here.query("about", depth=1)
        here.query("about", as_of=NOW)

        assert (cache_of(here).hits, len(cache_of(here))) == (0, 4)


def test_the_cache_can_be_turned_off() -> None:
    with Engine(ruleset=RULESET, cache_bytes=0) as here:
        here.publish([document("c1", at=1, topic="moon")])

        assert here._built.queries.cache is None
        assert ids(here.query("moon")) == ids(here.query("moon")) == ["c1"]


def test_a_record_that_nobody_told_of_makes_everything_untrusted() -> None:
    with filled() as here:
        here.query("moon")
        cache = cache_of(here)
        cache.invalidate(here.next_offset + 1, [])

        assert len(cache) == 0


def test_a_search_that_fails_leaves_no_trace_of_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with filled() as here:
        here.query("moon")
        here.publish([document("c4", at=3, topic="stars")])
        cache, index = cache_of(here), here._built.index
        with monkeypatch.context() as broken:
            broken.setattr(index, "search", fail)
            with pytest.raises(StreamCarError):
                here.query("moon")

        assert (len(cache), cache.size, cache._tracked_keys) == (0, 0, {})
        assert ids(here.query("moon")) == ["c1"]


async def fail(*_: object) -> None:
    raise StreamCarError("no search")
