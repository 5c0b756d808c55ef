"""The service over HTTP: JSON in, JSON out, errors as problem details.

Promise: bodies, depth, lists and times are bounded; `/openapi.json` describes every request and its answer. Cost: about
half a millisecond more than the request itself.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from time import perf_counter, thread_time

import msgspec
from starlette.applications import Starlette
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_car.api import requests as r
from stream_car.api.json import encode_in_pieces
from stream_car.api.operations import (
    METRICS_ROLE,
    OPERATIONS,
    PATH_FIELD,
    PUBLISH_PATH,
    PUBLISH_ROLE,
    SUBSCRIBE_PATH,
    SUBSCRIBE_ROLE,
    Operation,
    Role,
)
from stream_car.api.service import Service
from stream_car.codec import read_parameters, read_request
from stream_car.errors import Overloaded, StreamCarError
from stream_car.http import bodies, static
from stream_car.http.access_log import AccessLog, name_of_token
from stream_car.http.audit_log import call_audited
from stream_car.http.auth import Guard
from stream_car.http.bodies import ARRAY_MAX
from stream_car.http.body_room import Body, BodyRoom
from stream_car.http.clients import Proxies, client_of
from stream_car.http.metrics import CONTENT_TYPE, Metrics
from stream_car.http.openapi import describe
from stream_car.http.problems import HttpError, as_http_error, problem_response
from stream_car.http.receipt_spool import ReceiptSpool
from stream_car.http.sse import EventStream
from stream_car.http.tokens import Tokens
from stream_car.queries.answers import Published
from stream_car.queries.fair_scheduling import PIECE_S, SpareTime, Turns

TOKENLESS = (
    "Only available when the service runs with a token: start it with $STREAM_CAR_TOKEN or --token-file, and send it."
)
STALE = "1 if the file of tokens cannot be used, so that the tokens that were read before are in force."
STREAM_MAX = 1 << 30
NOT_STRICT = r.PublishOptions()
REQUEST_MAX = 4 << 20
OVERLOADED_S = 0.5  # an overloaded service answers later, so that a client which ignores it cannot ask more often
Handler = Callable[[Request], Awaitable[Response]]
Endpoints = Mapping[str, Callable[[Service], ASGIApp]]  # by path, for POST
NO_ENDPOINTS: Endpoints = {}


def application(
    service: Service,
    *,
    version: str,
    hosts: Collection[str],
    any_address: bool = False,
    tokens: Tokens | None = None,
    metrics: Metrics | None = None,
    spare_time: SpareTime | None = None,
    proxies: Proxies = (),
    endpoints: Endpoints = NO_ENDPOINTS,
) -> Starlette:
    """Return the ASGI application over a service. `hosts` and `any_address` are those of `Guard`.

    `proxies` are believed when they name the client that they forward a request for.

    `endpoints` are further ones over the service. They check roles themselves.

    Long answers are encoded in `spare_time`; without it, at once.
    """
    turns = Turns(spare_time or SpareTime(lambda: False))
    metrics = metrics or Metrics()
    metrics.add_gauge("stream_car_tokens_stale", STALE, lambda: tokens is not None and tokens.is_stale)
    api = Api(service, metrics, version, turns, tokens)
    routes = [
        route(PUBLISH_PATH, api.publish, name="publish", role=PUBLISH_ROLE, method="POST"),
        *(route(op.path, api.handler(op), name=op.name, role=op.role, method=op.method) for op in OPERATIONS),
        *(
            route(SUBSCRIBE_PATH, api.subscribe, name="subscribe", role=SUBSCRIBE_ROLE, method=method)
            for method in ("GET", "POST")
        ),
        route("/openapi.json", api.description, name="description", role=None),
        route("/metrics", api.metrics_page, name="metrics", role=METRICS_ROLE),
        route("/livez", api.alive, name="livez", role=None),
        route("/readyz", api.ready, name="readyz", role=None),
        *(route(path, handler, name="page", role=None) for path, handler in static.handlers().items()),
        *(Route(path, InRoom(make(service), api.room), methods=["POST"]) for path, make in endpoints.items()),
    ]
    return Starlette(
        routes=routes,
        middleware=[
            Middleware(AccessLog, proxies=proxies),
            Middleware(Guard, hosts=hosts, any_address=any_address, tokens=tokens),
        ],
        exception_handlers=EXCEPTION_HANDLERS,
    )


class AnythingConvertor(PathConvertor):
    """The rest of a path, slashes and line ends included: an id may contain them. An empty one is an invalid id."""

    regex = "(?s:.*)"


register_url_convertor("anything", AnythingConvertor())


class InRoom:
    """An endpoint whose bodies are read whole first, and count as in memory until it has answered."""

    def __init__(self, endpoint: ASGIApp, room: BodyRoom) -> None:
        self._endpoint = endpoint
        self._room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        with self._room.body(Request(scope, receive), client_of(scope), REQUEST_MAX) as body:
            left: list[Message] = [{"type": "http.request", "body": await bodies.whole(body), "more_body": False}]

            async def next_message() -> Message:
                return left.pop() if left else await receive()

            await self._endpoint(scope, next_message, send)


def route(path: str, handler: Handler, *, name: str, role: Role | None, method: str = "GET") -> Route:
    """Return a route for tokens with a role; `None` means for all that pass the guard."""

    async def permitted(http: Request) -> Response:
        http.scope["operation"] = name
        if role is not None:
            _require_role(http.scope, role)
        return await handler(http)

    return Route(path.replace("}", ":anything}"), permitted, methods=[method], name=name)


def _require_role(scope: Scope, role: Role) -> None:
    if role not in scope["roles"]:
        problem = f"The token `{name_of_token(scope)}` does not have the role `{role}`, which this needs."
        raise HttpError(403, "role", f"{problem} Send a token that has it.")


class Api:
    """The handlers."""

    def __init__(
        self,
        service: Service,
        metrics: Metrics,
        version: str,
        turns: Turns,
        tokens: Tokens | None = None,
    ) -> None:
        self.service = service
        self.tokens = tokens
        self.room = BodyRoom()
        self.metrics = metrics
        self.turns = turns
        self._description = msgspec.json.encode(describe(version))

    def handler(self, operation: Operation) -> Handler:
        """Return the handler of one operation."""

        async def handle(http: Request) -> Response:
            if operation.needs_token and self.tokens is None:
                raise HttpError(403, "no_token", TOKENLESS)
            request = await self._read(http, operation)
            begin = perf_counter()
            if operation.is_audited:
                answer = await call_audited(self.service, request, operation=operation.name, scope=http.scope)
            else:
                answer = await self.service.call(request)
            response = await as_json(answer, self.turns)
            self.metrics.observe_request(operation.name, perf_counter() - begin)
            self.metrics.count_incomplete(operation.name, answer)
            return response

        return handle

    async def publish(self, http: Request) -> Response:
        """Publish one document, a JSON array, or lines of JSON."""
        options = read_parameters(http.query_params.multi_items(), r.PublishOptions)
        begin = perf_counter()
        kind = bodies.media_type(http)
        if options.format:
            response = await self._publish_feed(http, options)
            self.metrics.observe_request("publish", perf_counter() - begin)
            return response
        if kind not in bodies.DOCUMENTS:
            raise HttpError(415, "content_type", f"Send documents as one of {', '.join(bodies.DOCUMENTS)}.")
        is_stream = kind == bodies.LINES and not options.strict
        with self.room.body(http, client_of(http.scope), STREAM_MAX if is_stream else ARRAY_MAX) as body:
            if is_stream:
                response = await self._publish_many(http, bodies.lines(body))
            else:
                response = await self._publish_whole(http, body, kind, options)
        self.metrics.observe_request("publish", perf_counter() - begin)
        return response

    async def _publish_feed(self, http: Request, options: r.PublishOptions) -> Response:
        """Publish the content of a file of a publisher's own format."""
        with self.room.body(http, client_of(http.scope), ARRAY_MAX) as body:
            published = await self._publish(http, [await bodies.whole(body)], options)
        return await as_json(published, self.turns)

    async def _publish_whole(self, http: Request, body: Body, kind: str, options: r.PublishOptions) -> Response:
        """Publish a body that is read to its end first; if the call is strict, all of its documents at once."""
        content = await bodies.whole(body)
        if kind != bodies.LINES and (kind == bodies.EVENT or content.lstrip(bodies.BLANK)[:1] != b"["):
            return await self._publish_one(http, content, options)
        if not options.strict:
            return await self._publish_many(http, bodies.array(body, content))
        if kind == bodies.LINES:
            documents = bodies.split_lines(content)
        else:
            documents = [document async for batch in bodies.array(body, content) for document in batch]
        return await as_json(await self._publish(http, documents, options), self.turns)

    async def _publish(
        self, http: Request, documents: Sequence[bytes], options: r.PublishOptions = NOT_STRICT
    ) -> Published:
        client = client_of(http.scope)
        request = r.Publish(documents=tuple(documents), client=client, strict=options.strict, format=options.format)
        return await call_audited(self.service, request, operation="publish", scope=http.scope)

    async def _publish_one(self, http: Request, body: bytes, options: r.PublishOptions) -> Response:
        published = await self._publish(http, [body], options)
        [receipt] = published.receipts
        if receipt.outcome == "rejected":
            raise HttpError(
                422, receipt.code or "rejected", receipt.reason or "The document was rejected.", receipt=receipt
            )
        return await as_json(published, self.turns)

    async def _publish_many(self, http: Request, slices: AsyncIterator[list[bytes]]) -> Response:
        with ReceiptSpool() as spool:
            async for documents in slices:
                spool.add((await self._publish(http, documents)).receipts)
            return spool.response()

    async def subscribe(self, http: Request) -> Response:
        """Stream the events of a subscription as server-sent events."""
        client = client_of(http.scope)
        if http.method == "POST":
            bodies.require_json(http)
            with self.room.body(http, client, REQUEST_MAX) as body:
                request = read_request(await bodies.whole(body), r.Subscribe)
        else:
            request = read_parameters(http.query_params.multi_items(), r.Subscribe)
        last = http.headers.get("last-event-id")
        if last:
            request = msgspec.structs.replace(request, after=last)
        events = await self.service.subscribe(request, client)
        return EventStream(events, lambda: self._is_permitted(http.scope))

    def _is_permitted(self, scope: Scope) -> bool:
        """Return whether the token is still in force: it may be revoked while a subscription goes on."""
        return self.tokens is None or self.tokens.has(scope["principal"])

    async def description(self, _: Request) -> Response:
        """Return the OpenAPI description."""
        return Response(self._description, media_type=bodies.JSON)

    async def metrics_page(self, _: Request) -> Response:
        """Return the metrics for Prometheus. Those that are known do not depend on whether questions are answered."""
        status, is_ready = None, False
        with suppress(StreamCarError):
            status = await self.service.call(r.GetStatus())
            await self.service.require_ready()
            is_ready = True
        return Response(self.metrics.exposition(status, is_ready=is_ready), media_type=CONTENT_TYPE)

    async def alive(self, _: Request) -> Response:
        """Return whether the process works at all."""
        return PlainTextResponse("alive\n")

    async def ready(self, _: Request) -> Response:
        """Return whether it publishes and answers."""
        notice = await self.service.require_ready()
        return PlainTextResponse(f"ready\n{notice}\n" if notice else "ready\n")

    async def _read(self, http: Request, operation: Operation) -> r.Request[object]:
        """Return the request that a body, or parameters and a path, spell."""
        if operation.method == "POST":
            bodies.require_json(http)
            with self.room.body(http, client_of(http.scope), REQUEST_MAX) as body:
                return read_request(await bodies.whole(body), operation.request)
        parameters = http.query_params.multi_items()
        if operation.has_path_field:
            if PATH_FIELD in http.query_params:
                raise HttpError(400, "field", f"`{PATH_FIELD}` is part of the path.")
            parameters.append((PATH_FIELD, str(http.path_params[PATH_FIELD])))
        return read_parameters(parameters, operation.request)


