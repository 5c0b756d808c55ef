"""Memory for the bodies that are being read: limited for all together, and shared among clients.

Promise: the bytes of bodies that are in memory at one time stay below `ROOM`. A body that needs more waits until others
have ended. Meanwhile the slowest body of the client that has most in memory is given up, if it is slower than
`FAST_RATE`. A body that is slower than `RATE` after `PATIENCE_S` is given up in any case. Only the time that the client
takes counts.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from starlette.requests import ClientDisconnect, Request

from stream_car.http.problems import HttpError

ROOM = 48 << 20  # bytes; what is made of them takes up to twice as much again
BASE = 16 << 10  # bytes that any body counts as
PATIENCE_S = 10.0
RATE = 16_384  # bytes per second that a body must reach on average after `PATIENCE_S`
GRACE_S = 1.0
FAST_RATE = 1 << 20  # bytes per second above which, after `GRACE_S`, a body is not given up for others
CHECK_S = 0.25  # between two looks for a slow body
_CLOSE = {"Connection": "close"}


class Body:
    """The body of one request."""

    def __init__(self, room: "BodyRoom", http: Request, client: str, limit: int) -> None:
        self.http = http
        self.client = client
        self.limit = limit
        self.size = 0  # bytes received
        self.held = 0  # bytes that count as in memory
        self.is_waiting = False  # for room
        self.gives_way = False
        self._room = room
        self._waited_s = 0.0  # for the client, so far
        self._since = 0.0  # when it began to wait for the client
        self._reading: asyncio.Timeout | None = None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, within the limits of size and time."""
        declared = self.http.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > self.limit:
            raise too_large(self.limit)
        loop = asyncio.get_running_loop()
        stream = aiter(self.http.stream())
        while True:
            if self.gives_way:
                raise self._too_slow()
            self._since = loop.time()
            patience = PATIENCE_S + self.size / RATE - self._waited_s
            try:
                async with asyncio.timeout(patience) as self._reading:
                    chunk = await anext(stream, None)
            except TimeoutError:
                raise self._too_slow() from None
            except ClientDisconnect:
                raise HttpError(400, "disconnected", "The body ended before it was complete. Send it again.") from None
            finally:
                self._reading = None
                self._waited_s += loop.time() - self._since
            if chunk is None:
                return
            self.size += len(chunk)
            if self.size > self.limit:
                raise too_large(self.limit)
            yield chunk

    async def hold(self, size: int) -> None:
        """Count `size` bytes of this body as in memory from now on; wait until there is room for them."""
        await self._room.reserve(self, size)

    def rate(self) -> float | None:
        """Return its bytes per second if it waits for its client; `None` if it does not, or not for long yet."""
        if self._reading is None:
            return None
        waited_s = self._waited_s + asyncio.get_running_loop().time() - self._since
        return self.size / waited_s if waited_s > GRACE_S else None

    def give_way(self) -> None:
        """Give up reading."""
        self.gives_way = True
        if self._reading is not None:
            self._reading.reschedule(asyncio.get_running_loop().time())

    def _too_slow(self) -> HttpError:
        if self.gives_way:
            detail = "Too many bodies are being sent, and this was the slowest. Send it again later, or faster."
            return HttpError(503, "unavailable", detail, headers={**_CLOSE, "Retry-After": "5"})
        return HttpError(408, "slow_body", f"Send the body faster than {RATE} bytes per second.", headers=_CLOSE)


class BodyRoom:
    """All bodies that are in memory."""

    def __init__(self, room: int | None = None) -> None:
        self._room = ROOM if room is None else room
        self._bodies: dict[Body, None] = {}
        self._freed = asyncio.Event()

    @property
    def held(self) -> int:
        """The bytes in memory."""
        return sum(body.held for body in self._bodies)

    @contextmanager
    def body(self, http: Request, client: str, limit: int) -> Iterator[Body]:
        """Open the body of a request. What it holds is free again at the end of the block."""
        body = Body(self, http, client, limit)
        self._bodies[body] = None
        try:
            yield body
        finally:
            del self._bodies[body]
            self._freed.set()

    async def reserve(self, body: Body, size: int) -> None:
        """Wait until this body can hold `size` bytes. Raises `HttpError` if that cannot be expected."""
        wanted = max(size, BASE)
        body.is_waiting = True
        try:
            while wanted > body.held and self.held - body.held + wanted > self._room:
                await self._wait(body)
        finally:
            body.is_waiting = False
        if wanted < body.held:
            self._freed.set()
        body.held = wanted

    async def _wait(self, waiting: Body) -> None:
        others = [body for body in self._bodies if body is not waiting and body.held]
        if not any(body.gives_way for body in others):
            slowest = self._slowest()
            if slowest is not None:
                slowest.give_way()
            elif all(body.is_waiting for body in others):
                detail = "Too many bodies are being sent. Send it again later."
                raise HttpError(503, "unavailable", detail, headers={**_CLOSE, "Retry-After": "5"})
        self._freed.clear()
        try:
            async with asyncio.timeout(CHECK_S):
                await self._freed.wait()
        except TimeoutError:
            return

    def _slowest(self) -> Body | None:
        """Return the slowest body of the client that holds most, if it is slow."""
        held: Counter[str] = Counter()
        for body in self._bodies:
            held[body.client] += body.held
        rates = {body: rate for body in self._bodies if (rate := body.rate()) is not None and body.held}
        slow = [body for body, rate in rates.items() if rate < FAST_RATE]
        return min(slow, key=lambda body: (-held[body.client], rates[body]), default=None)


def too_large(limit: int) -> HttpError:
    """Return the error for a body beyond the limit. The connection cannot be used again."""
    return HttpError(413, "size", f"A body may have {limit} bytes. Send less at once.", headers=_CLOSE)
