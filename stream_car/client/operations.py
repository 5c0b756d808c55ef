"""Every request as HTTP requests that the service accepts."""

from collections.abc import Iterator, Sequence
from typing import TypeVar, cast
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.api import requests as r
from stream_car.api.operations import BY_REQUEST, PATH_FIELD
from stream_car.client.retries import HttpRequest
from stream_car.queries import answers as a, paging
from stream_car.queries.findings import PackageFindings

CORRECTED_BYTES = 1 << 20  # of corrected input sent at once

A = TypeVar("A")
Divisible = r.Resolve | r.GetDocuments | r.GetAffected | r.Replay
Answered = a.Resolution | a.Lookup | PackageFindings | a.Replayed
Listing = r.GetChanges | r.GetRejected | r.GetPending | r.GetFrontier | r.GetHistory
Listed = a.Change | a.Rejected | a.PendingDocument | a.Frontier | a.History


def parts(request: Divisible) -> Iterator[Divisible]:
    """Yield requests that the service accepts. Their answers together are that of the request."""
    if isinstance(request, r.GetAffected):
        for start in range(0, max(len(request.packages), 1), r.NAMES_MAX):
            is_last = start + r.NAMES_MAX >= len(request.packages)
            files = request.files if is_last else ()
            yield replace(request, packages=request.packages[start : start + r.NAMES_MAX], files=files)
        return
    if not isinstance(request, r.Replay):
        limit = r.NAMES_MAX if isinstance(request, r.Resolve) else r.DOCUMENTS_MAX
        for start in range(0, max(len(request.names), 1), limit):
            yield replace(request, names=request.names[start : start + limit])
        return
    for start in range(0, len(request.offsets), r.PAGE_MAX):
        yield replace(request, offsets=request.offsets[start : start + r.PAGE_MAX], corrected=())
    for corrected in _portions(request.corrected):
        yield replace(request, offsets=(), corrected=corrected)


def next_page(request: Listing, page: Sequence[Listed]) -> Listing | None:
    """Return the request that continues after a page; `None` if nothing follows or no more was requested."""
    if not page:
        return None
    last, limit = page[-1], request.limit - sum(map(_size, page))
    if isinstance(last, a.Frontier | a.History):
        after: str | int = last.next
    else:
        after = last.number if isinstance(last, a.Rejected) else last.position
    return replace(request, after=after, limit=limit) if after and limit > 0 else None


def joined(items: Sequence[Listed]) -> Sequence[Listed]:
    """Return the items of all pages as those of one."""
    frontiers = tuple(item for item in items if isinstance(item, a.Frontier))
    histories = tuple(item for item in items if isinstance(item, a.History))
    return paging.joined(frontiers) if frontiers else paging.joined(histories) if histories else items


def _size(item: Listed) -> int:
    """Return how much of a limit an item takes."""
    if isinstance(item, a.Frontier):
        return len(item.in_force) + len(item.blocked)
    return len(item.members) if isinstance(item, a.History) else 1


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
