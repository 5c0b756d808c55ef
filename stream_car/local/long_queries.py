"""Long questions take turns in a queue of their own, so that short ones never wait for them.

Promise: a short question is answered at once. One that is long, because of what it asks for or because it has computed
for `FIRST_S`, continues alone, in pieces, in the time that short questions and publishers leave. Up to `WAITING_MAX`
long questions wait for their turn; more are rejected.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from time import perf_counter, thread_time

from stream_car.errors import Overloaded
from stream_car.queries.fair_scheduling import PIECE_S, SpareTime

FIRST_S = 0.025  # of computing, before a question counts as long
WAITING_MAX = 16
WAIT_MAX_S = 5.0


class LongQueries:
    """The queue. Who has the turn holds `writing`, so that nothing changes what is read."""

    def __init__(self, spare_time: SpareTime, writing: asyncio.Lock) -> None:
        self.spare_time = spare_time
        self.waiting = 0
        self._writing = writing
        self._free = asyncio.Lock()

    @asynccontextmanager
    async def begin(self, *, is_long: bool) -> AsyncIterator["RunningQuery"]:
        """Begin a question. Entering raises `Overloaded` as `RunningQuery.yield_control` does."""
        async with AsyncExitStack() as turn:
            running = RunningQuery(self, turn)
            if is_long:
                await running.wait_for_turn()
            yield running

    async def wait_for_turn(self, turn: AsyncExitStack) -> None:
        """Wait for the turn, and keep it until `turn` closes. Raises `Overloaded`."""
        if self.waiting >= WAITING_MAX:
            raise Overloaded("Too many long questions are waiting. Ask for less at once, or try again later.")
        self.waiting += 1
        try:
            async with asyncio.timeout(WAIT_MAX_S):
                await turn.enter_async_context(self._take_turn())
                await turn.enter_async_context(self._writing)
        except TimeoutError:
            raise Overloaded("Other long questions take too long. Ask for less at once, or try again later.") from None
        finally:
            self.waiting -= 1

    @asynccontextmanager
    async def _take_turn(self) -> AsyncIterator[None]:
        """Run alone. Afterwards, the next one waits as long as this one took, so that documents can be applied."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        begin = loop.time()
        try:
            yield
        finally:
            loop.call_later(loop.time() - begin, self._free.release)


class RunningQuery:
    """One question while it is answered."""

    def __init__(self, queue: LongQueries, turn: AsyncExitStack) -> None:
        self._queue = queue
        self._turn = turn
        self._begin = perf_counter()  # costs a tenth of `thread_time`, and is never behind it
        self._computing_begin = thread_time()
        self._piece: AsyncExitStack | None = None

    async def wait_for_turn(self) -> None:
        """Continue as a long question until the end."""
        await self._queue.wait_for_turn(self._turn)
        self._piece = await self._turn.enter_async_context(AsyncExitStack())
        await self._piece.enter_async_context(self._queue.spare_time)

    async def yield_control(self) -> bool:
        """Let others run if this question has taken long, and return whether it did. Raises `Overloaded`."""
        if self._piece is None:
            if perf_counter() - self._begin < FIRST_S or thread_time() - self._computing_begin < FIRST_S:
                return False
            await self.wait_for_turn()
        elif self._queue.spare_time.held_s < PIECE_S:
            return False
        else:
            await self._piece.aclose()
            await self._piece.enter_async_context(self._queue.spare_time)
        return True
