"""What a client sends is what the service receives, and what the service answers is what the client returns.

Every request, answer and event of the API goes through the client and the HTTP application, without a socket.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from typing import TypeVar, cast

import httpx
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from msgspec.structs import replace

from stream_car import AsyncClient
from stream_car.api import requests as r
from stream_car.api.bookmark import Bookmark
from stream_car.api.operations import OPERATIONS
from stream_car.client.operations import Listing, parts
from stream_car.http.app import application
from stream_car.http.tokens import Tokens
from stream_car.processing.receipts import Receipt
from stream_car.queries.answers import Explanation, Published
from stream_car.subscriptions.events import Event, Heartbeat
from tests.support.contract import request_types
from tests.support.http_service import TOKEN
from tests.support.values import CURSORS, values_of

A = TypeVar("A")
EVENT_TYPES = Event.__args__
QUICK = settings(max_examples=15, suppress_health_check=list(HealthCheck))


class Recorder:
    """Implements `api.service.Service`: keeps what it receives, and answers what it is given."""

    def __init__(self) -> None:
        self.answer: object = None
        self.receipts: Iterator[Receipt] = iter(())
        self.events: Sequence[Event] = ()
        self.received: list[object] = []

    async def call(self, request: r.Request[A]) -> A:
        self.received.append(request)
        if isinstance(request, r.Publish):
            return cast(A, Published.of([next(self.receipts) for _ in request.documents]))
        return cast(A, self.answer)

    async def subscribe(self, request: r.Subscribe, client: str = "") -> AsyncIterator[Sequence[Event]]:
        self.received.append(request)
        return self._batches()

    async def require_ready(self) -> str:
        return ""

    async def _batches(self) -> AsyncIterator[Sequence[Event]]:
        yield self.events


class Wire:
    """A client of a recorder."""

    def __init__(self) -> None:
        self.service = Recorder()
        app = application(self.service, version="1", hosts={"127.0.0.1"}, tokens=Tokens.of(TOKEN))
        self.client = AsyncClient("http://127.0.0.1", token=TOKEN)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.client._http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", headers=headers
        )

    async def call(self, request: r.Request[A], answer: A) -> tuple[list[object], A]:
        """Send a request. Return what the service received, and what the client returned."""
        self.service.received, self.service.answer = [], answer
        returned = await self.client.call(request)
        return self.service.received, returned

    async def publish(self, documents: Sequence[bytes], receipts: Sequence[Receipt]) -> tuple[list[bytes], Published]:
        """Publish documents. Return those that the service received, and what the client returned."""
        self.service.received, self.service.receipts = [], iter(receipts)
        published = await self.client.publish(documents)
        requests = cast(list[r.Publish], self.service.received)
        return [document for request in requests for document in request.documents], published

    async def subscribe(self, request: r.Subscribe, events: Sequence[Event]) -> tuple[object, list[Event]]:
        """Subscribe. Return the request that the service received, and the events that the client returned."""
        self.service.received, self.service.events = [], events
        expected = sum(not isinstance(event, Heartbeat) for event in events)
        received: list[Event] = []
        stream = self.client._events(replace(request, after=None), Bookmark(request.after, None))
        async with aclosing(stream):
            while len(received) < expected:
                received.append(await anext(stream))
        return self.service.received[0], received


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def wire() -> Wire:
    return Wire()


def test_these_are_all_requests() -> None:
    assert {operation.request for operation in OPERATIONS} | {r.Publish, r.Subscribe} == request_types()


@pytest.mark.parametrize("request_type", [operation.request for operation in OPERATIONS])
@QUICK
@given(data=st.data())
def test_requests_and_answers_arrive_as_they_were_sent(
    request_type: type[r.Request[object]], wire: Wire, runner: asyncio.Runner, data: st.DataObject
) -> None:
    request = data.draw(values_of(request_type))
    # A listing goes on until a page is its end; `test_pages` compares those that have items.
    answer = () if isinstance(request, Listing) else data.draw(values_of(r.answer_type(request_type)))
    expected = list(parts(request)) if isinstance(request, r.Replay) else [request]

    received, returned = runner.run(wire.call(request, answer))

    assert received == expected
    assert returned == (answer * len(expected) if isinstance(answer, tuple) else answer)


@pytest.mark.parametrize(
    "name", [".", "..", "a/../b", "/", "//a", "?k=1", "#", "%2F", "a+b", " ", "\n", "é\u2028", "a;b"]
)
def test_any_id_can_be_part_of_a_path(name: str, wire: Wire, runner: asyncio.Runner) -> None:
    request = r.Explain(name=name)

    received, _ = runner.run(wire.call(request, Explanation(name=name, status="unknown")))

    assert received == [request]


DOCUMENTS = st.binary(max_size=20) | st.text(max_size=20).map(str.encode)


@QUICK
@given(documents=st.lists(DOCUMENTS, max_size=8), data=st.data())
def test_documents_and_receipts_arrive_as_they_were_sent(
    wire: Wire, runner: asyncio.Runner, documents: list[bytes], data: st.DataObject
) -> None:
    count = len(documents)
    receipts = data.draw(st.lists(values_of(Receipt), min_size=count, max_size=count))

    received, published = runner.run(wire.publish(documents, receipts))

    assert received == documents
    assert published == Published.of(receipts)


@pytest.mark.parametrize("event_type", EVENT_TYPES)
@QUICK
@given(data=st.data())
def test_subscriptions_and_events_arrive_as_they_were_sent(
    event_type: type[Event], wire: Wire, runner: asyncio.Runner, data: st.DataObject
) -> None:
    request = replace(data.draw(values_of(r.Subscribe)), after=data.draw(st.none() | CURSORS))
    events = data.draw(st.lists(values_of(event_type), min_size=1, max_size=3))
    events.append(data.draw(values_of(EVENT_TYPES[0])))

    received, returned = runner.run(wire.subscribe(request, events))

    assert received == request
    assert returned == [event for event in events if not isinstance(event, Heartbeat)]
