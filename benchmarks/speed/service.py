"""The service over a socket: `python -m benchmarks.speed.service [DOCUMENTS]`.

Promise: the server is a process of its own, started as a user starts it. Latencies are those of a client on one
persistent connection. Clients share the machine's cores with the server.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from random import Random
from time import perf_counter

import msgspec
from msgspec import Struct

from benchmarks.speed.embedded import question
from benchmarks.speed.event_stream import paragraphs
from benchmarks.speed.report import Figure, quantile, show
from benchmarks.speed.wire import TOKEN, connect, head
from stream_car.api.operations import ROLES
from stream_car.codec import encode
from stream_car.queries.answers import RebuildStatus
from tests.support.server_process import Server

DOCUMENTS = 100_000
SIZE = 1_000
BATCH = 500
QUERIES = 400
SINGLES = 200  # documents published one by one
HOSTILE = 200
ROUNDS = 4
WARM_UP = 2000  # queries that fill the cache of answers, as in a service that is used
SETTLE_S = 5.0


async def load(server: Server, bodies: Sequence[bytes], stop: asyncio.Event | None = None) -> int:
    """Publish over two connections until done or stopped; return the number of documents."""
    queue = iter(bodies)
    count = 0

    async def publish() -> None:
        nonlocal count
        async with connect(server.port) as wire:
            for body in queue:
                if stop is not None and stop.is_set():
                    return
                await wire.post("/v1/documents", body, "application/x-ndjson")
                count += BATCH

    await asyncio.gather(publish(), publish())
    return count


class Latencies(Struct, frozen=True):
    """Milliseconds per query: the wall-clock time, and the server's processor time from request to response.

    The processor time is what the latency would be on an idle machine.
    """

    wall: list[float]
    cpu: list[float]

    def extend(self, more: "Latencies") -> None:
        """Add more samples."""
        self.wall.extend(more.wall)
        self.cpu.extend(more.cpu)

    def figures(self, p50: float | None = None, p99: float | None = None) -> list[Figure]:
        """Return the quantiles of both, with these goals."""
        return [*_wall_figures(self.wall, p50, p99), *_cpu_figures(self.cpu, p50, p99)]


async def query(server: Server, documents: int, times: int, seed: int = 3) -> Latencies:
    """Send one query after the other."""
    random = Random(seed)
    latencies = Latencies([], [])
    async with connect(server.port) as wire:
        for _ in range(times):
            body = msgspec.json.encode({"text": question(random, documents)})
            begin, cpu = perf_counter(), cpu_seconds(server)
            await wire.post("/v1/query", body)
            latencies.wall.append((perf_counter() - begin) * 1e3)
            latencies.cpu.append((cpu_seconds(server) - cpu) * 1e3)
    return latencies


def cpu_seconds(server: Server) -> float:
    """Return the processor time that the server has used so far."""
    return time.clock_gettime(~server.process.pid << 3 | 2)


async def until_event(server: Server, documents: Sequence[bytes]) -> list[float]:
    """Measure the time from the publish of one document to its event, in milliseconds."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(head("GET", "/v1/subscribe?snapshot=false") + b"\r\n")
    await reader.readuntil(b"retry:")
    times = []
    async with connect(server.port) as wire:
        for document in documents:
            begin = perf_counter()
            sending = asyncio.create_task(wire.post("/v1/documents", document))
            await reader.readuntil(b"event: document-change")
            times.append((perf_counter() - begin) * 1e3)
            await sending
            with suppress(TimeoutError):
                async with asyncio.timeout(0.01):
                    while True:
                        await reader.read(65_536)
    writer.close()
    return times


