"""The service over a socket: `python -m benchmarks.speed.service [DOCUMENTS]`.

Promise: the server is a process of its own, started as a user starts it; latencies are what a client sees
over one kept connection. Clients share the machine's cores with it.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from time import perf_counter

import msgspec
from msgspec import Struct

from benchmarks.speed.embedded import _question
from benchmarks.speed.feed import paragraphs
from benchmarks.speed.report import Figure, quantile, show
from benchmarks.speed.wire import TOKEN, head, wired
from stream_car.api.messages import Progress
from stream_car.codec import encode
from tests.support.server_process import Server

DOCUMENTS = 100_000
SIZE = 1_000
BATCH = 500
ASKED = 400
SINGLES = 200
HOSTILE = 200
ROUNDS = 4
FILLING = 2000  # questions that fill the cache of answers, as it is where a service is used
SETTLING_S = 5.0


async def load(server: Server, bodies: Sequence[bytes], stop: asyncio.Event | None = None) -> int:
    """Publish until done or stopped, over two connections; how many documents."""
    queue = iter(bodies)
    count = 0

    async def one() -> None:
        nonlocal count
        async with wired(server.port) as wire:
            for body in queue:
                if stop is not None and stop.is_set():
                    return
                await wire.post("/v1/documents", body, "application/x-ndjson")
                count += BATCH

    await asyncio.gather(one(), one())
    return count


class Asked(Struct, frozen=True):
    """Latencies of questions in milliseconds, and what the server computed from each question to its answer.

    The latter is what the latency would be on a machine that does nothing else.
    """

    took: list[float]
    computed: list[float]


async def ask(server: Server, documents: int, times: int, seed: int = 3) -> Asked:
    """Ask one question after the other."""
    random = Random(seed)
    asked = Asked([], [])
    async with wired(server.port) as wire:
        for _ in range(times):
            body = msgspec.json.encode({"text": _question(random, documents)})
            begin, computed = perf_counter(), computing(server)
            await wire.post("/v1/query", body)
            asked.took.append((perf_counter() - begin) * 1e3)
            asked.computed.append((computing(server) - computed) * 1e3)
    return asked


def computing(server: Server) -> float:
    """Seconds of processor time that the server has taken so far."""
    return time.clock_gettime(~server.process.pid << 3 | 2)


async def until_heard(server: Server, documents: Sequence[bytes]) -> list[float]:
    """From a publish of one document to the event that tells of it, in milliseconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(head("GET", "/v1/subscribe?snapshot=false") + b"\r\n")
    await reader.readuntil(b"retry:")
    took = []
    async with wired(server.port) as wire:
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


def resident(server: Server) -> float:
    """Megabytes of memory of the server, files that are mapped into it apart."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1e3


async def measure(server: Server, documents: int) -> int:
    """All figures."""
    corpus = [encode(document) for document in paragraphs(documents + 40_000, SIZE)]
    bodies = [b"\n".join(corpus[at : at + BATCH]) for at in range(0, len(corpus), BATCH)]
    first, rest = bodies[: documents // BATCH], bodies[documents // BATCH :]
    begin, computed = perf_counter(), computing(server)
    await load(server, first)
    rate = documents / (perf_counter() - begin)
    computed = computing(server) - computed
    missed = show(
        f"publish {documents:,} documents of 1 KB, {BATCH} a batch",
        [
            Figure(name="accepted and searchable", value=rate, unit="docs/s", least=5_000.0),
            Figure(name="by the processor's time", value=documents / computed, unit="docs/s"),
        ],
    )
    await ask(server, documents, 20)
    alone = await ask(server, documents, ASKED)
    missed |= show(f"asked {ASKED} times", _asked(alone, 5.0, 25.0))
    missed |= show("publish to event, one by one", _latencies(await until_heard(server, _singles()), 20.0, 100.0))
    stop = asyncio.Event()
    loading = asyncio.create_task(load(server, rest, stop))
    begin = perf_counter()
    beside = await ask(server, documents, ASKED, seed=4)
    stop.set()
    rate = await loading / (perf_counter() - begin)
    missed |= show(
        "asked while a bulk publish goes on",
        [*_asked(beside, None, 25.0), Figure(name="published meanwhile", value=rate, unit="docs/s")],
    )
    missed |= await _rebuilt(server)
    return missed | await _hostile(server, documents)


async def _rebuilt(server: Server) -> int:
    """The rules of now once more, built beside the questions of one client."""
    async with wired(server.port) as wire:
        begin, computed = perf_counter(), computing(server)
        await wire.post("/v1/rebuild", b"{}")
        asked: list[float] = []
        while (told := msgspec.json.decode(await wire.get("/v1/rebuild"), type=Progress)).state == "building":
            before = perf_counter()
            await wire.post("/v1/query", msgspec.json.encode({"text": f"notice {len(asked)}"}))
            asked.append((perf_counter() - before) * 1e3)
            await asyncio.sleep(0.25)
        took, computed = perf_counter() - begin, computing(server) - computed
    assert told.state == "switched", told
    return show(
        f"rebuilt from {told.end:,} messages, asked {len(asked)} times meanwhile",
        [
            Figure(name="replayed", value=told.end / took, unit="msg/s", least=10_000.0),
            Figure(name="by the processor's time", value=told.end / computed, unit="msg/s"),
            Figure(name="longest question", value=max(asked, default=0.0), unit="ms"),
        ],
    )


async def _hostile(server: Server, documents: int) -> int:
    """An honest client with and without the others, in turns, for no machine is the same a minute later."""
    await ask(server, documents, FILLING, seed=9)
    before = resident(server)
    alone, beside, during = Asked([], []), Asked([], []), 0.0
    for turn in range(ROUNDS):
        _add(alone, await ask(server, documents, ASKED // 2, seed=10 + turn))
        command = [sys.executable, "-m", "benchmarks.speed.hostile", str(server.port), str(HOSTILE)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as hostile:
            try:
                await asyncio.sleep(SETTLING_S)
                _add(beside, await ask(server, documents, ASKED // 2, seed=20 + turn))
                during = max(during, resident(server))
            finally:
                hostile.kill()
        await asyncio.sleep(SETTLING_S)
    missed = show(f"asked before and after {HOSTILE} hostile clients", _asked(alone, None, None))
    return missed | show(
        f"asked beside {HOSTILE} hostile clients",
        [
            *_latencies(beside.took, None, 2 * quantile(alone.took, 0.99)),
            *_computed(beside.computed, None, 2 * quantile(alone.computed, 0.99)),
            Figure(name="memory", value=during / before, unit="times", most=1.2),
        ],
    )


def _add(asked: Asked, more: Asked) -> None:
    asked.took.extend(more.took)
    asked.computed.extend(more.computed)


def _asked(asked: Asked, p50: float | None, p99: float | None) -> list[Figure]:
    return [*_latencies(asked.took, p50, p99), *_computed(asked.computed, p50, p99)]


def _computed(took: Sequence[float], p50: float | None, p99: float | None) -> list[Figure]:
    return [
        Figure(name="p50 of computing", value=quantile(took, 0.5), unit="ms", most=p50),
        Figure(name="p99 of computing", value=quantile(took, 0.99), unit="ms", most=p99),
    ]


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
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text(TOKEN)
        with Server(Path(folder) / "data", "--token-file", str(token), stderr=subprocess.DEVNULL) as server:
            return asyncio.run(measure(server, documents))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
