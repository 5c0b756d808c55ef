"""The time of a loop that there is to spare: for work that takes long and that nobody short is to wait for.

Promise: one piece of such work at a time, of `PIECE_S` or so; after it the loop is left to others for `RESTS` times as
long, if there are any. So however much of it there is, most of the time belongs to what is short.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

PIECE_S = 0.0005
RESTS = 3  # times as long as a piece took


class SpareTime:
    """Whoever is inside has the time alone; after a piece of work it rests, unless nobody `is_wanted` elsewhere."""

    def __init__(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        self._free = asyncio.Lock()
        self._is_wanted = is_wanted
        self._begun = 0.0
        self._owed = 0.0

    @property
    def held_s(self) -> float:
        """For how long somebody has been inside."""
        return asyncio.get_running_loop().time() - self._begun

    async def __aenter__(self) -> "SpareTime":
        await self._free.acquire()
        self._begun = asyncio.get_running_loop().time()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._owed += self.held_s
        if self._owed < PIECE_S:
            self._free.release()
            return
        rest = RESTS * self._owed if self._is_wanted() else 0.0
        self._owed = 0.0
        asyncio.get_running_loop().call_later(rest, self._free.release)


class Turns:
    """Many who want spare time for the same: together they get as much as anybody else, one of them in turn."""

    def __init__(self, spare: SpareTime) -> None:
        self._spare = spare
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def next(self) -> AsyncIterator[None]:
        """Time for a piece of work of one of them."""
        async with self._turn, self._spare:
            yield