def resident(server: Server) -> float:
    """Return the server's memory in megabytes, without mapped files."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1e3


async def measure(server: Server, documents: int) -> int:
    """Print all figures; return 1 if a goal is missed."""
    corpus = [encode(document) for document in paragraphs(documents + 40_000, SIZE)]
    bodies = [b"\n".join(corpus[at : at + BATCH]) for at in range(0, len(corpus), BATCH)]
    first, rest = bodies[: documents // BATCH], bodies[documents // BATCH :]
    begin, cpu = perf_counter(), cpu_seconds(server)
    await load(server, first)
    rate = documents / (perf_counter() - begin)
    cpu = cpu_seconds(server) - cpu
    missed = show(
        f"publish {documents:,} documents of 1 KB, {BATCH} per batch",
        [
            Figure(name="accepted and searchable", value=rate, unit="docs/s", at_least=5_000.0),
            Figure(name="per second of processor time", value=documents / cpu, unit="docs/s"),
        ],
    )
    await query(server, documents, 20)
    alone = await query(server, documents, QUERIES)
    missed |= show(f"{QUERIES} queries", alone.figures(5.0, 25.0))
    missed |= show("publish to event, one by one", _wall_figures(await until_event(server, _singles()), 20.0, 100.0))
    stop = asyncio.Event()
    loading = asyncio.create_task(load(server, rest, stop))
    begin = perf_counter()
    during_load = await query(server, documents, QUERIES, seed=4)
    stop.set()
    rate = await loading / (perf_counter() - begin)
    missed |= show(
        "queries during a bulk publish",
        [*during_load.figures(p99=25.0), Figure(name="published meanwhile", value=rate, unit="docs/s")],
    )
    missed |= await _measure_rebuild(server)
    return missed | await _measure_hostile_clients(server, documents)


async def _measure_rebuild(server: Server) -> int:
    """Rebuild with the same rules while one client sends queries."""
    async with connect(server.port) as wire:
        begin, cpu = perf_counter(), cpu_seconds(server)
        await wire.post("/v1/rebuild", b"{}")
        times: list[float] = []
        while (status := msgspec.json.decode(await wire.get("/v1/rebuild"), type=RebuildStatus)).is_running:
            query_begin = perf_counter()
            await wire.post("/v1/query", msgspec.json.encode({"text": f"notice {len(times)}"}))
            times.append((perf_counter() - query_begin) * 1e3)
            await asyncio.sleep(0.25)
        wall, cpu = perf_counter() - begin, cpu_seconds(server) - cpu
    assert status.state == "switched", status
    return show(
        f"rebuilt from {status.end:,} messages, with {len(times)} queries meanwhile",
        [
            Figure(name="replayed", value=status.end / wall, unit="msg/s", at_least=10_000.0),
            Figure(name="per second of processor time", value=status.end / cpu, unit="msg/s"),
            Figure(name="longest query", value=max(times, default=0.0), unit="ms"),
        ],
    )


async def _measure_hostile_clients(server: Server, documents: int) -> int:
    """Query without and with hostile clients, in turns, because the speed of the machine changes over time."""
    await query(server, documents, WARM_UP, seed=9)
    memory_before = resident(server)
    alone, beside, memory = Latencies([], []), Latencies([], []), 0.0
    for turn in range(ROUNDS):
        alone.extend(await query(server, documents, QUERIES // 2, seed=10 + turn))
        command = [sys.executable, "-m", "benchmarks.speed.hostile", str(server.port), str(HOSTILE)]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as hostile:
            try:
                await asyncio.sleep(SETTLE_S)
                beside.extend(await query(server, documents, QUERIES // 2, seed=20 + turn))
                memory = max(memory, resident(server))
            finally:
                hostile.kill()
        await asyncio.sleep(SETTLE_S)
    missed = show(f"queries before and after {HOSTILE} hostile clients", alone.figures())
    return missed | show(
        f"queries beside {HOSTILE} hostile clients",
        [
            *_wall_figures(beside.wall, None, 2 * quantile(alone.wall, 0.99)),
            *_cpu_figures(beside.cpu, None, 2 * quantile(alone.cpu, 0.99)),
            Figure(name="memory", value=memory / memory_before, unit="times", at_most=1.2),
        ],
    )


def _cpu_figures(times: Sequence[float], p50: float | None, p99: float | None) -> list[Figure]:
    return [
        Figure(name="processor time, p50", value=quantile(times, 0.5), unit="ms", at_most=p50),
        Figure(name="processor time, p99", value=quantile(times, 0.99), unit="ms", at_most=p99),
    ]


def _wall_figures(times: Sequence[float], p50: float | None, p99: float | None) -> list[Figure]:
    return [
        Figure(name="p50", value=quantile(times, 0.5), unit="ms", at_most=p50),
        Figure(name="p99", value=quantile(times, 0.99), unit="ms", at_most=p99),
        Figure(name="largest", value=max(times), unit="ms"),
    ]


def _singles() -> list[bytes]:
    return [
        encode(msgspec.structs.replace(document, id=f"single-{n}", scope=({"employee": ("E",), "ticker": (str(n),)},),
                                       type="pre_clearance_approved"))
        for n, document in enumerate(paragraphs(SINGLES, SIZE, seed=9))
    ]  # fmt: skip


def main(documents: int = DOCUMENTS) -> int:
    """Print the figures; return 1 if a goal is missed."""
    with tempfile.TemporaryDirectory() as folder:
        token = Path(folder) / "token"
        token.write_text(f"benchmark {','.join(ROLES)} sha256:{sha256(TOKEN.encode()).hexdigest()}\n")
        with Server(Path(folder) / "data", "--token-file", str(token), stderr=subprocess.DEVNULL) as server:
            return asyncio.run(measure(server, documents))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
