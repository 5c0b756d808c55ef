"""A subscription as a program iterates over it.

Promise: an event counts as dealt with when the next one is requested, or when the caller says so with `keep`.
`subscription.py` is generated from this file by `python -m tools.generate_sync`; edit this one.
"""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from stream_car.api import requests as r
from stream_car.api.bookmark import Bookmark
from stream_car.subscriptions.events import Event

if TYPE_CHECKING:
    from stream_car.api.calls_aio import AsyncCalls


class AsyncSubscription:
    """The events of a subscription.

    The request for the next event means that the last one has been dealt with: `cursor` moves past it, and the cursor
    file follows. `keep` does both at once. End it with `close`, or use it as a context manager. Raises `Unavailable` if
    the service does not answer at first; after that, it waits until the service answers again.
    """

    def __init__(self, calls: "AsyncCalls", request: r.Subscribe, bookmark: Bookmark) -> None:
        self._calls = calls
        self.request = request
        self._bookmark = bookmark
        self._stream: AsyncGenerator[Event, None] | None = None

    @property
    def cursor(self) -> str | None:
        """The cursor of the last event that was dealt with."""
        return self._bookmark.cursor

    def continued(self, cursor: str | None) -> "AsyncSubscription":
        """Return the same subscription from a cursor on, or without one from its beginning."""
        return AsyncSubscription(self._calls, self.request, Bookmark(cursor, None))

    def __aiter__(self) -> "AsyncSubscription":
        return self

    async def __anext__(self) -> Event:
        self._bookmark.settle()
        stream = await self._begin()
        try:
            event = await anext(stream)
        except StopAsyncIteration:
            self._stream = None
            self._bookmark.save()
            raise
        self._bookmark.hand_out(event)
        return event

    async def __aenter__(self) -> "AsyncSubscription":
        await self._begin()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def keep(self) -> None:
        """Move the cursor and its file past the last event: it has been dealt with."""
        self._bookmark.settle()
        self._bookmark.save()

    async def close(self) -> None:
        """Stop. The last event counts as not dealt with, unless `keep` was called after it."""
        if self._stream is not None:
            await self._stream.aclose()
        self._bookmark.save()

    async def _begin(self) -> AsyncGenerator[Event, None]:
        """Open the stream. Without a snapshot, a cursor and `since`, it begins at the last change so far."""
        if self._stream is None:
            begins_now = self.request.snapshot is False and self.request.since is None
            if begins_now and self._bookmark.cursor is None:
                self._bookmark.cursor = (await self._calls.status()).cursor
            self._stream = self._calls._events(self.request, self._bookmark)
        return self._stream
