"""Cut any number of documents into batches that the service accepts.

Promise: there is a receipt for each document, in order, and the bytes of a document arrive unchanged. A batch may be
sent again: the service recognises a repeat by id, revision and content and answers `duplicate`. So after a broken
connection the receipts of documents that had arrived are `duplicate`, and nothing is published twice. The one thing
that must not be repeated, the retraction of whatever revision is stored, is sent alone, and never again once it may
have arrived.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

from stream_car.api.operations import PUBLISH_PATH
from stream_car.api.requests import PublishOptions
from stream_car.client.retries import HttpRequest, HttpResponse, error_of, problem_of, read_answer
from stream_car.codec import DEFAULT_LIMITS, Publishable, encode_document
from stream_car.errors import InvalidRequest
from stream_car.feeds import find_format
from stream_car.processing.receipts import Receipt
from stream_car.queries.answers import Published

LINES = "application/x-ndjson"
SINGLE = "application/cloudevents+json"  # one document, whatever its bytes are
BATCH_MAX = 1000
BATCH_BYTES_MAX = 1 << 20


class Batch(Struct, frozen=True):
    """Documents that are sent together: as lines, or a single one."""

    documents: tuple[bytes, ...]
    is_single: bool = False
    is_repeatable: bool = True

    @property
    def request(self) -> HttpRequest:
        """The request that publishes it."""
        body = self.documents[0] if self.is_single else b"\n".join(self.documents)
        content_type = SINGLE if self.is_single else LINES
        return HttpRequest(
            method="POST", path=PUBLISH_PATH, body=body, content_type=content_type, is_repeatable=self.is_repeatable
        )

    def receipts(self, response: HttpResponse) -> tuple[Receipt, ...]:
        """Return the receipts in a response. Raises what the library would raise."""
        if response.status == 422 and self.is_single:
            problem = problem_of(response)
            if problem is None or problem.receipt is None:
                raise error_of(response)
            return (problem.receipt,)
        return read_answer(response, Published).receipts


def batches(documents: Iterable[Publishable]) -> Iterator[Batch]:
    """Yield the documents in bounded batches, in order. At most one batch is in memory."""
    lines: list[bytes] = []
    size = 0
    for document in documents:
        encoded = encode_document(document)[: DEFAULT_LIMITS.document + 1]  # enough to be rejected because of its size
        is_open = _retracts_any_revision(encoded)
        if is_open or not _is_line(encoded):
            if lines:
                yield Batch(tuple(lines))
            yield Batch((encoded,), is_single=True, is_repeatable=not is_open)
            lines, size = [], 0
            continue
        if lines and size + len(encoded) > BATCH_BYTES_MAX:
            yield Batch(tuple(lines))
            lines, size = [], 0
        lines.append(encoded)
        size += len(encoded) + 1
        if len(lines) == BATCH_MAX:
            yield Batch(tuple(lines))
            lines, size = [], 0
    if lines:
        yield Batch(tuple(lines))


def feed_requests(contents: Iterable[Publishable], options: PublishOptions) -> list[HttpRequest]:
    """Return the requests that publish contents of files of a publisher's own format.

    Records that are one line each are sent together, anything else alone. Raises `InvalidRequest` (`strict`) if a
    strict call does not fit into one request.
    """
    has_lines = bool(find_format(options.format).line_suffixes)
    bodies: list[bytes] = []
    is_open = False  # whether the last body takes more lines
    for content in map(encode_document, contents):
        is_line = has_lines and content[:1] == b"{" and _is_line(content)
        if is_line and is_open and len(bodies[-1]) + len(content) < BATCH_BYTES_MAX:
            bodies[-1] += content + b"\n"
        else:
            bodies.append(content + b"\n" if is_line else content)
        is_open = is_line
    if options.strict and len(bodies) > 1:
        raise InvalidRequest("strict", "A service is strict about one body at a time. Publish less at once.")
    parameters = (("format", options.format), *((("strict", "true"),) if options.strict else ()))
    return [HttpRequest(method="POST", path=PUBLISH_PATH, parameters=parameters, body=body) for body in bodies]


def _is_line(encoded: bytes) -> bool:
    """Return whether the bytes stay unchanged as one line among others."""
    return b"\n" not in encoded and encoded.strip(b" \t\r") == encoded != b""


def _retracts_any_revision(encoded: bytes) -> bool:
    if b'"retracted"' not in encoded:
        return False
    try:
        content: object = msgspec.json.decode(encoded)
    except (msgspec.DecodeError, RecursionError):
        return False
    while isinstance(content, dict) and isinstance(content.get("data"), dict) and "specversion" in content:
        content = content["data"]
    return isinstance(content, dict) and content.get("retracted") is True and content.get("revision") is None
