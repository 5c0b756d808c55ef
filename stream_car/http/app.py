"""The service over HTTP: JSON in, JSON out, errors as problem details.

Promise: bodies, depth, lists and times are bounded; what an operation takes and answers is described at
`/openapi.json`. Cost over the call itself: about half a millisecond.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from time import perf_counter, thread_time

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from stream_car.api.json import pieces
from stream_car.api.messages import Receipts, Subscribe
from stream_car.api.service import Service
from stream_car.codec import read_parameters
from stream_car.errors import StreamCarError, TooMuch
from stream_car.http import bodies, static
from stream_car.http.auth import Guard
from stream_car.http.metrics import Measures
from stream_car.http.openapi import describe
from stream_car.http.problems import Refused, problem, refusal
from stream_car.http.routes import OPERATIONS, Operation, parts_of
from stream_car.http.sse import EventStream
from stream_car.processing.receipts import Receipt
from stream_car.queries.fair_scheduling import PIECE_S, SpareTime, Turns
from stream_car.subscriptions.events import Filter

TOKENLESS = "only a service with a token does this: start it with $STREAM_CAR_TOKEN or token_file, and send that along"
STREAM_MAX = 1 << 30
REQUEST_MAX = 4 << 20
TOO_MUCH_S = 0.5  # somebody is told later that it is too much: who does not heed it cannot ask more often
Handler = Callable[[Request], Awaitable[Response]]


def application(
    service: Service,
    *,
    version: str,
    measures: Measures | None = None,
    hosts: Collection[str] = (),
    token: str | None = None,
    spare: SpareTime | None = None,
) -> Starlette:
    """The ASGI application over a service. Without `hosts` the Host header is not looked at.

    Long answers are written in the time that `spare` gives; without it nobody rests.
    """
    measured = measures if measures is not None else Measures()
    api = Api(service, measured, version, Turns(spare or SpareTime(lambda: False)), has_token=token is not None)
    routes = [
        Route("/v1/documents", api.publish, methods=["POST"], name="publish"),
        *(Route(o.path, api.handler(o), methods=[o.method], name=o.name) for o in OPERATIONS),
        Route("/v1/subscribe", api.subscribe, name="subscribe"),
        Route("/openapi.json", api.description),
        Route("/metrics", api.metrics),
        Route("/livez", api.alive),
        Route("/readyz", api.ready),
        *static.routes(),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=hosts, token=token)],
        exception_handlers={HTTPException: _http, Refused: _refused, StreamCarError: _failed, Exception: _defect},
    )


class Api:
    """The handlers."""

    def __init__(self, service: Service, measures: Measures, version: str, writers: Turns, *, has_token: bool) -> None:
        self.service = service
        self.has_token = has_token
        self.measures = measures
        self.writers = writers
        self._description = msgspec.json.encode(describe(version))

    def handler(self, operation: Operation) -> Handler:
        """The handler of one operation."""

        async def handle(request: Request) -> Response:
            if operation.needs_token and not self.has_token:
                raise Refused(403, "no_token", TOKENLESS)
            body = b""
            if operation.method == "POST":
                bodies.require_json(request)
                body = await bodies.whole(request, REQUEST_MAX)
            begin = perf_counter()
            answer = await operation.run(self.service, request, body)
            response = await as_json(answer, self.writers)
            self.measures.requests.observe(perf_counter() - begin, operation=operation.name)
            return response

        return handle

    async def publish(self, request: Request) -> Response:
        """One document, a JSON array, or lines of JSON."""
        if request.query_params:
            raise Refused(400, "field", "publishing takes no parameters")
        begin = perf_counter()
        kind = bodies.media_type(request)
        if kind == bodies.LINES:
            response = await self._publish_many(bodies.lines(request, STREAM_MAX))
        elif kind in (bodies.JSON, bodies.EVENT, bodies.EVENTS):
            body = await bodies.whole(request, bodies.ARRAY_MAX)
            is_array = body.lstrip(b" \t\r\n")[:1] == b"["
            if is_array and kind != bodies.EVENT:
                response = await self._publish_many(bodies.array(body))
            else:
                response = await self._publish_one(body)
        else:
            kinds = ", ".join((bodies.JSON, bodies.LINES, bodies.EVENT, bodies.EVENTS))
            raise Refused(415, "content_type", f"send documents as one of {kinds}")
        self.measures.requests.observe(perf_counter() - begin, operation="publish")
        return response

    async def _publish_one(self, body: bytes) -> Response:
        [receipt] = (await self.service.publish([body])).receipts
        if receipt.outcome == "rejected":
            raise Refused(
                422, receipt.code or "rejected", receipt.reason or "the document was refused", receipt=receipt
            )
        return await as_json(_receipts([receipt]), self.writers)

    async def _publish_many(self, slices: AsyncIterator[list[bytes]]) -> Response:
        receipts: list[Receipt] = []
        async for some in slices:
            receipts += (await self.service.publish(some)).receipts
        return await as_json(_receipts(receipts), self.writers)

    async def subscribe(self, request: Request) -> Response:
        """Server-sent events."""
        asked = read_parameters(request.query_params.multi_items(), Subscribe)
        parts = parts_of(asked.scope)
        if parts is None:
            raise Refused(400, "scope", "no scope has two values of one key; subscribe to each")
        selection = Filter(
            view=asked.view,
            ids=frozenset(asked.id),
            types=frozenset(asked.type),
            domains=frozenset(asked.domain),
            parts=frozenset(parts.items()),
        )
        after = request.headers.get("last-event-id") or asked.after
        return EventStream(await self.service.subscribe(selection, after=after, snapshot=asked.snapshot))

    async def description(self, _: Request) -> Response:
        """The description of all this."""
        return Response(self._description, media_type=bodies.JSON)

    async def metrics(self, _: Request) -> Response:
        """Numbers for Prometheus."""
        standing = await self.service.status()
        return PlainTextResponse(
            self.measures.exposition(standing), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def alive(self, _: Request) -> Response:
        """Whether the process works at all."""
        return PlainTextResponse("alive\n")

    async def ready(self, _: Request) -> Response:
        """Whether it publishes and answers."""
        await self.service.require_ready()
        return PlainTextResponse("ready\n")


async def as_json(answer: object, writers: Turns) -> Response:
    """The answer, every field written out; those that take long are written one piece of one of them at a time."""
    written: list[bytes] = []
    rest = pieces(answer)
    is_whole = _write(rest, written)
    while not is_whole:
        async with writers.next():
            is_whole = _write(rest, written)
    return Response(b"".join(written), media_type=bodies.JSON)


def _write(rest: Iterator[bytes], written: list[bytes]) -> bool:
    """Write for as long as a piece of work may take; whether that was all."""
    end = thread_time() + PIECE_S  # of computing: what is short stays so on a busy machine
    for piece in rest:
        written.append(piece)
        if thread_time() > end:
            return False
    return True


def _receipts(receipts: Sequence[Receipt]) -> Receipts:
    return Receipts(outcomes=dict(Counter(receipt.outcome for receipt in receipts)), receipts=tuple(receipts))


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method"}.get(error.status_code, "http")
    detail = {404: "see /openapi.json for what there is", 405: "see /openapi.json for what this page takes"}.get(
        error.status_code, error.detail
    )
    return problem(Refused(error.status_code, code, detail, headers=error.headers))


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return problem(error)


async def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, StreamCarError)
    if isinstance(error, TooMuch):
        await asyncio.sleep(TOO_MUCH_S * random.uniform(1, 3))  # not all at once
    return problem(refusal(error))


async def _defect(_: Request, __: Exception) -> Response:
    return problem(Refused(500, "internal", "this is a defect; the service's own log says more"))
