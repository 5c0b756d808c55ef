"""A real server on a free port, in the loop of the test: over a small engine, or over Kafka and Redis."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx
import msgspec
from msgspec import Struct

from stream_car.api.requests import Publish
from stream_car.codec import Publishable, encode, encode_document
from stream_car.core.documents import Retraction
from stream_car.core.rules import Ruleset
from stream_car.http import server
from stream_car.http.app import NO_ENDPOINTS, Endpoints
from stream_car.http.tokens import Tokens
from stream_car.local.engine import Engine
from stream_car.local.serve import serve
from stream_car.ranking.settings import SETTINGS, Settings
from stream_car.settings import ServerSettings
from tests.support.back_ends import servers
from tests.support.cluster import Installed, installed
from tests.support.engines import RULESET, StoppedClock, document

TOKEN = "the-token-of-these-tests"
JSON = {"Content-Type": "application/json"}
LINES = {"Content-Type": "application/x-ndjson"}

Fields = dict[str, object]


def as_fields(name: str, kind: str = "claim", at: int = 0, *, topic: str) -> Fields:
    """Return the JSON object of a document."""
    return msgspec.json.decode(encode(document(name, kind, at, topic=topic)), type=Fields)


CLAIM, DENIAL = as_fields("claim-1", topic="tea"), as_fields("denial-1", "denial", 1, topic="tea")


def code_of(response: httpx.Response) -> str:
    """Return the code of an error, and check that it is reported like all errors."""
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == response.status_code
    assert problem["detail"]
    assert problem["title"]
    return str(problem["code"])


class ReceivedEvent(Struct, frozen=True):
    """A server-sent event as a client receives it. A heartbeat has no data."""

    event: str
    id: str
    data: bytes


class Running:
    """A server, a client of it, and what it serves."""

    def __init__(self, url: str, client: httpx.AsyncClient, car: Engine | Installed, stop: asyncio.Event) -> None:
        self.url = url
        self.client = client
        self.car = car
        self.stop = stop

    @property
    def engine(self) -> Engine:
        """The engine, for tests of the service of one process."""
        assert isinstance(self.car, Engine)
        return self.car

    @property
    def generation(self) -> str:
        """The generation that cursors belong to."""
        return self.car.directory.generation if isinstance(self.car, Engine) else self.car.generation

    def cursor(self, number: int) -> str:
        """Return the cursor after this number of changes of every shard."""
        if isinstance(self.car, Engine):
            return f"{self.generation}:{number}@{self.car.directory.marks.mark()}"
        return f"{self.generation}:{'.'.join([str(number)] * self.car.shards)}"

    async def publish(self, documents: Sequence[Publishable]) -> None:
        """Publish without HTTP, and return when the next answer counts it."""
        if isinstance(self.car, Engine):
            self.car.publish(documents)
            return
        await self.car.service.call(Publish(documents=tuple(map(encode_document, documents))))
        await self.rest()

    async def post_documents(self, *documents: Fields) -> None:
        """Publish documents over HTTP that are all accepted, and return when the next answer counts them."""
        response = await self.post("/v1/documents", list(documents))
        assert response.status_code == 200, response.text
        assert {receipt["outcome"] for receipt in response.json()["receipts"]} <= {"accepted", "pending", "duplicate"}
        await self.rest()

    async def retract(self, name: str) -> None:
        """Retract a document."""
        await self.publish([Retraction(id=name)])

    async def rest(self) -> None:
        """Return when the next answer counts everything published."""
        if isinstance(self.car, Installed):
            await self.car.rest()

    async def post(self, path: str, body: object) -> httpx.Response:
        return await self.client.post(path, json=body)

    async def get(self, path: str, **parameters: str | list[str]) -> httpx.Response:
        return await self.client.get(path, params=parameters)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a connection to the server, to send any bytes."""
        url = httpx.URL(self.url)
        return await asyncio.open_connection(url.host, url.port)

    @asynccontextmanager
    async def subscribe(
        self, request: Mapping[str, str | list[str]] | None = None, *, last: str | None = None, **more: str
    ) -> AsyncIterator[AsyncIterator[ReceivedEvent]]:
        """Subscribe with these parameters, and with the cursor `last` as Last-Event-ID."""
        parameters = {**(request or {}), **more}
        headers = {"Last-Event-ID": last} if last is not None else {}
        async with self.client.stream("GET", "/v1/subscribe", params=parameters, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
            yield received_events(response.aiter_lines())


async def received_events(lines: AsyncIterator[str]) -> AsyncIterator[ReceivedEvent]:
    """Yield events by the rules of server-sent events. A comment is an event of that name."""
    fields = {"event": "", "id": "", "data": ""}
    async for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name or "event"] = value.removeprefix(" ")
            continue
        if fields["event"] or fields["id"]:
            yield ReceivedEvent(fields["event"], fields["id"], fields["data"].encode())
        fields = {"event": "", "id": "", "data": ""}


async def take(events: AsyncIterator[ReceivedEvent], count: int) -> list[ReceivedEvent]:
    """Return the next events."""
    async with asyncio.timeout(20):
        return [await anext(events) for _ in range(count)]


async def take_until(events: AsyncIterator[ReceivedEvent], name: str) -> list[ReceivedEvent]:
    """Return the events up to the first of this name, itself included."""
    received: list[ReceivedEvent] = []
    async with asyncio.timeout(20):
        async for event in events:
            received.append(event)
            if event.event == name:
                return received
    raise AssertionError(f"the stream ended before a {name}: {received}")


@asynccontextmanager
async def serving(
    path: Path | None = None,
    *,
    settings: ServerSettings | None = None,
    token: str | None = None,
    tokens: Tokens | None = None,
    clock: StoppedClock | None = None,
    engine: Engine | None = None,
    ruleset: Ruleset = RULESET,
    ranking: Settings = SETTINGS,
    endpoints: Endpoints = NO_ENDPOINTS,
) -> AsyncIterator[Running]:
    """Serve until the block ends, then stop in order: over an engine, or over the servers of this test.

    With a `token`, clients send it; it is the only one of the service, unless there are `tokens`.
    """
    tokens = tokens or (Tokens.of(token) if token is not None else None)
    chosen = settings or ServerSettings(port=0)
    addresses = servers()
    async with AsyncExitStack() as opened:
        listener = opened.enter_context(server.listen(chosen, tokens))
        listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        stop = asyncio.Event()
        car: Engine | Installed
        if addresses is None:
            car = engine or Engine(path, ruleset=ruleset, clock=clock or StoppedClock(), ranking=ranking)
            opened.enter_context(car)
            run = serve(
                car.directory,
                listener,
                chosen,
                tokens=tokens,
                on_ready=listening.set_result,
                stop=stop,
                endpoints=endpoints,
            )
        else:
            car = await opened.enter_async_context(
                installed(addresses.kafka, addresses.redis, ruleset=ruleset, settings=chosen, ranking=ranking)
            )
            run = server.serve_http(
                car.service,
                listener,
                chosen,
                tokens=tokens,
                on_ready=listening.set_result,
                stop=stop,
                end_streams=car.service.hub.end,
                endpoints=endpoints,
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
