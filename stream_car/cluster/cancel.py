"""Ending tasks that read from servers.

Promise: they are ended when this returns, also where a client swallowed the first request to end, as those that
wait with a time limit do now and then.
"""

import asyncio

AGAIN_S = 0.2


async def ended(*tasks: "asyncio.Task[None]") -> None:
    """Cancel all of them until they are done; what they raise is nobody's affair any more."""
    left = set(tasks)
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)
