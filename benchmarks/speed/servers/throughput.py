"""How fast documents go through both hops, how state is recovered after Redis was lost, and where the time goes."""

import sys
import time
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from benchmarks.speed.event_stream import paragraphs
from benchmarks.speed.report import Figure
from benchmarks.speed.servers.testbed import Testbed
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.ports import Hop, Message

SIZE = 1_000
WORKERS = 2
CORES = 2
RATE = 5_000.0  # documents per second
REPLAYED = 10_000.0
BYTES = 600  # per (document, scope)
TIMED_WORKER = (sys.executable, "-m", "benchmarks.speed.servers.timed_worker")


class Flow(Struct, frozen=True):
    """Processed records, the wall-clock time in seconds, and the processor time of each process in seconds."""

    count: int
    wall: float
    cpu: Mapping[str, float]

    @property
    def rate(self) -> float:
        """Records per second."""
        return self.count / self.wall

    def figures(self) -> list[Figure]:
        """Return the processor time of each process per record, and the rate that two cores could reach."""
        total = sum(self.cpu.values())
        return [
            *(Figure(name=f"  {name}", value=s / self.count * 1e6, unit="us") for name, s in self.cpu.items()),
            Figure(name=f"  {CORES} cores divided by these", value=CORES * self.count / total, unit="per second"),
        ]


def documents(length: int, seed: int) -> list[Document]:
    """Return documents of 1 KB whose ids depend on the seed; five of six have a scope."""
    generated = paragraphs(length, SIZE, seed=seed)
    return [msgspec.structs.replace(document, id=f"{seed}-{document.id}") for document in generated]


def messages(length: int, seed: int) -> list[Message]:
    """Return the same documents as messages of a publisher."""
    return [Message(value=encode(document), key=document.id.encode()) for document in documents(length, seed)]


async def _publish_and_wait(testbed: Testbed, sent: Sequence[Message]) -> Flow:
    cpu_before, begin = testbed.cpu_seconds(), time.perf_counter()
    await testbed.publish(sent)
    await testbed.wait_until_idle()
    return _flow(testbed, len(sent), cpu_before, begin)


async def measure_throughput(testbed: Testbed, length: int) -> list[Figure]:
    """Measure publisher, Kafka, Redis and workers together: once just started, once warm."""
    figures: list[Figure] = []
    for seed, what in ((1, "servers and workers just started"), (2, "warm")):
        flow = await _publish_and_wait(testbed, messages(length, seed))
        goal = RATE if seed > 1 else None
        figures.append(Figure(name=f"both hops, {what}", value=flow.rate, unit="docs/s", at_least=goal))
        figures += flow.figures()
    return figures


async def measure_stages(testbed: Testbed, length: int) -> tuple[list[Figure], list[Figure]]:
    """Measure new workers with stopwatches; they have nothing cached and read the state first."""
    sent = messages(length, 3)
    await testbed.stop_workers()
    await testbed.start_workers(WORKERS, TIMED_WORKER)
    flow = await _publish_and_wait(testbed, sent)
    files = [worker.folder / "stages" for worker in testbed.workers]
    await testbed.stop_workers()
    by_stage: dict[str, float] = {}
    for file in files:
        for stage, seconds in msgspec.json.decode(file.read_bytes(), type=dict[str, float]).items():
            by_stage[stage] = by_stage.get(stage, 0.0) + seconds
    total = by_stage.pop("total")
    by_stage["event loop, and the rest"] = total - sum(by_stage.values())
    rows = [
        Figure(name=f"  {stage}", value=s / length * 1e6, unit="us/doc", note=f"{s / total:.0%}")
        for stage, s in sorted(by_stage.items(), key=lambda item: -item[1])
    ]
    workers = Figure(name="workers in total", value=total / length * 1e6, unit="us/doc")
    return [Figure(name="both hops", value=flow.rate, unit="docs/s"), *flow.figures()], [workers, *rows]


async def measure_memory(testbed: Testbed, known: Sequence[Document]) -> list[Figure]:
    """Measure the Redis memory of these documents, per document and per (document, scope)."""
    bytes_by_hop = {}
    for hop, shards in testbed.shards().items():
        keys = [f"{{{testbed.connections.plan.name}.{hop}:{shard.shard}}}" for shard in shards]
        sizes = [await testbed.connections.client.execute_command("MEMORY", "USAGE", key, "SAMPLES", 0) for key in keys]
        bytes_by_hop[hop] = sum(size for size in sizes if isinstance(size, int))
    pairs, total = sum(len(testbed.connections.plan.ruleset.scopes(each)) for each in known), sum(bytes_by_hop.values())
    return [
        *(Figure(name=f"{hop}, per document", value=n / len(known), unit="bytes") for hop, n in bytes_by_hop.items()),
        Figure(name="both, per (document, scope)", value=total / pairs, unit="bytes", at_most=BYTES),
        Figure(name="(document, scope), per document", value=pairs / len(known), unit=""),
        Figure(name="changes, per document", value=await testbed.changes() / len(known), unit=""),
    ]


async def measure_recovery(testbed: Testbed) -> list[Figure]:
    """Drop the frontier's state, then all state. Workers recover by themselves and repeat no change."""
    changes = await testbed.changes()
    ends = await testbed.ends()
    count = {hop: sum(ends[shard] for shard in shards) for hop, shards in testbed.shards().items()}
    frontier = await _recover(testbed, count["frontier"], ["frontier"])
    everything = await _recover(testbed, count["intake"], ["intake", "frontier"])
    assert await testbed.changes() == changes
    return [
        Figure(name="frontier lost: placements", value=frontier.rate, unit="per second", at_least=REPLAYED),
        *frontier.figures(),
        Figure(name="all lost: documents through both hops", value=everything.rate, unit="per second"),
        *everything.figures(),
    ]


async def _recover(testbed: Testbed, count: int, hops: Sequence[Hop]) -> Flow:
    cpu_before, begin = testbed.cpu_seconds(), time.perf_counter()
    for hop in hops:
        shards = [shard.shard for shard in testbed.shards()[hop]]
        await testbed.connections.plan.store(testbed.connections.client, hop).drop(shards)
    await testbed.wait_until_idle()
    return _flow(testbed, count, cpu_before, begin)


def _flow(testbed: Testbed, count: int, cpu_before: Mapping[str, float], begin: float) -> Flow:
    wall, cpu = time.perf_counter() - begin, testbed.cpu_seconds()
    return Flow(count, wall, {name: cpu[name] - cpu_before[name] for name in cpu})
