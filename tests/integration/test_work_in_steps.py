"""An answer that is given in pieces is of one moment, whatever happens between the pieces."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from stream_car import Engine
from stream_car.api import requests as r
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.local.concurrent_service import ConcurrentService
from stream_car.local.long_queries import RunningQuery
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


class Interruptions(RunningQuery):
    """A question between whose pieces something may happen: after those whose numbers are `after`."""

    def __init__(
        self, service: ConcurrentService, after: Sequence[int] = (), action: Callable[[int], None] = lambda number: None
    ) -> None:
        super().__init__(service.long_queries)
        self.pieces = 0
        self._after = after
        self._action = action

    @property
    def is_due(self) -> bool:
        return True

    async def rest(self) -> None:
        self.pieces += 1
        if self.pieces in self._after:
            self._action(self.pieces)


async def answer_of(
    car: Engine,
    request: r.Request[object],
    after: Sequence[int] = (),
    action: Callable[[int], None] = lambda number: None,
) -> tuple[object, int]:
    """Return the answer that a service gives in pieces, with these interruptions, and the number of pieces."""
    service = ConcurrentService(car.directory)
    assert car.directory.cache is not None
    car.directory.cache.clear()
    interruptions = Interruptions(service, after, action)
    service.begin_query = lambda: interruptions  # type: ignore[method-assign]
    return await service.call(request), interruptions.pieces


@pytest.mark.parametrize("name", REQUESTS)
@pytest.mark.parametrize("after", [(1,), (2, 5), (1, 2, 3, 9), (6,)])
async def test_an_answer_is_of_one_moment_when_documents_are_applied_between_its_pieces(
    name: str, after: Sequence[int]
) -> None:
    with engine() as car:
        car.publish([*documents(), *documents(60, 3, "denial"), document("n", "note", 99, topic="tea")])
        moments = [car.call(REQUESTS[name])]

        def publish(number: int) -> None:
            late = document(f"late-{number}", "doubt", 200 + number, topic="tea")
            corrected = [document(f"{topic}-5", at=999, revision=number + 1, text="tea rain") for topic in TOPICS]
            car.publish([late, *corrected])
            moments.append(car.call(REQUESTS[name]))

        answer, pieces = await answer_of(car, REQUESTS[name], after, publish)

        assert pieces >= after[0]
        assert len(moments) > 1
        assert answer in moments


@pytest.mark.parametrize("name", REQUESTS)
async def test_an_answer_begins_again_when_rules_are_switched_between_its_pieces(name: str) -> None:
    with engine() as car:
        car.publish([*documents(), *documents(60, 3, "doubt"), *documents(50, 3, "denial")])

        def switch(_: int) -> None:
            with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
                rebuild.switch()

        answer, _ = await answer_of(car, REQUESTS[name], (1,), switch)

        assert answer == car.call(REQUESTS[name])
        assert car.directory.ruleset.digest == OTHER_RULESET.digest


@pytest.mark.parametrize("name", REQUESTS)
async def test_documents_are_published_and_read_while_a_question_rests(name: str) -> None:
    is_resting, may_go_on = asyncio.Event(), asyncio.Event()

    async def rest() -> None:
        is_resting.set()
        await may_go_on.wait()

    with engine() as car:
        car.publish([*documents(), *documents(60, 3, "denial")])
        async with ConcurrentService(car.directory) as service:
            before = await service.call(REQUESTS[name])
            interruptions = Interruptions(service)
            interruptions.rest = rest  # type: ignore[method-assign]
            service.begin_query = lambda: interruptions  # type: ignore[method-assign]
            assert car.directory.cache is not None
            car.directory.cache.clear()
            question = asyncio.create_task(service.call(REQUESTS[name]))
            await is_resting.wait()
            del service.begin_query
            published = await service.call(r.Publish(documents=(encode(document("late", "doubt", 300, topic="tea")),)))
            [late] = await service.call(r.Resolve(names=("late",)))
            assert not question.done()
            may_go_on.set()
            answer = await question
            after = await service.call(REQUESTS[name])

    assert published.outcomes == {"accepted": 1}
    assert late.status == "in_force"
    assert answer in (before, after)


async def test_a_question_has_many_pieces() -> None:
    with engine() as car:
        car.publish(documents())
        _, pieces = await answer_of(car, REQUESTS["resolve"])

    assert pieces > len(NAMES)
