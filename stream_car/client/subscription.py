"""A subscription from the client's side: bytes to events, over any number of connections."""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from stream_car.api import requests as r
from stream_car.api.bookmark import Bookmark
from stream_car.api.operations import SUBSCRIBE_PATH
from stream_car.client.retries import (
    HttpResponse,
    HttpRetryPolicy,
    NoResponse,
    error_of,
    pause_after,
    requested_pause,
    unreachable,
)
from stream_car.errors import InvalidRequest, StreamCarError, Unavailable
from stream_car.subscriptions.events import Event, Heartbeat

HEADERS = {"Accept": "text/event-stream", "Content-Type": "application/json"}
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)
_kinds = frozenset(str(kind.__struct_config__.tag).encode() for kind in Event.__args__)


class EventParser:
    """Server-sent events out of bytes, however these are cut."""

    def __init__(self) -> None:
        self._rest = b""

    def parse(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that these bytes complete; kinds that this release does not know are skipped."""
        *blocks, self._rest = (self._rest + chunk).split(b"\n\n")
        for block in blocks:
            event = _event(block)
            if event is not None:
                yield event


def _event(block: bytes) -> Event | None:
    fields = dict(_field(line) for line in block.split(b"\n"))
    data = fields.get(b"data")
    if data is None:
        return Heartbeat(cursor=fields[b"id"].decode() if b"id" in fields else None)
    if fields.get(b"event") not in _kinds:
        return None
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"An event cannot be read ({error}). Is this client older than the service?") from None


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name, value.removeprefix(b" ")


class StreamConnection:
    """A subscription across its connections: what to request, what was received, how long to wait."""

    def __init__(self, request: r.Subscribe, bookmark: Bookmark, policy: HttpRetryPolicy, url: str) -> None:
        self.path = SUBSCRIBE_PATH
        self._request = request
        self._bookmark = bookmark
        self._policy = policy
        self._url = url
        self._parser = EventParser()
        self._failure: HttpResponse | NoResponse | None = None
        self._failures = 0
        self._has_begun = False

    @property
    def headers(self) -> dict[str, str]:
        """The headers of a request for the stream."""
        cursor = self._bookmark.cursor
        return {**HEADERS, **({"Last-Event-ID": cursor} if cursor is not None else {})}

    @property
    def body(self) -> bytes:
        """The body of a request: a snapshot that was received whole is not requested again."""
        has_snapshot = self._has_begun and self._bookmark.cursor is not None and not self._bookmark.is_in_snapshot
        request = replace(self._request, snapshot=None) if has_snapshot else self._request
        return msgspec.json.encode(request)

    def opened(self) -> None:
        """The stream begins, or continues."""
        self._parser = EventParser()
        self._has_begun = True

    def receive(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that have arrived; take the next one when the last has been dealt with."""
        self._failures = 0
        for event in self._parser.parse(chunk):
            if isinstance(event, Heartbeat):
                self._bookmark.move_past(event)
            else:
                yield event

    def failed(self, failure: HttpResponse | NoResponse) -> None:
        """A connection was denied, or broke."""
        self._failure = failure

    def pause(self) -> float:
        """Return how long to wait before the next connection. Raises if that is of no use."""
        failure, self._failure = self._failure, None
        self._bookmark.drop()
        if isinstance(failure, HttpResponse) and failure.status not in (429, 503):
            raise self._error(failure)
        if not self._has_begun and self._failures >= self._policy.retries:
            if isinstance(failure, HttpResponse):
                raise error_of(failure)
            raise unreachable(self._url, failure.reason if failure is not None else "it ended")
        self._failures += 1
        pause = pause_after(self._failures - 1)
        return max(pause, requested_pause(failure.retry_after)) if isinstance(failure, HttpResponse) else pause

    def _error(self, response: HttpResponse) -> StreamCarError:
        error = error_of(response)
        return self._bookmark.explain(error) if isinstance(error, InvalidRequest) else error
