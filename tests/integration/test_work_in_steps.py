"""An answer that is given in pieces is of one moment, whatever happens between the pieces."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from stream_car import Engine
from stream_car.api import requests as r
from stream_car.core.documents import Document
from stream_car.local.concurrent_service import ConcurrentService
from stream_car.local.long_queries import LongQueries, RunningQuery
from stream_car.queries.fair_scheduling import SpareTime
from tests.support.engines import OTHER_RULESET, document, engine

TOPICS = ("tea", "rain", "moon")
NAMES = tuple(f"{topic}-{n}" for topic in TOPICS for n in range(40))
REQUESTS: dict[str, r.Request[object]] = {
    "query": r.Query(text="tea rain moon claim", k=100, depth=200),
    "search": r.Search(text="tea rain moon", k=50),
    "resolve": r.Resolve(names=NAMES),
    "check": r.Check(ids=NAMES, question="tea rain"),
    "frontier": r.GetFrontier(scope=("topic=tea",)),
    "history": r.GetHistory(scope=("topic=rain",)),
    "explain": r.Explain(name="tea-0"),
}


def documents(start: int = 0, count: int = 40, kind: str = "claim") -> list[Document]:
    return [
        document(f"{topic}-{start + n}", kind, start + n, topic=topic, text=f"{topic} word{n}")
        for topic in TOPICS
        for n in range(count)
    ]


class InterruptedQuery(RunningQuery):
    """A question after each of whose pieces something may happen."""

    def __init__(self, queue: "Interruptions", held: AsyncExitStack) -> None:
        super().__init__(queue, held)
        self._interruptions = queue

    async def yield_control(self) -> bool:
        return self._interruptions.happen()


class Interruptions(LongQueries):
    """Lets something happen between two pieces of a question: after those whose numbers are `after`."""

    def __init__(self, after: Sequence[int] = (), action: Callable[[int], None] = lambda number: None) -> None:
        super().__init__(SpareTime(), asyncio.Lock())
        self.pieces = 0
        self._after = after
        self._action = action

    @asynccontextmanager
    async def begin(self, *, is_long: bool) -> AsyncIterator[RunningQuery]:
        async with AsyncExitStack() as held:
            yield InterruptedQuery(self, held)

    def happen(self) -> bool:
        """End a piece, and return whether others may have run since."""
        self.pieces += 1
        if self.pieces in self._after:
            self._action(self.pieces)
        return bool(self._after)


async def answer_of(car: Engine, request: r.Request[object], interruptions: Interruptions) -> object:
    """Return the answer that a service gives in pieces, with these interruptions."""
    service = ConcurrentService(car.directory)
    service.long_queries = interruptions
    return await service.call(request)


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("after", [(1,), (2, 5), (1, 2, 3, 9)])
async def test_an_answer_begins_again_when_documents_are_applied_between_its_pieces(
    name: str, after: Sequence[int]
) -> None:
    with engine() as car:
        car.publish([*documents(), *documents(60, 3, "denial"), document("n", "note", 99, topic="tea")])

        def publish(number: int) -> None:
            late = document(f"late-{number}", "doubt", 200 + number, topic="tea")
            car.publish([late, document("tea-5", at=999, revision=number + 1)])

        interruptions = Interruptions(after, publish)
        answer = await answer_of(car, REQUESTS[name], interruptions)

        assert interruptions.pieces >= after[0]
        assert answer == car.call(REQUESTS[name])


@pytest.mark.parametrize("name", REQUESTS)
async def test_an_answer_begins_again_when_rules_are_switched_between_its_pieces(name: str) -> None:
    with engine() as car:
        car.publish([*documents(), *documents(60, 3, "doubt"), *documents(50, 3, "denial")])

        def switch(_: int) -> None:
            with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
                rebuild.switch()

        answer = await answer_of(car, REQUESTS[name], Interruptions((1,), switch))

        assert answer == car.call(REQUESTS[name])
        assert car.directory.ruleset.digest == OTHER_RULESET.digest


async def test_a_question_has_many_pieces() -> None:
    interruptions = Interruptions()
    with engine() as car:
        car.publish(documents())
        await answer_of(car, REQUESTS["resolve"], interruptions)

    assert interruptions.pieces > len(NAMES)
