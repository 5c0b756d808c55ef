"""The operations over HTTP: where each is, what it takes, what it answers, and how it is done.

Promise: one table; the routes and their description both follow from it.
"""

import inspect
from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec import Struct
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.requests import Request

from stream_car.api import messages as m
from stream_car.api.service import Service
from stream_car.codec import parse_time, read_parameters, read_request
from stream_car.errors import InvalidRequest
from stream_car.queries import answers as a

S = TypeVar("S", bound=Struct)


class Anything(PathConvertor):
    """The rest of a path, slashes and line ends included: an id may have any."""

    regex = "(?s:.+)"


register_url_convertor("anything", Anything())


class Operation(Struct, frozen=True, kw_only=True):
    """One call. `takes` is the type of its body (POST) or of its parameters (GET); `run` reads and does it."""

    name: str
    method: str
    path: str
    takes: type[Struct]
    answers: object
    statuses: tuple[int, ...]
    run: Callable[[Service, Request, bytes], Awaitable[object]]
    needs_token: bool = False

    @property
    def summary(self) -> str:
        """What it is for."""
        return inspect.cleandoc(getattr(Service, self.name).__doc__ or "")


def _operation(
    method: str,
    path: str,
    takes: type[S],
    answers: object,
    do: Callable[[Service, S, Request], Awaitable[object]],
    statuses: tuple[int, ...] = (),
    *,
    needs_token: bool = False,
) -> Operation:
    async def run(service: Service, request: Request, body: bytes) -> object:
        if method == "POST":
            said = read_request(body, takes)
        else:
            said = read_parameters(request.query_params.multi_items(), takes)
        return await do(service, said, request)

    name = do.__name__.removeprefix("_")
    return Operation(
        name=name,
        method=method,
        path=path,
        takes=takes,
        answers=answers,
        statuses=(400, *statuses, 503),
        run=run,
        needs_token=needs_token,
    )


def time_of(text: str | None) -> int | None:
    """Microseconds of a valid time. Raises `InvalidRequest`."""
    if text is None:
        return None
    try:
        return parse_time(text)
    except ValueError as error:
        raise InvalidRequest("as_of", f"`as_of` is no time: {error}") from None


def parts_of(pairs: Sequence[str]) -> dict[str, str] | None:
    """The `KEY=VALUE` pairs; `None` where one key has two values, which no scope has."""
    parts: dict[str, str] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        if parts.setdefault(key, value) != value:
            return None
    return parts


async def _query(service: Service, said: m.Query, _: Request) -> a.Answer:
    return await service.query(
        said.text,
        k=said.k,
        depth=said.depth,
        as_of=time_of(said.as_of),
        budget=said.budget,
        after=said.after,
        timeout_ms=said.timeout_ms,
    )


async def _relevance(service: Service, said: m.Relevance, _: Request) -> Sequence[a.Evidence]:
    return await service.relevance(said.text, said.k)


async def _resolve(service: Service, said: m.Resolve, _: Request) -> Sequence[a.Resolution]:
    return await service.resolve(said.names, as_of=time_of(said.as_of), after=said.after, timeout_ms=said.timeout_ms)


async def _check(service: Service, said: m.Check, _: Request) -> a.Audit:
    return await service.check(
        said.ids,
        question=said.question,
        depth=said.depth,
        as_of=time_of(said.as_of),
        after=said.after,
        timeout_ms=said.timeout_ms,
    )


async def _frontier(service: Service, said: m.ScopeAsOf, _: Request) -> Sequence[a.Frontier]:
    parts = parts_of(said.scope)
    as_of = time_of(said.as_of)
    return () if parts is None else await service.frontier(parts, as_of=as_of)


async def _history(service: Service, said: m.InScope, _: Request) -> Sequence[a.History]:
    parts = parts_of(said.scope)
    return () if parts is None else await service.history(parts)


async def _changes(service: Service, said: m.ChangesAfter, _: Request) -> Sequence[a.Told]:
    parts = parts_of(said.scope)
    return (
        ()
        if parts is None
        else await service.changes(parts or None, after=said.after, limit=said.limit, behind=said.behind)
    )


async def _explain(service: Service, said: m.AsOf, request: Request) -> a.Explanation:
    return await service.explain(str(request.path_params["id"]), as_of=time_of(said.as_of))


async def _rejected(service: Service, said: m.RejectedAfter, _: Request) -> Sequence[a.Rejected]:
    return await service.rejected(after=said.after, limit=said.limit)


async def _pending(service: Service, _: m.Nothing, __: Request) -> Sequence[m.Waiting]:
    return await service.pending()


async def _rules(service: Service, _: m.Nothing, __: Request) -> m.Rules:
    return await service.rules()


async def _status(service: Service, _: m.Nothing, __: Request) -> m.Standing:
    return await service.status()


async def _replay(service: Service, said: m.Replay, _: Request) -> Sequence[a.Replayed]:
    return await service.replay(said.offsets, {one.offset: _bytes(one) for one in said.mended}, trial=said.dry_run)


def _bytes(one: m.Mended) -> bytes:
    if isinstance(one.value, str):
        return one.value.encode()
    try:
        return b64decode(one.value.base64, validate=True)
    except ValueError:
        raise InvalidRequest("mended", f"the `value` of {one.offset} is no base64") from None


async def _rebuild(service: Service, said: m.Rebuild, _: Request) -> m.Progress:
    return await service.rebuild(said.packs, said.texts, future=said.future, dry_run=said.dry_run)


async def _rebuilding(service: Service, _: m.Nothing, __: Request) -> m.Progress:
    return await service.rebuilding()


SEEING = (409, 504)
BODY = (408, 413, 415)
POSTED = (*BODY, *SEEING)

OPERATIONS = (
    _operation("POST", "/v1/query", m.Query, a.Answer, _query, POSTED),
    _operation("POST", "/v1/relevance", m.Relevance, tuple[a.Evidence, ...], _relevance, BODY),
    _operation("POST", "/v1/resolve", m.Resolve, tuple[a.Resolution, ...], _resolve, POSTED),
    _operation("POST", "/v1/check", m.Check, a.Audit, _check, POSTED),
    _operation("GET", "/v1/frontier", m.ScopeAsOf, tuple[a.Frontier, ...], _frontier),
    _operation("GET", "/v1/history", m.InScope, tuple[a.History, ...], _history),
    _operation("GET", "/v1/changes", m.ChangesAfter, tuple[a.Told, ...], _changes),
    _operation("GET", "/v1/explain/{id:anything}", m.AsOf, a.Explanation, _explain),
    _operation("GET", "/v1/rejected", m.RejectedAfter, tuple[a.Rejected, ...], _rejected),
    _operation("POST", "/v1/replay", m.Replay, tuple[a.Replayed, ...], _replay, BODY),
    _operation("GET", "/v1/pending", m.Nothing, tuple[m.Waiting, ...], _pending),
    _operation("GET", "/v1/rules", m.Nothing, m.Rules, _rules),
    _operation("GET", "/v1/status", m.Nothing, m.Standing, _status),
    _operation("POST", "/v1/rebuild", m.Rebuild, m.Progress, _rebuild, (*BODY, 403, 409, 422), needs_token=True),
    _operation("GET", "/v1/rebuild", m.Nothing, m.Progress, _rebuilding),
)
