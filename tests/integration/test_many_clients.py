"""Many who want much: they are told so, and whoever wants little is answered."""

import asyncio

import pytest

from stream_car.errors import TooMuch
from stream_car.http import server
from stream_car.local.long_queries import WAITING_MAX
from stream_car.local.service import EmbeddedService
from stream_car.settings import ServerSettings
from stream_car.subscriptions import hub
from stream_car.subscriptions.events import Filter
from tests.integration.test_service import code_of, connected, published, sent
from tests.integration.test_subscriptions import until
from tests.support.engines import engine
from tests.support.http_service import serving

HUGE = {"text": "market notice " * 700, "k": 100, "depth": 200}


async def test_of_many_long_questions_some_are_answered_and_the_others_told_to_come_again() -> None:
    async with serving() as running:
        await published(running, *(sent(f"claim-{n}", topic=f"notice{n}") for n in range(200)))
        asking = [asyncio.create_task(running.post("/v1/query", HUGE)) for _ in range(2 * WAITING_MAX)]
        short = await running.post("/v1/query", {"text": "claim notice"})
        heard = [await one for one in asking]

    assert short.status_code == 200
    assert {one.status_code for one in heard} == {200, 429}
    assert sum(one.status_code == 200 for one in heard) > WAITING_MAX
    refused = next(one for one in heard if one.status_code == 429)
    assert (code_of(refused), refused.headers["retry-after"]) == ("busy", "5")


async def test_snapshots_beyond_the_limit_are_told_to_come_again_and_tails_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub, "SNAPSHOTS_MAX", 0)
    async with serving() as running:
        refused = await running.client.get("/v1/subscribe")
        async with running.subscribed(snapshot="false") as events:
            await published(running, sent("claim-1", topic="tea"))
            assert [one.event for one in await until(events, "change")] == ["change"]

    assert (refused.status_code, code_of(refused)) == (429, "busy")


async def test_who_is_let_in_counts_before_anything_is_read_and_no_longer_than_somebody_may_read() -> None:
    with engine() as here:
        async with EmbeddedService(here, subscriptions_max=2) as service:
            after = f"{here.generation}:0"
            let_in = [await service.subscribe(Filter(), after=after) for _ in range(2)]
            with pytest.raises(TooMuch, match="2 subscriptions are open"):
                await service.subscribe(Filter(), after=after)
            let_in.clear()

            assert len(service.subscriptions) == 0
            assert await anext(await service.subscribe(Filter()))


async def test_connections_beyond_the_limit_are_told_so_and_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "OTHERS_MAX", 2)
    async with serving(settings=ServerSettings(port=0, subscriptions_max=1)) as running:
        held = [await connected(running) for _ in range(2)]
        reader, writer = await connected(running)
        said = await reader.read()
        writer.close()
        for _, other in held:
            other.close()
        await asyncio.sleep(0)
        response = await running.get("/v1/status")

    assert said.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 5\r\n" in said
    assert response.status_code == 200
