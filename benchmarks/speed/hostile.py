"""Clients that mean no good, in a process of their own: `python -m benchmarks.speed.hostile PORT CLIENTS`.

Promise: a quarter of them each send a body that never comes, a head that never ends, subscribe and read nothing,
all of these again after five seconds, or put a huge question as soon as the last one is answered: half of these
the same again and again, half a new one every time. They go on until they are killed.
"""

import asyncio
import sys
from contextlib import suppress
from random import Random

import msgspec

from benchmarks.speed.feed import paragraphs
from benchmarks.speed.wire import Wire, head, wired

SLOW = head("POST", "/v1/query") + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n"
HALF = b"GET /v1/status HT"
SUBSCRIBE = head("GET", "/v1/subscribe") + b"\r\n"
LENGTH = 10_000
AGAIN_S = 5.0


async def annoy(port: int, number: int) -> None:
    """One of them."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            async with wired(port) as wire, asyncio.timeout(AGAIN_S):
                if number % 4 < 3:
                    wire.writer.write((SLOW, HALF, SUBSCRIBE)[number % 4])
                    await asyncio.Event().wait()
                await _ask_for_much(wire, number)


async def _ask_for_much(wire: Wire, number: int) -> None:
    text = "market notice " * LENGTH
    while True:
        if number % 8 == 7:
            text = _words()
        await wire.send("/v1/query", msgspec.json.encode({"text": text[:LENGTH], "depth": 200, "k": 100}))


_RANDOM = Random(8)
_WORDS = " ".join(one.text for one in paragraphs(300, 1000)).split()


def _words() -> str:
    return " ".join(_RANDOM.choices(_WORDS, k=LENGTH // 5))


async def main(port: int, clients: int) -> None:
    """All of them."""
    await asyncio.gather(*(annoy(port, number) for number in range(clients)))


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
