"""Cut request bodies into documents without decoding these.

Promise: a body that is too large is rejected before it is parsed, and a compressed one at once. Of newline-delimited
JSON, one chunk of the connection and one line are in memory at a time. Cost: about half a microsecond per line.
"""

import asyncio
from collections.abc import AsyncIterator
from io import BytesIO
from itertools import islice

from starlette.requests import Request

from stream_car.codec import DEFAULT_LIMITS, split_documents
from stream_car.http.body_room import Body
from stream_car.http.problems import HttpError

JSON = "application/json"
LINES = "application/x-ndjson"
EVENT = "application/cloudevents+json"
EVENTS = "application/cloudevents-batch+json"
DOCUMENTS = (JSON, LINES, EVENT, EVENTS)
ARRAY_MAX = 8 << 20
BRACKETS_MAX = 2_000_000  # of an array; they determine the cost of cutting it
SLICE = 256  # documents cut from an array before other requests run
LINES_MAX, LINES_BYTES_MAX = 2048, 256 << 10  # of a slice of lines; one line may be longer
DOCUMENT_BYTES = 1024  # of memory that a document takes until its receipt is written, beyond its own
BLANK = b" \t\r\n"


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


async def whole(body: Body) -> bytes:
    """Return the complete body."""
    chunks: list[bytes] = []
    async for chunk in body.chunks():
        await body.hold(body.size)
        chunks.append(chunk)
    return b"".join(chunks)


def split_lines(content: bytes) -> list[bytes]:
    """Return the lines of a whole body, without blank ones."""
    return [line for line in (text.strip(BLANK) for text in content.split(b"\n")) if line]


async def array(body: Body, content: bytes) -> AsyncIterator[list[bytes]]:
    """Yield the documents of a JSON array, in slices."""
    if content.count(b"[") + content.count(b"{") > BRACKETS_MAX:
        raise HttpError(
            413, "size", "The array has too many parts. Send fewer documents at once, or newline-delimited JSON."
        )
    documents = split_documents(BytesIO(content))
    await body.hold(len(content) + DOCUMENT_BYTES * SLICE)
    while batch := list(islice(documents, SLICE)):
        yield batch
        await asyncio.sleep(0)


async def lines(body: Body) -> AsyncIterator[list[bytes]]:
    """Yield the lines of a body in slices, without blank ones.

    A line longer than a document may be is cut one byte after the limit, so that it is rejected because of its size.
    """
    longest = DEFAULT_LIMITS.document + 1
    rest = bytearray()
    async for chunk in body.chunks():
        own = len(rest) + len(chunk)
        await body.hold(own)
        documents: list[bytes] = []
        size = 0
        for line in BytesIO(chunk):
            if rest or not line.endswith(b"\n"):
                rest += (line if rest else line.lstrip(BLANK))[: longest + 1 - len(rest)]
                if not line.endswith(b"\n"):
                    break
                document = bytes(rest).strip(BLANK)[:longest]
                rest.clear()
            else:
                document = line.strip(BLANK)[:longest]
            if document:
                documents.append(document)
                size += len(document)
                if len(documents) == LINES_MAX or size > LINES_BYTES_MAX:
                    await body.hold(own + DOCUMENT_BYTES * len(documents))
                    yield documents
                    documents, size = [], 0
        if documents:
            await body.hold(own + DOCUMENT_BYTES * len(documents))
            yield documents
    if last := bytes(rest).strip(BLANK):
        yield [last[:longest]]
