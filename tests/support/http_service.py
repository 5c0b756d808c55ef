"""A real server over a small engine, or over Kafka and Redis, on a free port, in the test's own loop."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
from msgspec import Struct

from stream_car.codec import Publishable, encode_document
from stream_car.core.documents import Retraction
from stream_car.core.rules import Ruleset
from stream_car.http import server
from stream_car.local.engine import Engine
from stream_car.local.serve import serve
from stream_car.settings import ServerSettings
from tests.support.back_ends import servers
from tests.support.cluster import Installed, installed
from tests.support.engines import RULESET, StoppedClock


class Heard(Struct, frozen=True):
    """An event as a client hears it; heartbeats have no data."""

    event: str
    id: str
    data: bytes


class Running:
    """A server that answers, a client for it, and what it serves."""

    def __init__(self, url: str, client: httpx.AsyncClient, car: Engine | Installed, stop: asyncio.Event) -> None:
        self.url = url
        self.client = client
        self.car = car
        self.stop = stop

    @property
    def engine(self) -> Engine:
        """The engine, for tests that are about the embedded one."""
        assert isinstance(self.car, Engine)
        return self.car

    def cursor(self, number: int) -> str:
        """Behind so many changes of every shard."""
        shards = 1 if isinstance(self.car, Engine) else self.car.shards
        return f"{self.car.generation}:{'.'.join([str(number)] * shards)}"

    async def publish(self, documents: Sequence[Publishable]) -> None:
        """Keep documents, and see to it that the next answer counts them."""
        if isinstance(self.car, Engine):
            self.car.publish(documents)
            return
        await self.car.service.publish([encode_document(one) for one in documents])
        await self.rest()

    async def retract(self, name: str) -> None:
        """Say that a document should never have been said."""
        await self.publish([Retraction(id=name)])

    async def rest(self) -> None:
        """Returns when the next answer counts all that was published."""
        if isinstance(self.car, Installed):
            await self.car.rest()

    async def post(self, path: str, body: object) -> httpx.Response:
        return await self.client.post(path, json=body)

    async def get(self, path: str, **parameters: str | list[str]) -> httpx.Response:
        return await self.client.get(path, params=parameters)

    @asynccontextmanager
    async def subscribed(
        self, asked: Mapping[str, str | list[str]] | None = None, *, last: str | None = None, **more: str
    ) -> AsyncIterator[AsyncIterator[Heard]]:
        """The events of a subscription, one by one."""
        parameters = {**(asked or {}), **more}
        headers = {"Last-Event-ID": last} if last is not None else {}
        async with self.client.stream("GET", "/v1/subscribe", params=parameters, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            yield heard(response.aiter_lines())


async def heard(lines: AsyncIterator[str]) -> AsyncIterator[Heard]:
    """Events by the rules of server-sent events, comments among them as the event ``comment``."""
    fields = {"event": "", "id": "", "data": ""}
    async for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name or "event"] = value.removeprefix(" ")
            continue
        if fields["event"] or fields["id"]:
            yield Heard(fields["event"], fields["id"], fields["data"].encode())
        fields = {"event": "", "id": "", "data": ""}


@asynccontextmanager
async def serving(
    path: Path | None = None,
    *,
    settings: ServerSettings | None = None,
    token: str | None = None,
    clock: StoppedClock | None = None,
    engine: Engine | None = None,
    ruleset: Ruleset = RULESET,
) -> AsyncIterator[Running]:
    """Serve until the block ends, then stop in order: over an engine, or over the servers of this test."""
    chosen = settings or ServerSettings(port=0)
    where = servers()
    async with AsyncExitStack() as opened:
        listener = opened.enter_context(server.bound(chosen, token))
        listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        car: Engine | Installed
        if where is None:
            car = opened.enter_context(engine or Engine(path, ruleset=ruleset, clock=clock or StoppedClock()))
            run = serve(car, listener, chosen, token=token, ready=listening.set_result, stop=stop)
        else:
            car = await opened.enter_async_context(
                installed(where.kafka, where.redis, ruleset=ruleset, settings=chosen)
            )
            run = server.served(
                car.service,
                listener,
                chosen,
                token=token,
                ready=listening.set_result,
                stop=stop,
                end=car.service.end,
            )
        task = asyncio.create_task(run)
        try:
            url = await listening
            headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
            async with httpx.AsyncClient(base_url=url, timeout=30, headers=headers) as client:
                yield Running(url, client, car, stop)
        finally:
            stop.set()
            await task
