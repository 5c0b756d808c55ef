"""How work that takes long leaves room for the rest.

Promise: a short question is answered at once. One that is long, by what it asks for or by what it turns out to
take, goes on in a lane: one question at a time, in pieces, in the time that there is to spare (`api.spare`). Some
long questions may wait for the lane; the rest are told that it is too much.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from time import perf_counter, thread_time

from stream_car.errors import TooMuch
from stream_car.queries.fair_scheduling import PIECE_S, SpareTime

FIRST_S = 0.025  # of computing: what a question may take before it has to go on in the lane
WAITING_MAX = 16
WAIT_MAX_S = 5.0


class Lane:
    """Long questions. `still` is held by the one inside, so that nothing changes what it reads."""

    def __init__(self, spare: SpareTime, still: asyncio.Lock) -> None:
        self.spare = spare
        self.waiting = 0
        self._still = still
        self._free = asyncio.Lock()

    @asynccontextmanager
    async def turn(self, *, is_long: bool) -> AsyncIterator["Turn"]:
        """One question's way. Raises `TooMuch` where too many wait for the lane, and so do the turn's methods."""
        async with AsyncExitStack() as held:
            turn = Turn(self, held)
            if is_long:
                await turn.enter()
            yield turn

    async def enter(self, held: AsyncExitStack) -> None:
        """Wait for the lane, and have it until `held` is left. Raises `TooMuch`, at once where too many wait."""
        if self.waiting >= WAITING_MAX:
            raise TooMuch("too many long questions are waiting; ask for less at once, or again later")
        self.waiting += 1
        try:
            async with asyncio.timeout(WAIT_MAX_S):
                await held.enter_async_context(self._alone())
                await held.enter_async_context(self._still)
        except TimeoutError:
            raise TooMuch("other long questions take too long; ask for less at once, or again later") from None
        finally:
            self.waiting -= 1

    @asynccontextmanager
    async def _alone(self) -> AsyncIterator[None]:
        """One at a time; afterwards those who apply documents have as long."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            yield
        finally:
            loop.call_later(loop.time() - begun, self._free.release)


class Turn:
    """What one question may take."""

    def __init__(self, lane: Lane, held: AsyncExitStack) -> None:
        self._lane = lane
        self._held = held
        self._since = perf_counter()  # costs a tenth of the other, and is never behind it
        self._begun = thread_time()
        self._piece: AsyncExitStack | None = None

    async def enter(self) -> None:
        """Go on in the lane, until the end of the turn."""
        await self._lane.enter(self._held)
        self._piece = await self._held.enter_async_context(AsyncExitStack())
        await self._piece.enter_async_context(self._lane.spare)

    async def give_way(self) -> bool:
        """Let others go first where this question has taken long; whether they may have done something."""
        if self._piece is None:
            if perf_counter() - self._since < FIRST_S or thread_time() - self._begun < FIRST_S:
                return False
            await self.enter()
        elif self._lane.spare.held_s < PIECE_S:
            return False
        else:
            await self._piece.aclose()
            await self._piece.enter_async_context(self._lane.spare)
        return True
