"""The service over a socket: `python -m tests.benchmarks.service [DOCUMENTS]`.

Promise: the server is a process of its own, started as a user starts it; latencies are what a client sees
over one kept connection. Clients share the machine's cores with it.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from time import perf_counter

import msgspec

from stream_car.codec import encode
from tests.benchmarks.embedded import _question
from tests.benchmarks.feed import paragraphs
from tests.benchmarks.report import Figure, quantile, show
from tests.server import Server

DOCUMENTS = 100_000
SIZE = 1_000
BATCH = 500
ASKED = 400
SINGLES = 200
HOSTILE = 200


class Wire:
    """One kept connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def post(self, path: str, body: bytes, kind: str = "application/json") -> bytes:
        """The body of the answer to a POST; anything but 200 is a failure."""
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        said = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        length = int(said.partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        answer = await self.reader.readexactly(length)
        assert said.startswith(b"http/1.1 200"), answer
        return answer


@asynccontextmanager
async def wired(server: Server) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 26)
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


async def load(server: Server, bodies: Sequence[bytes], stop: asyncio.Event | None = None) -> int:
    """Publish until done or stopped, over two connections; how many documents."""
    queue = iter(bodies)
    count = 0

    async def one() -> None:
        nonlocal count
        async with wired(server) as wire:
            for body in queue:
                if stop is not None and stop.is_set():
                    return
                await wire.post("/v1/documents", body, "application/x-ndjson")
                count += BATCH

    await asyncio.gather(one(), one())
    return count


async def ask(server: Server, documents: int, times: int, seed: int = 3) -> list[float]:
    """Latencies of questions, one after the other, in milliseconds."""
    random = Random(seed)
    took = []
    async with wired(server) as wire:
        for _ in range(times):
            body = msgspec.json.encode({"text": _question(random, documents)})
            begin = perf_counter()
            await wire.post("/v1/query", body)
            took.append((perf_counter() - begin) * 1e3)
    return took


async def until_heard(server: Server, documents: Sequence[bytes]) -> list[float]:
    """From a publish of one document to the event that tells of it, in milliseconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /v1/subscribe?snapshot=false HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await reader.readuntil(b"retry:")
    took = []
    async with wired(server) as wire:
        for document in documents:
            begin = perf_counter()
            sending = asyncio.create_task(wire.post("/v1/documents", document))
            await reader.readuntil(b"event: change")
            took.append((perf_counter() - begin) * 1e3)
            await sending
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    while True:
                        await reader.read(65_536)
    writer.close()
    return took


async def annoy(server: Server, n: int, stop: asyncio.Event) -> None:
    """A client that means no good, of one of four kinds, again and again."""
    subscribe = b"GET /v1/subscribe HTTP/1.1\r\nHost: localhost\r\n\r\n"
    post = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    huge = msgspec.json.encode({"text": "market notice " * 700, "depth": 200, "k": 100})
    while not stop.is_set():
        with suppress(OSError, asyncio.IncompleteReadError):
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            if n % 4 == 0:
                writer.write(post + b"Content-Length: 1000\r\n\r\n")
            elif n % 4 == 1:
                writer.write(b"GET /v1/status HT")
            elif n % 4 == 2:
                writer.write(subscribe)
            else:
                writer.write(post + b"Content-Length: %d\r\n\r\n" % len(huge) + huge)
            with suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await stop.wait()
            writer.close()


def resident(server: Server) -> float:
    """Megabytes of memory of the server."""
    text = Path(f"/proc/{server.process.pid}/statm").read_text()
    return int(text.split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure(server: Server, documents: int) -> int:
    """All figures."""
    corpus = [encode(document) for document in paragraphs(documents + 40_000, SIZE)]
    bodies = [b"\n".join(corpus[at : at + BATCH]) for at in range(0, len(corpus), BATCH)]
    first, rest = bodies[: documents // BATCH], bodies[documents // BATCH :]
    begin = perf_counter()
    await load(server, first)
    rate = documents / (perf_counter() - begin)
    missed = show(
        f"publish {documents:,} documents of 1 KB, {BATCH} a batch",
        [Figure(name="accepted and searchable", value=rate, unit="docs/s", least=5_000.0)],
    )
    await ask(server, documents, 20)
    alone = await ask(server, documents, ASKED)
    missed |= show(f"asked {ASKED} times", _latencies(alone, 5.0, 25.0))
    missed |= show("publish to event, one by one", _latencies(await until_heard(server, _singles()), 20.0, 100.0))
    stop = asyncio.Event()
    loading = asyncio.create_task(load(server, rest, stop))
    begin = perf_counter()
    beside = await ask(server, documents, ASKED, seed=4)
    stop.set()
    rate = await loading / (perf_counter() - begin)
    missed |= show(
        "asked while a bulk publish goes on",
        [*_latencies(beside, None, 25.0), Figure(name="published meanwhile", value=rate, unit="docs/s")],
    )
    return missed | await _hostile(server, documents, alone)


async def _hostile(server: Server, documents: int, alone: Sequence[float]) -> int:
    before = resident(server)
    stop = asyncio.Event()
    annoying = [asyncio.create_task(annoy(server, n, stop)) for n in range(HOSTILE)]
    await asyncio.sleep(3)
    honest = await ask(server, documents, ASKED, seed=5)
    during = resident(server)
    stop.set()
    await asyncio.gather(*annoying)
    return show(
        f"asked beside {HOSTILE} hostile clients",
        [
            *_latencies(honest, None, 2 * quantile(alone, 0.99)),
            Figure(name="memory", value=during / before, unit="times", most=1.2),
        ],
    )


def _latencies(took: Sequence[float], p50: float | None, p99: float | None) -> list[Figure]:
    return [
        Figure(name="p50", value=quantile(took, 0.5), unit="ms", most=p50),
        Figure(name="p99", value=quantile(took, 0.99), unit="ms", most=p99),
        Figure(name="largest", value=max(took), unit="ms"),
    ]


def _singles() -> list[bytes]:
    return [
        encode(msgspec.structs.replace(document, id=f"single-{n}", scope=({"employee": ("E",), "ticker": (str(n),)},),
                                       type="pre_clearance_approved"))
        for n, document in enumerate(paragraphs(SINGLES, SIZE, seed=9))
    ]  # fmt: skip


def main(documents: int = DOCUMENTS) -> int:
    """Print the figures; 1 where a goal is missed."""
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder), stderr=subprocess.DEVNULL) as server:
        return asyncio.run(measure(server, documents))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
