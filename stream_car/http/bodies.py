"""Bodies of requests: bounded while they stream, cut into documents without judging them.

Promise: a body beyond the limit is refused before it is parsed, a compressed one at once, and one that
comes slower than `RATE` after `PATIENCE_S` is given up. Of newline-delimited JSON one line is in memory
at a time. Cost: a microsecond or so a line.
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from itertools import islice

from starlette.requests import ClientDisconnect, Request

from stream_car.codec import DEFAULTS, documents_in
from stream_car.http.problems import Refused

JSON = "application/json"
LINES = "application/x-ndjson"
EVENT = "application/cloudevents+json"
EVENTS = "application/cloudevents-batch+json"
PATIENCE_S = 10.0
RATE = 16_384  # bytes a second that a body must bring on average, once patience is over
ARRAY_MAX = 8 << 20
BRACKETS_MAX = 2_000_000  # of an array: what cutting it up may cost
SLICE = 256  # documents cut from an array before others get their turn


def media_type(request: Request) -> str:
    """The body's kind, without parameters; refuses encodings, for their size is not bounded by the body's."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Refused(415, "content_encoding", f"bodies in {encoding!r} are not read; send the body as it is")
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.partition("charset=")[2].strip(' "').lower()
    if charset not in ("", "utf-8", "utf8"):
        raise Refused(415, "content_type", "bodies are UTF-8; leave the charset out")
    return kind.strip().lower()


def require_json(request: Request) -> None:
    """Refuse what is not JSON."""
    if media_type(request) != JSON:
        raise Refused(415, "content_type", f"send the body as {JSON}")


async def chunks(request: Request, most: int) -> AsyncIterator[bytes]:
    """The body as it comes, within size and time."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise too_large(most)
    loop = asyncio.get_running_loop()
    start, size = loop.time(), 0
    stream = aiter(request.stream())
    while True:
        try:
            async with asyncio.timeout_at(start + PATIENCE_S + size / RATE):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise Refused(408, "slow_body", f"send the body faster than {RATE} bytes a second") from None
        except ClientDisconnect:
            raise Refused(400, "disconnected", "the body ended before it was complete; send it again") from None
        if chunk is None:
            return
        size += len(chunk)
        if size > most:
            raise too_large(most)
        yield chunk


async def whole(request: Request, most: int) -> bytes:
    """The body, complete."""
    return b"".join([chunk async for chunk in chunks(request, most)])


async def array(body: bytes) -> AsyncIterator[list[bytes]]:
    """The documents of a JSON array, in slices."""
    if body.count(b"[") + body.count(b"{") > BRACKETS_MAX:
        raise Refused(413, "size", "the array has too many parts; send fewer documents at once, or a stream of lines")
    documents = documents_in(BytesIO(body))
    while some := list(islice(documents, SLICE)):
        yield some
        await asyncio.sleep(0)


async def lines(request: Request, most: int) -> AsyncIterator[list[bytes]]:
    """The lines of a body, in the slices in which they come; blank ones are left out.

    A line longer than a document may be is cut one byte behind, so that it is refused for its size.
    """
    longest = DEFAULTS.document + 1
    rest = b""
    async for chunk in chunks(request, most):
        whole_lines = (rest + chunk).split(b"\n")
        rest = whole_lines.pop()[:longest]
        found = [line[:longest] for raw in whole_lines if (line := raw.strip(b" \t\r"))]
        if found:
            yield found
    if rest.strip(b" \t\r"):
        yield [rest.strip(b" \t\r")]


def too_large(most: int) -> Refused:
    """The refusal of a body beyond its limit; the connection cannot be used on."""
    return Refused(413, "size", f"a body may have {most} bytes; send less at once", headers={"Connection": "close"})
