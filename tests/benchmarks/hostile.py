"""Clients that mean no good, in a process of their own: `python -m tests.benchmarks.hostile PORT CLIENTS`.

Promise: a quarter of them each send a body that never comes, a head that never ends, subscribe and read nothing,
all of these again after five seconds, or put a huge question again as soon as it is answered. They go on until
they are killed.
"""

import asyncio
import sys
from contextlib import suppress

import msgspec

from tests.benchmarks.wire import Wire, head, wired

SLOW = head("POST", "/v1/query") + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
HALF = b"GET /v1/status HT"
SUBSCRIBE = head("GET", "/v1/subscribe") + b"\r\n"
HUGE = msgspec.json.encode({"text": "market notice " * 700, "depth": 200, "k": 100})
AGAIN_S = 5.0


async def annoy(port: int, number: int) -> None:
    """One of them."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            async with wired(port) as wire, asyncio.timeout(AGAIN_S):
                if number % 4 < 3:
                    wire.writer.write((SLOW, HALF, SUBSCRIBE)[number % 4])
                    await asyncio.Event().wait()
                await _ask_for_much(wire)


async def _ask_for_much(wire: Wire) -> None:
    while True:
        await wire.send("/v1/query", HUGE)


async def main(port: int, clients: int) -> None:
    """All of them."""
    await asyncio.gather(*(annoy(port, number) for number in range(clients)))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
