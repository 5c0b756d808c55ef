"""Time on an event loop for work that takes long, so that short requests need not wait for it.

Promise: one piece of long work runs at a time, for about `PIECE_S`. After it the loop belongs to others for `RESTS`
times as long, if there are any. So short work gets most of the time, however much long work there is.

Work that waits for a server between its pieces holds no piece meanwhile: see `YieldingPace`.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from stream_car.errors import Overloaded

LONG_MAX = 64  # long questions at a time
PIECE_S = 0.0005
RESTS = 3  # times as long as a piece took
SWITCH_S = 0.0005  # after which the event loop gets the interpreter back from a thread that computes
YIELD_S = 0.002  # of work, before a question that reads from servers lets others run

T = TypeVar("T")


class SpareTime:
    """A context for one piece of long work. After it comes a rest, unless `is_wanted` says that nothing else waits."""

    def __init__(self, is_wanted: Callable[[], bool] = lambda: True) -> None:
        self._free = asyncio.Lock()
        self._is_wanted = is_wanted
        self._begun = 0.0
        self._owed = 0.0

    @property
    def held_s(self) -> float:
        """The seconds since the piece that runs now began."""
        return asyncio.get_running_loop().time() - self._begun

    async def begin_piece(self) -> None:
        """Wait until no other piece runs and the rest after the last one is over."""
        await self._free.acquire()
        self._begun = asyncio.get_running_loop().time()

    def end_piece(self) -> None:
        """Begin the rest."""
        self._owed += self.held_s
        if self._owed < PIECE_S:
            self._free.release()
            return
        rest = RESTS * self._owed if self._is_wanted() else 0.0
        self._owed = 0.0
        asyncio.get_running_loop().call_later(rest, self._free.release)

    async def __aenter__(self) -> "SpareTime":
        await self.begin_piece()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.end_piece()


class Turns:
    """Shares spare time among many pieces of one kind: together they get as much as any other piece."""

    def __init__(self, spare: SpareTime) -> None:
        self._spare = spare
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def next(self) -> AsyncIterator[None]:
        """Wait for the next turn; the context is the time for one piece of work."""
        async with self._turn, self._spare:
            yield


class LongWork:
    """What runs for long. More than `LONG_MAX` at a time is rejected."""

    def __init__(self) -> None:
        self.running = 0

    def begin(self) -> None:
        """Count one more. Raises `Overloaded`."""
        if self.running >= LONG_MAX:
            raise Overloaded("Too many long questions are running. Ask for less at once, or try again later.")
        self.running += 1

    def end(self) -> None:
        """Count one less."""
        self.running -= 1


class OneThread:
    """A thread for work that cannot rest, one piece of it at a time. As long work it counts, while it waits too."""

    def __init__(self, long_work: LongWork) -> None:
        self._long_work = long_work
        self._turn = asyncio.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        """Return what the work returns. Raises `Overloaded`."""
        self._long_work.begin()
        try:
            async with self._turn:
                interval = sys.getswitchinterval()
                sys.setswitchinterval(SWITCH_S)
                try:
                    return await asyncio.to_thread(work)
                finally:
                    sys.setswitchinterval(interval)
        finally:
            self._long_work.end()


class YieldingPace:
    """Lets other tasks run after `YIELD_S` of work. Implements `queries.read_options.Pace`; use it as a context.

    Of the questions that share a `turn`, at most one continues in each cycle of the event loop. So a short question
    waits for one piece of work per cycle, however many long questions run. A question that has rested is long.
    """

    def __init__(self, turn: asyncio.Lock, long_work: LongWork) -> None:
        self._turn = turn
        self._long_work = long_work
        self._is_long = False
        self._begin = asyncio.get_running_loop().time()

    def __enter__(self) -> "YieldingPace":
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_long:
            self._long_work.end()

    @property
    def is_due(self) -> bool:
        return asyncio.get_running_loop().time() - self._begin >= YIELD_S

    async def rest(self) -> None:
        """Let others run. Raises `Overloaded`."""
        if not self._is_long:
            self._long_work.begin()
            self._is_long = True
        async with self._turn:
            await asyncio.sleep(0)
        self._begin = asyncio.get_running_loop().time()
