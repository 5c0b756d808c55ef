"""Tells all who wait that the engine has gone on.

Promise: whoever listens before looking misses no ring, however long the look takes.
"""

import asyncio


class Broadcast:
    """Rings for everybody at once."""

    def __init__(self) -> None:
        self._next: asyncio.Future[None] | None = None

    def listen(self) -> asyncio.Future[None]:
        """The next ring, from now on."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        return self._next

    def notify(self) -> None:
        """Wake everybody."""
        ringing, self._next = self._next, None
        if ringing is not None:
            ringing.set_result(None)

    async def wait(self, signal: "asyncio.Future[None]", seconds: float) -> bool:
        """Whether it rang, waiting for at most so long."""
        done, _ = await asyncio.wait([signal], timeout=seconds)
        return bool(done)
