"""Read request bodies with limits, and cut them into documents without decoding these.

Promise: a body that is too large is rejected before it is parsed, a compressed one at once, and one that is slower than
`RATE` after `PATIENCE_S` is given up. Of newline-delimited JSON, one line is in memory at a time. Cost: about a
microsecond per line.
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from itertools import islice

from starlette.requests import ClientDisconnect, Request

from stream_car.codec import DEFAULT_LIMITS, split_documents
from stream_car.http.problems import HttpError

JSON = "application/json"
LINES = "application/x-ndjson"
EVENT = "application/cloudevents+json"
EVENTS = "application/cloudevents-batch+json"
PATIENCE_S = 10.0
RATE = 16_384  # bytes per second that a body must reach on average after `PATIENCE_S`
ARRAY_MAX = 8 << 20
BRACKETS_MAX = 2_000_000  # of an array; they determine the cost of cutting it
SLICE = 256  # documents cut from an array before other requests run


def media_type(request: Request) -> str:
    """Return the media type without parameters. Raises `HttpError` for encodings, whose decoded size has no limit."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise HttpError(
            415, "content_encoding", f"Bodies encoded as {encoding!r} are not accepted. Send the body without encoding."
        )
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.partition("charset=")[2].strip(' "').lower()
    if charset not in ("", "utf-8", "utf8"):
        raise HttpError(415, "content_type", "Bodies are UTF-8. Omit the charset.")
    return kind.strip().lower()


def require_json(request: Request) -> None:
    """Raise `HttpError` unless the body is JSON."""
    if media_type(request) != JSON:
        raise HttpError(415, "content_type", f"Send the body as {JSON}.")


async def chunks(request: Request, limit: int) -> AsyncIterator[bytes]:
    """Yield the body as it arrives, within the limits of size and time."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large(limit)
    loop = asyncio.get_running_loop()
    start, size = loop.time(), 0
    stream = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout_at(start + PATIENCE_S + size / RATE):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise HttpError(408, "slow_body", f"Send the body faster than {RATE} bytes per second.") from None
        except ClientDisconnect:
            raise HttpError(400, "disconnected", "The body ended before it was complete. Send it again.") from None
        if chunk is None:
            return
        size += len(chunk)
        if size > limit:
            raise too_large(limit)
        yield chunk


async def whole(request: Request, limit: int) -> bytes:
    """Return the complete body."""
    return b"".join([chunk async for chunk in chunks(request, limit)])


async def array(body: bytes) -> AsyncIterator[list[bytes]]:
    """Yield the documents of a JSON array, in slices."""
    if body.count(b"[") + body.count(b"{") > BRACKETS_MAX:
        raise HttpError(
            413, "size", "The array has too many parts. Send fewer documents at once, or newline-delimited JSON."
        )
    documents = split_documents(BytesIO(body))
    while batch := list(islice(documents, SLICE)):
        yield batch
        await asyncio.sleep(0)


async def lines(request: Request, limit: int) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a body in the slices in which they arrive, without blank ones.

    A line longer than a document may be is cut one byte after the limit, so that it is rejected because of its size.
    """
    longest = DEFAULT_LIMITS.document + 1
    rest = b""
    async for chunk in chunks(request, limit):
        whole_lines = (rest + chunk).split(b"\n")
        rest = whole_lines.pop()[:longest]
        documents = [line[:longest] for raw in whole_lines if (line := raw.strip(b" \t\r"))]
        if documents:
            yield documents
    if rest.strip(b" \t\r"):
        yield [rest.strip(b" \t\r")]


def too_large(limit: int) -> HttpError:
    """Return the error for a body beyond the limit. The connection cannot be used again."""
    return HttpError(413, "size", f"A body may have {limit} bytes. Send less at once.", headers={"Connection": "close"})
