"""How fast documents go through both hops, what becomes of them after Redis was lost, and where the time goes."""

import sys
import time
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from benchmarks.speed.feed import paragraphs
from benchmarks.speed.report import Figure
from benchmarks.speed.servers.place import Measured
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.ports import Hop, Message

SIZE = 1_000
WORKERS = 2
CORES = 2
RATE = 5_000.0
REPLAYED = 10_000.0
BYTES = 600
STAGED = (sys.executable, "-m", "benchmarks.speed.servers.staged")


class Flow(Struct, frozen=True):
    """What passed: records, by the clock, and the processor's seconds of each process."""

    count: int
    took: float
    spent: Mapping[str, float]

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.count / self.took

    def figures(self) -> list[Figure]:
        """The processor's time of each process, and the rate that two cores could reach."""
        each = [
            Figure(name=f"  {name}", value=seconds / self.count * 1e6, unit="us")
            for name, seconds in self.spent.items()
        ]
        total = sum(self.spent.values())
        return [
            *each,
            Figure(name=f"  {CORES} cores divided by these", value=CORES * self.count / total, unit="a second"),
        ]


def documents(length: int, seed: int) -> list[Document]:
    """Documents of 1 KB under ids of their own; five of six have a scope."""
    said = paragraphs(length, SIZE, seed=seed)
    return [msgspec.structs.replace(one, id=f"{seed}-{one.id}") for one in said]


def messages(length: int, seed: int) -> list[Message]:
    """The same as publishers send them."""
    return [Message(value=encode(one), key=one.id.encode()) for one in documents(length, seed)]


async def through(here: Measured, sent: Sequence[Message]) -> Flow:
    """Publish and wait until both hops rest."""
    before, begin = here.spent(), time.perf_counter()
    await here.publish(sent)
    await here.rest()
    return _flow(here, len(sent), before, begin)


async def throughput(here: Measured, length: int) -> list[Figure]:
    """Publisher, Kafka, Redis and workers together: twice from where they stand, and after the workers were new."""
    found: list[Figure] = []
    for seed, what in ((1, "servers and workers just started"), (2, "warm")):
        flow = await through(here, messages(length, seed))
        found += [Figure(name=f"both hops, {what}", value=flow.rate, unit="docs/s", least=RATE if seed > 1 else None)]
        found += flow.figures()
    return found


async def stages(here: Measured, length: int) -> tuple[list[Figure], list[Figure]]:
    """Again by other workers, with stopwatches: they know nothing of the state and read it first."""
    sent = messages(length, 3)
    await here.end_workers()
    await here.work(WORKERS, STAGED)
    flow = await through(here, sent)
    files = [worker.folder / "stages" for worker in here.workers]
    await here.end_workers()
    took: dict[str, float] = {}
    for file in files:
        for stage, seconds in msgspec.json.decode(file.read_bytes(), type=dict[str, float]).items():
            took[stage] = took.get(stage, 0.0) + seconds
    total = took.pop("total")
    took["event loop, and the rest"] = total - sum(took.values())
    by_size = sorted(took.items(), key=lambda pair: -pair[1])
    rows = [
        Figure(name=f"  {stage}", value=s / length * 1e6, unit="us/doc", note=f"{s / total:.0%}")
        for stage, s in by_size
    ]
    whole = Figure(name="workers in all", value=total / length * 1e6, unit="us/doc")
    return [Figure(name="both hops", value=flow.rate, unit="docs/s"), *flow.figures()], [whole, *rows]


async def kept(here: Measured, said: Sequence[Document]) -> list[Figure]:
    """What Redis holds of these documents, by all (document, scope) there are."""
    found = {}
    for hop, places in here.places().items():
        keys = [f"{{{here.works.plan.name}.{hop}:{place.shard}}}" for place in places]
        sizes = [await here.works.client.execute_command("MEMORY", "USAGE", key, "SAMPLES", 0) for key in keys]
        found[hop] = sum(size for size in sizes if isinstance(size, int))
    pairs = sum(len(here.works.plan.ruleset.scopes(one)) for one in said)
    return [
        *(Figure(name=f"{hop}, a document", value=size / len(said), unit="bytes") for hop, size in found.items()),
        Figure(name="both, a (document, scope)", value=sum(found.values()) / pairs, unit="bytes", most=BYTES),
        Figure(name="(document, scope), a document", value=pairs / len(said), unit=""),
        Figure(name="changes, a document", value=await here.told() / len(said), unit=""),
    ]


async def replayed(here: Measured) -> list[Figure]:
    """The frontier's state is lost, then everything; workers go on by themselves, and tell nothing again."""
    told = await here.told()
    ends = await here.ends()
    count = {hop: sum(ends[place] for place in places) for hop, places in here.places().items()}
    frontier = await _lost(here, count["frontier"], ["frontier"])
    everything = await _lost(here, count["intake"], ["intake", "frontier"])
    assert await here.told() == told
    return [
        Figure(name="frontier lost: placements", value=frontier.rate, unit="a second", least=REPLAYED),
        *frontier.figures(),
        Figure(name="all lost: documents through both hops", value=everything.rate, unit="a second"),
        *everything.figures(),
    ]


async def _lost(here: Measured, count: int, hops: Sequence[Hop]) -> Flow:
    before, begin = here.spent(), time.perf_counter()
    for hop in hops:
        shards = [place.shard for place in here.places()[hop]]
        await here.works.plan.store(here.works.client, hop).drop(shards)
    await here.rest()
    return _flow(here, count, before, begin)


def _flow(here: Measured, count: int, before: Mapping[str, float], begin: float) -> Flow:
    took, after = time.perf_counter() - begin, here.spent()
    return Flow(count, took, {name: after[name] - before[name] for name in after})
