"""The synchronous client: `stream_car.connect(url)`.

Promise: the calls, values and errors of `stream_car.open`; `retries` tells what is sent again. Cost: about a
millisecond more per call than in the library. `sync.py` is generated from this file by `python -m tools.generate_sync`;
edit this one.
"""

import time
from collections.abc import Generator
from types import TracebackType
from typing import TypeVar, cast

import httpx
from msgspec.structs import replace

from stream_car.api import requests as r
from stream_car.api.bookmark import Bookmark
from stream_car.api.calls import Calls
from stream_car.client import transport
from stream_car.client.operations import Answered, Divisible, Listed, Listing, encode, joined, next_page, parts
from stream_car.client.publishing import batches, feed_requests
from stream_car.client.retries import (
    HttpRequest,
    HttpResponse,
    HttpRetryPolicy,
    NoResponse,
    pause_before_retry,
    read_answer,
)
from stream_car.client.subscription import StreamConnection
from stream_car.codec import Publishables, encode_document, iterate_documents
from stream_car.core.rules import Ruleset
from stream_car.errors import StreamCarError
from stream_car.processing.receipts import Receipt
from stream_car.processing.strict import require_strict
from stream_car.queries import answers as a
from stream_car.subscriptions.events import Event

A = TypeVar("A")


class Client(Calls):
    """A service at an address. Use it as a context manager, or `close` it."""

    def __init__(
        self, url: str, *, token: str | None = None, timeout_s: float = transport.TIMEOUT_S, retries: int = 4
    ) -> None:
        address = transport.address(url, token)
        self.url = address.url
        self._policy = HttpRetryPolicy(retries=retries)
        self._http = httpx.Client(
            base_url=address.url, headers=address.headers, timeout=timeout_s, trust_env=not address.is_local
        )

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; closing again is harmless."""
        self._http.close()

    def _carry_out(self, request: r.Request[A]) -> A:
        if isinstance(request, Divisible):
            return cast(A, self._call_in_parts(request))
        if isinstance(request, Listing):
            return cast(A, self._call_by_pages(request))
        return self._call(request)

    def _call(self, request: r.Request[A]) -> A:
        return read_answer(self._request(encode(request)), r.answer_type(type(request)))

    def _call_in_parts(self, request: Divisible) -> tuple[Answered, ...]:
        answers: tuple[Answered, ...] = ()
        for part in parts(request):
            answers += self._call(part)
        return answers

    def _call_by_pages(self, request: Listing) -> tuple[Listed, ...]:
        answers: list[Listed] = []
        following: Listing | None = request
        while following is not None:
            page_request: r.Request[tuple[Listed, ...]] = replace(following, limit=min(following.limit, r.PAGE_MAX))
            page = self._call(page_request)
            answers += page
            following = next_page(following, page)
        return tuple(joined(answers))

    def _publish(self, documents: Publishables, options: r.PublishOptions) -> a.Published:
        if options.format:
            requests = feed_requests(iterate_documents(documents), options)
            return a.Published.joined([read_answer(self._request(each), a.Published) for each in requests])
        if options.strict:
            documents = tuple(map(encode_document, iterate_documents(documents)))
            require_strict(documents, Ruleset(self.rules().packs))
        receipts: list[Receipt] = []
        try:
            for batch in batches(iterate_documents(documents)):
                receipts += batch.receipts(self._request(batch.request))
        except StreamCarError as error:
            if receipts:
                error.add_note(f"{len(receipts)} documents before it were published, so publishing all again is safe.")
            raise
        return a.Published.of(receipts)

    def _request(self, request: HttpRequest) -> HttpResponse:
        tries = 0
        while True:
            reply = self._send(request)
            pause = pause_before_retry(request, reply, tries, self._policy, self.url)
            if pause is None and isinstance(reply, HttpResponse):
                return reply
            time.sleep(pause or 0.0)
            tries += 1

    def _send(self, request: HttpRequest) -> HttpResponse | NoResponse:
        self._require_open()
        try:
            response = self._http.request(
                request.method,
                request.path,
                params=request.parameters,
                content=request.body,
                headers=transport.headers(request),
            )
        except httpx.TransportError as error:
            return transport.no_response(error)
        return transport.response(response)

    def _require_open(self) -> None:
        if self._http.is_closed:
            raise transport.closed(self.url)

    def _events(self, request: r.Subscribe, bookmark: Bookmark) -> Generator[Event, None, None]:
        connection = StreamConnection(request, bookmark, self._policy, self.url)
        while True:
            self._require_open()
            try:
                with self._http.stream(
                    "POST",
                    connection.path,
                    content=connection.body,
                    headers=connection.headers,
                    timeout=transport.STREAM_TIMEOUT,
                ) as response:
                    if response.status_code == httpx.codes.OK:
                        connection.opened()
                        for chunk in response.iter_bytes():
                            yield from connection.receive(chunk)
                            bookmark.save()
                    else:
                        response.read()
                        connection.failed(transport.response(response))
            except httpx.TransportError as error:
                connection.failed(transport.no_response(error))
            time.sleep(connection.pause())
