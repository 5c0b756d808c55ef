"""Wake every task that waits for the engine to go on.

Promise: a task that calls `listen` before it looks for news misses no notification, however long the look takes.
"""

import asyncio


class Broadcast:
    """A notification that reaches all listeners at once."""

    def __init__(self) -> None:
        self._next: asyncio.Future[None] | None = None

    def listen(self) -> asyncio.Future[None]:
        """The next notification after this call."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        return self._next

    def notify(self) -> None:
        """Wake all listeners."""
        signal, self._next = self._next, None
        if signal is not None:
            signal.set_result(None)

    async def wait(self, signal: "asyncio.Future[None]", seconds: float) -> bool:
        """Wait for a notification, at most `seconds`. Return whether it came."""
        done, _ = await asyncio.wait([signal], timeout=seconds)
        return bool(done)
