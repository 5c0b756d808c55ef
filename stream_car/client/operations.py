"""Every request as HTTP requests that the service accepts."""

from collections.abc import Iterator
from typing import TypeVar, cast
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.api import requests as r
from stream_car.api.operations import BY_REQUEST, PATH_FIELD
from stream_car.client.retries import HttpRequest
from stream_car.queries import answers as a

CORRECTED_BYTES = 1 << 20  # of corrected input sent at once

A = TypeVar("A")
Divisible = r.Resolve | r.GetDocuments | r.Replay


def parts(request: Divisible) -> Iterator[Divisible]:
    """Yield requests that the service accepts. Their answers together are that of the request."""
    if not isinstance(request, r.Replay):
        limit = r.NAMES_MAX if isinstance(request, r.Resolve) else r.DOCUMENTS_MAX
        for start in range(0, max(len(request.names), 1), limit):
            yield replace(request, names=request.names[start : start + limit])
        return
    for start in range(0, len(request.offsets), r.PAGE_MAX):
        yield replace(request, offsets=request.offsets[start : start + r.PAGE_MAX], corrected=())
    for corrected in _portions(request.corrected):
        yield replace(request, offsets=(), corrected=corrected)


def next_page(request: r.GetChanges | r.GetRejected, last: a.Change | a.Rejected) -> r.GetChanges | r.GetRejected:
    """Return the request that continues after the last item of a page."""
    return replace(request, after=last.position if isinstance(last, a.Change) else last.number)


def _portions(corrections: tuple[r.Corrected, ...]) -> Iterator[tuple[r.Corrected, ...]]:
    portion: list[r.Corrected] = []
    size = 0
    for correction in corrections:
        size += len(correction.content)
        if portion and (len(portion) == r.CORRECTED_MAX or size > CORRECTED_BYTES):
            yield tuple(portion)
            portion, size = [], len(correction.content)
        portion.append(correction)
    if portion:
        yield tuple(portion)


def encode(request: r.Request[A]) -> HttpRequest:
    """Return the HTTP request that carries a request."""
    operation = BY_REQUEST[cast(type[r.Request[object]], type(request))]
    if operation.method == "POST":
        body = msgspec.json.encode(request)
        is_repeatable = not isinstance(request, r.Rebuild)
        return HttpRequest(method="POST", path=operation.path, body=body, is_repeatable=is_repeatable)
    path = operation.path
    if operation.has_path_field:
        path = path.replace(f"{{{PATH_FIELD}}}", _quoted(str(getattr(request, PATH_FIELD))))
    skipped = (PATH_FIELD,) if operation.has_path_field else ()
    return HttpRequest(method="GET", path=path, parameters=tuple(parameters(request, skipped)))


def parameters(request: Struct, skipped: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the fields of a request as URL parameters, without those that are `None`."""
    fields = msgspec.to_builtins(request)
    for name, value in fields.items():
        if name in skipped or value is None:
            continue
        values = value if isinstance(value, list | tuple) else [value]
        yield from ((name, str(item).lower() if isinstance(item, bool) else str(item)) for item in values)


def _quoted(name: str) -> str:
    """Return an id as one segment of a path. Dots alone would mean a folder."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")
