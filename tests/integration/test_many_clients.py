"""With too many large requests, some are rejected with the time to come again, and small ones are answered."""

import asyncio

import pytest

from stream_car.api.requests import Subscribe
from stream_car.errors import Overloaded
from stream_car.local import long_queries
from stream_car.local.concurrent_service import ConcurrentService
from stream_car.queries import fair_scheduling
from stream_car.subscriptions import hub
from tests.support.engines import engine
from tests.support.http_service import as_fields, code_of, serving, take_until

LONG_MAX = 2
HUGE = {"text": "market notice " * 700, "k": 100, "depth": 200}


async def test_of_many_long_questions_some_are_answered_and_the_others_rejected_for_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fair_scheduling, "LONG_MAX", LONG_MAX)
    monkeypatch.setattr(long_queries, "FIRST_S", 0.0)
    async with serving() as running:
        await running.post_documents(*(as_fields(f"claim-{n}", topic=f"notice{n}") for n in range(200)))
        long = [asyncio.create_task(running.post("/v1/query", HUGE)) for _ in range(32)]
        short = await running.post("/v1/query", {"text": "claim notice"})
        responses = await asyncio.gather(*long)

    assert short.status_code == 200
    assert {response.status_code for response in responses} == {200, 429}
    assert sum(response.status_code == 200 for response in responses) >= LONG_MAX
    rejected = next(response for response in responses if response.status_code == 429)
    assert (code_of(rejected), rejected.headers["retry-after"]) == ("busy", "5")


async def test_snapshots_beyond_the_limit_are_rejected_for_now_and_continuations_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub, "SNAPSHOTS_MAX", 0)
    async with serving() as running:
        rejected = await running.client.get("/v1/subscribe")
        async with running.subscribe(snapshot="false") as events:
            await running.post_documents(as_fields("claim-1", topic="tea"))
            received = await take_until(events, "document-change")

    assert [event.event for event in received] == ["document-change"]
    assert (rejected.status_code, code_of(rejected)) == (429, "busy")


async def test_a_subscription_counts_before_anything_is_read_and_until_nobody_can_read_it() -> None:
    with engine() as car:
        async with ConcurrentService(car.directory, subscriptions_max=2) as service:
            request = Subscribe(after=f"{car.directory.generation}:0")
            subscriptions = [await service.subscribe(request) for _ in range(2)]
            with pytest.raises(Overloaded, match="2 subscriptions are open"):
                await service.subscribe(request)
            subscriptions.clear()

            assert len(service.hub) == 0
            assert await anext(await service.subscribe(Subscribe()))
