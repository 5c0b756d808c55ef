"""Subscriptions as server-sent events.

Promise: each event is one `event`, one `data` line of JSON and, where the stream can be continued after it, an `id`
that is its cursor. A client that takes nothing for `STALL_S` is disconnected; it comes back with its cursor. No events
are queued: the next one is read when the last one has been taken.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from stream_car.subscriptions.events import Event, Heartbeat

STALL_S = 30.0
RETRY_MS = 1000
HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def encode_event(event: Event) -> bytes:
    """Return the text of an event; a heartbeat is a comment, of which clients keep the cursor."""
    cursor = f"id: {event.cursor}\n".encode() if event.cursor is not None else b""
    if isinstance(event, Heartbeat):
        return b": heartbeat\n%b\n" % cursor
    kind = str(event.__struct_config__.tag).encode()
    return b"event: %b\n%bdata: %b\n\n" % (kind, cursor, msgspec.json.encode(event))


class EventStream(Response):
    """A response that continues until either side ends it."""

    def __init__(self, events: AsyncIterator[Sequence[Event]], is_permitted: Callable[[], bool]) -> None:
        """End when `is_permitted` is false; heartbeats are events too, so it is called again and again."""
        super().__init__()
        self.events = events
        self.is_permitted = is_permitted

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client disconnects or stalls, or there are no more."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_disconnected(receive))
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
            async for events in self.events:
                if not self.is_permitted():
                    break
                body = b"".join([encode_event(event) for event in events])
                await _within(send({"type": "http.response.body", "body": body, "more_body": True}))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            closing = getattr(self.events, "aclose", None)
            if closing is not None:
                await closing()


async def _within(sending: Awaitable[None]) -> None:
    async with asyncio.timeout(STALL_S):
        await sending


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
