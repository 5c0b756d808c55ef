"""An answer given in pieces is that of one moment, whatever happens between the pieces."""

from collections.abc import Awaitable, Callable, Sequence

import pytest

from stream_car.core.documents import Document
from stream_car.local.engine import Engine
from stream_car.local.questions import Question
from tests.support.engines import OTHER_RULESET, document, engine

TOPICS = ("tea", "rain", "moon")
NAMES = [f"{topic}-{n}" for topic in TOPICS for n in range(40)]


def said(start: int = 0, count: int = 40, kind: str = "claim") -> list[Document]:
    return [
        document(f"{topic}-{start + n}", kind, start + n, topic=topic, text=f"{topic} word{n}")
        for topic in TOPICS
        for n in range(count)
    ]


ASKED: dict[str, Question[object]] = {
    "query": lambda built, waiting: built.queries.query("tea rain moon claim", k=100, depth=200, options=waiting),
    "relevance": lambda built, waiting: built.queries.search("tea rain moon", 50, options=waiting),
    "resolve": lambda built, waiting: built.queries.resolve(NAMES, options=waiting),
    "check": lambda built, waiting: built.queries.check(NAMES, question="tea rain", options=waiting),
    "frontier": lambda built, waiting: built.scopes.frontier({"topic": "tea"}, options=waiting),
    "history": lambda built, waiting: built.scopes.history({"topic": "rain"}, options=waiting),
    "explain": lambda built, waiting: built.scopes.explain("tea-0", options=waiting),
}


def interfering(at: Sequence[int], what: Callable[[int], None]) -> Callable[[], Awaitable[bool]]:
    calls = 0

    async def give_way() -> bool:
        nonlocal calls
        calls += 1
        if calls in at:
            what(calls)
        return True

    return give_way


def at_once(here: Engine, question: Question[object]) -> object:
    return here._ask(question)


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("at", [(1,), (2, 5), (1, 2, 3, 9)])
async def test_what_is_published_between_two_pieces_makes_the_answer_begin_again(name: str, at: Sequence[int]) -> None:
    with engine() as here:
        here.publish([*said(), *said(60, 3, "denial"), document("n", "note", 99, topic="tea")])

        def publish(call: int) -> None:
            here.publish(
                [
                    document(f"late-{call}", "doubt", 200 + call, topic="tea"),
                    document("tea-5", at=999, revision=call + 1),
                ]
            )

        found = await here.gently(ASKED[name], interfering(at, publish))

        assert found == at_once(here, ASKED[name])


@pytest.mark.parametrize("name", ASKED)
async def test_rules_that_are_switched_between_two_pieces_answer(name: str) -> None:
    with engine() as here:
        here.publish([*said(), *said(60, 3, "doubt"), *said(50, 3, "denial")])

        def switch(_: int) -> None:
            with here.rebuild(ruleset=OTHER_RULESET) as next_one:
                next_one.switch()

        found = await here.gently(ASKED[name], interfering((1,), switch))

        assert found == at_once(here, ASKED[name])
        assert here.ruleset.digest == OTHER_RULESET.digest


async def test_a_question_gives_way_again_and_again() -> None:
    gaps = 0

    async def give_way() -> bool:
        nonlocal gaps
        gaps += 1
        return False

    with engine() as here:
        here.publish(said())
        await here.gently(ASKED["resolve"], give_way)

    assert gaps > len(NAMES)
