"""Subscriptions as server-sent events.

Promise: each event is one `event`, one `data` line of JSON and, where the stream may be taken up behind it,
an `id` that is its cursor. A client that takes nothing for `STALL_S` is let go; it comes back with its
cursor. Nothing is queued for anybody: the next event is read when the last one has been taken.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from stream_car.api.json import plain
from stream_car.subscriptions.events import Event

STALL_S = 30.0
RETRY_MS = 1000
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def as_event(said: Event) -> bytes:
    """The text of an event; without data only its cursor is kept by clients."""
    cursor = f"id: {said.cursor}\n" if said.cursor is not None else ""
    if said.data is None:
        return f": {said.event}\n{cursor}\n".encode()
    return b"event: %b\n%bdata: %b\n\n" % (said.event.encode(), cursor.encode(), msgspec.json.encode(plain(said.data)))


class EventStream(Response):
    """A response that goes on until either side ends it."""

    def __init__(self, said: AsyncIterator[Sequence[Event]]) -> None:
        super().__init__()
        self.said = said

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what is said until the client goes, stalls, or nothing more is said."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_left(receive))
        _, pending = await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        with suppress(TimeoutError, OSError):
            if sending.done() and not sending.cancelled():
                sending.result()

    async def _send(self, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await _within(send({"type": "http.response.body", "body": b"retry: %d\n\n" % RETRY_MS, "more_body": True}))
            async for some in self.said:
                body = b"".join([as_event(said) for said in some])
                await _within(send({"type": "http.response.body", "body": body, "more_body": True}))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            closing = getattr(self.said, "aclose", None)
            if closing is not None:
                await closing()


async def _within(sending: Awaitable[None]) -> None:
    async with asyncio.timeout(STALL_S):
        await sending


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
