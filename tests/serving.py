"""A real server over a small engine, on a free port, in the test's own loop."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
from msgspec import Struct

from stream_car.runtime import server
from stream_car.runtime.embedded import Engine
from stream_car.runtime.settings import ServerSettings
from tests.engines import RULESET, StoppedClock


class Heard(Struct, frozen=True):
    """An event as a client hears it; heartbeats have no data."""

    event: str
    id: str
    data: bytes


class Running:
    """A server that answers, a client for it, and its engine."""

    def __init__(self, url: str, client: httpx.AsyncClient, engine: Engine, stop: asyncio.Event) -> None:
        self.url = url
        self.client = client
        self.engine = engine
        self.stop = stop

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
) -> AsyncIterator[Running]:
    """Serve until the block ends, then stop in order."""
    chosen = settings or ServerSettings(port=0)
    engine = engine or Engine(path, ruleset=RULESET, clock=clock or StoppedClock())
    with server.bound(chosen, token) as listener, engine:
        listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        task = asyncio.create_task(
            server.serve(engine, listener, chosen, token=token, ready=listening.set_result, stop=stop)
        )
        try:
            url = await listening
            headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
            async with httpx.AsyncClient(base_url=url, timeout=30, headers=headers) as client:
                yield Running(url, client, engine, stop)
        finally:
            stop.set()
            await task
