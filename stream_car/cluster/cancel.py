"""End tasks that read from servers.

Promise: they have ended when this returns, even if a client swallows the first cancellation, as those that wait with a
time limit sometimes do.
"""

import asyncio

REPEAT_S = 0.2


async def cancel(*tasks: "asyncio.Task[None]") -> None:
    """Cancel all of them again and again until they have ended. What they raise is dropped."""
    running = set(tasks)
    while running:
        for task in running:
            task.cancel()
        _, running = await asyncio.wait(running, timeout=REPEAT_S)
    await asyncio.gather(*tasks, return_exceptions=True)
