"""Hostile clients in a process of their own: `python -m benchmarks.speed.hostile PORT CLIENTS`.

Promise: a quarter of the clients each (1) announce a body and never send it, (2) never end a request head, (3)
subscribe and read nothing, all three reconnecting after five seconds, or (4) send a huge query as soon as the previous
one is answered: half of these repeat one query, half send a new one each time. They run until they are killed.
"""

import asyncio
import sys
from contextlib import suppress
from random import Random

import msgspec

from benchmarks.speed.event_stream import paragraphs
from benchmarks.speed.wire import Wire, connect, head

SLOW = head("POST", "/v1/query") + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
HALF = b"GET /v1/status HT"
SUBSCRIBE = head("GET", "/v1/subscribe") + b"\r\n"
LENGTH = 10_000  # characters of a query
RECONNECT_S = 5.0
_RANDOM = Random(8)
_WORDS = " ".join(document.text for document in paragraphs(300, 1000)).split()


async def annoy(port: int, number: int) -> None:
    """Run one client; its number selects its kind."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            async with connect(port) as wire, asyncio.timeout(RECONNECT_S):
                if number % 4 < 3:
                    wire.writer.write((SLOW, HALF, SUBSCRIBE)[number % 4])
                    await asyncio.Event().wait()
                await _send_huge_queries(wire, number)


async def _send_huge_queries(wire: Wire, number: int) -> None:
    text = "market notice " * LENGTH
    while True:
        if number % 8 == 7:
            text = " ".join(_RANDOM.choices(_WORDS, k=LENGTH // 5))
        await wire.send("/v1/query", msgspec.json.encode({"text": text[:LENGTH], "depth": 200, "k": 100}))


async def main(port: int, clients: int) -> None:
    """Run all clients."""
    await asyncio.gather(*(annoy(port, number) for number in range(clients)))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