async def as_json(answer: object, turns: Turns) -> Response:
    """Return the answer as JSON; what takes long is encoded in pieces, one piece of one answer at a time."""
    encoded: list[bytes] = []
    pieces = encode_in_pieces(answer)
    is_complete = _encode(pieces, encoded)
    while not is_complete:
        async with turns.next():
            is_complete = _encode(pieces, encoded)
    return Response(b"".join(encoded), media_type=bodies.JSON)


def _encode(pieces: Iterator[bytes], encoded: list[bytes]) -> bool:
    """Encode for as long as a piece of work may take, and return whether that was all."""
    end = thread_time() + PIECE_S  # of computing: what is short stays short on a busy machine
    for piece in pieces:
        encoded.append(piece)
        if thread_time() > end:
            return False
    return True


async def _unknown_page(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method"}.get(error.status_code, "http")
    detail = {
        404: "This page does not exist; see /openapi.json.",
        405: "This page does not accept this method; see /openapi.json.",
    }.get(error.status_code, error.detail)
    return problem_response(HttpError(error.status_code, code, detail, headers=error.headers))


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HttpError)
    return problem_response(error)


async def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, StreamCarError)
    if isinstance(error, Overloaded):
        await asyncio.sleep(OVERLOADED_S * random.uniform(1, 3))  # not all at once
    return problem_response(as_http_error(error))


async def _defect(_: Request, __: Exception) -> Response:
    return problem_response(HttpError(500, "internal", "The service has an internal error. Its log has the details."))


EXCEPTION_HANDLERS: Mapping[type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
    HTTPException: _unknown_page,
    HttpError: _http_error,
    StreamCarError: _failed,
    Exception: _defect,
}
