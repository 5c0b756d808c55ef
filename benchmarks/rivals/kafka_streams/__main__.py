"""Runs workers and the peer in turn; exit code 1 if a goal is missed or the peer is wrong."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from statistics import median

from msgspec import Struct

from benchmarks.rivals.kafka_streams.peer import Peer, build
from benchmarks.speed.event_stream import Arrival, paragraphs
from benchmarks.speed.report import Figure, show
from benchmarks.speed.servers.testbed import Testbed, cpu_seconds, open_testbed
from benchmarks.speed.servers.throughput import CORES, WORKERS
from benchmarks.speed.shard import active_members, apply, compliance_fold
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.ports import Message
from stream_car.processing.state import State

DOCUMENTS = 50_000
SIZES = (1_000, 300)  # bytes of a document
ROUNDS = 3
PUBLICATIONS = 1 + len(SIZES) * ROUNDS
OURS, AT_LEAST_ONCE, EXACTLY_ONCE = "Stream-CAR", "at_least_once", "exactly_once_v2"
GOALS = {AT_LEAST_ONCE: 0.8, EXACTLY_ONCE: 1.0}


class Rival(Struct, frozen=True):
    """One of the two. `idle` waits until it has caught up; it returns how long ago that was, in seconds."""

    publish: Callable[[list[Message]], Awaitable[None]]
    idle: Callable[[], Awaitable[float]]
    cpu: Callable[[], float]


class Lap(Struct, frozen=True):
    """The documents per second of one publication, and microseconds of processor time per document, by part."""

    rate: float
    cpu: Mapping[str, float]


async def run(folder: Path, length: int) -> int:
    """Print a table per size of documents; return 1 if a goal was missed or the peer is wrong."""
    missed, publications, sent = 0, 0, _documents(length, SIZES[0], 0)
    async with open_testbed(folder) as testbed, _peers(testbed, folder) as peers:
        await testbed.start_workers(WORKERS)
        rivals = {OURS: _workers(testbed), **{peer.guarantee: _rival(peer) for peer in peers}}
        for rival in rivals.values():
            await _lap(testbed, rival, sent)  # so that what follows is warm
        for size in SIZES:
            laps: dict[str, list[Lap]] = {name: [] for name in rivals}
            for number in range(ROUNDS):
                publications += 1
                documents = _documents(length, size, publications)
                sent += documents
                for name, rival in rivals.items():
                    laps[name].append(await _lap(testbed, rival, documents))
                    print(f"{size} bytes, round {number + 1} of {ROUNDS}, {name}: {laps[name][-1].rate:,.0f}/s")
            title = f"{length:,} documents of {size} bytes, {ROUNDS} times, load {os.getloadavg()[0]:.1f}"
            missed |= show(title, _figures(laps))
        return missed | await _verify(peers, sent)


@asynccontextmanager
async def _peers(testbed: Testbed, folder: Path) -> AsyncIterator[list[Peer]]:
    peers = [Peer(testbed, folder / guarantee, guarantee) for guarantee in (AT_LEAST_ONCE, EXACTLY_ONCE)]
    started: list[Peer] = []
    try:
        for peer in peers:
            await peer.start()
            started.append(peer)
        yield peers
    finally:
        for peer in started:
            await peer.stop()


def _workers(testbed: Testbed) -> Rival:
    async def idle() -> float:
        await testbed.wait_until_idle()
        return 0.0

    return Rival(testbed.publish, idle, lambda: sum(cpu_seconds(worker.process.pid) for worker in testbed.workers))


def _rival(peer: Peer) -> Rival:
    return Rival(peer.publish, peer.wait_until_idle, lambda: peer.cpu_seconds)


async def _lap(testbed: Testbed, rival: Rival, documents: Sequence[Document]) -> Lap:
    """Publish these documents, wait until they have gone through, and measure."""
    messages = [Message(value=encode(document), key=document.id.encode()) for document in documents]
    before, begin = _cpu(testbed, rival), time.perf_counter()
    await rival.publish(messages)
    idle_s = await rival.idle()
    seconds, after = time.perf_counter() - begin - idle_s, _cpu(testbed, rival)
    return Lap(len(messages) / seconds, {part: (after[part] - before[part]) / len(messages) * 1e6 for part in after})


def _cpu(testbed: Testbed, rival: Rival) -> dict[str, float]:
    return {
        "itself": rival.cpu(),
        "Kafka": cpu_seconds(testbed.kafka.pid),
        "Redis": cpu_seconds(testbed.redis.pid),
        "publisher": time.process_time(),
    }


def _documents(length: int, size: int, number: int) -> list[Document]:
    """Return a publication: a part of one stream, so that time goes on and no scope grows without end."""
    stream = paragraphs(length * PUBLICATIONS, size)
    return list(islice(stream, number * length, (number + 1) * length))


def _figures(laps: Mapping[str, Sequence[Lap]]) -> list[Figure]:
    figures: list[Figure] = []
    rates = {name: median(lap.rate for lap in each) for name, each in laps.items()}
    totals = {name: median(sum(lap.cpu.values()) for lap in each) for name, each in laps.items()}
    for name, each in laps.items():
        medians = {part: median(lap.cpu[part] for lap in each) for part in each[0].cpu}
        figures += [
            Figure(name=f"{name}, median", value=rates[name], unit="docs/s"),
            *(Figure(name=f"  {part}", value=value, unit="us") for part, value in medians.items()),
            Figure(name=f"  {CORES} cores divided by these", value=CORES * 1e6 / totals[name], unit="docs/s"),
        ]
    for name, goal in GOALS.items():
        ratios = [ours.rate / theirs.rate for ours, theirs in zip(laps[OURS], laps[name], strict=True)]
        note = f"{min(ratios):.2f} to {max(ratios):.2f}"
        figures.append(
            Figure(name=f"our rate by {name}'s", value=median(ratios), unit="times", at_least=goal, note=note)
        )
        figures.append(Figure(name="  by processor time", value=totals[name] / totals[OURS], unit="times"))
    return figures


async def _verify(peers: Sequence[Peer], documents: Sequence[Document]) -> int:
    """Compare the active documents of each peer with the fold's; return 1 if they differ."""
    fold, state = compliance_fold(), State(is_whole=True)
    apply(fold, state, [Arrival(each, each.time, b"") for each in documents])
    expected, is_wrong = active_members(fold, state), 0
    for peer in peers:
        differing = len(expected ^ await peer.members())
        verdict = f"WRONG: {differing:,} active documents differ" if differing else "has the same active documents"
        print(f"{peer.guarantee} {verdict}")
        is_wrong |= int(bool(differing))
    return is_wrong


def main(length: int = DOCUMENTS) -> int:
    """Build the peer, and run on servers of its own."""
    build()
    with tempfile.TemporaryDirectory(prefix="stream-car-bench-") as folder:
        return asyncio.run(run(Path(folder), length))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
