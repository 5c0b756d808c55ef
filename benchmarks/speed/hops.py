"""Both hops over a real Redis, and what it keeps: `python -m benchmarks.speed.hops [STATEMENTS]`.

Logs are lists in memory, so what is measured is folds, encoding, the client of Redis and Redis itself; what
Kafka and its client cost comes on top. Time is the processor's, of this process and of Redis.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from redis.asyncio import Redis as Asked

from benchmarks.speed.feed import mixed
from benchmarks.speed.report import Figure, show
from deploy.local import Redis
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.codec import encode
from stream_car.ports import Emission, Message, Record
from stream_car.processing.outbox import IntakeOutbox
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import FrontierFold, IntakeFold
from stream_car.rule_packs import load

BATCH = 100  # as workers take them
BYTES = 600
DOCUMENTS = 50_000
ONE = Partitions(intakes=1, frontiers=1)


class Listed:
    """Implements `ports.Log` for one partition."""

    def __init__(self, now: int) -> None:
        self.records: list[Record] = []
        self._now = now

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        first = len(self.records)
        for offset, one in enumerate(messages, first):
            told = Record(offset=offset, append_time=self._now, value=one.value, key=one.key, headers=one.headers)
            self.records.append(told)
        return first

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        return self.records[from_offset : from_offset + max_records]

    async def range(self, partition: int) -> tuple[int, int]:
        return 0, len(self.records)


class Driven(Protocol):
    """A shard of either hop."""

    async def start(self) -> None: ...

    async def run_once(self, max_records: int) -> Sequence[object]: ...


class Counted:
    """Implements `ports.ChangeLog`: counts."""

    def __init__(self) -> None:
        self.events = 0

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        self.events += len(events)

    async def last(self, shard: int) -> int:
        return self.events


async def measure(redis: Redis, documents: int) -> int:
    """Drive both hops to their ends; 1 where the goal for memory is missed."""
    arrivals = mixed(documents)
    now = max(arrival.append_time for arrival in arrivals)
    said, placements, rejected, journal = Listed(now), Listed(now), Listed(now), Counted()
    await said.append(0, [Message(value=encode(arrival.said)) for arrival in arrivals])
    client = await connect(RedisServer(url=redis.url))
    asked = Asked.from_url(redis.url)
    ruleset = load(["compliance"])
    outlet = IntakeOutbox(ONE, placements=placements, documents=said, rejected=rejected)
    intake = Shard(
        shard=0, log=said, store=RedisStore(client, "intake"), event_sink=outlet, fold=IntakeFold(ruleset, ONE, shard=0)
    )
    frontier = Shard(
        shard=0,
        log=placements,
        store=RedisStore(client, "frontier"),
        event_sink=journal,
        fold=FrontierFold(ruleset, ONE, shard=0),
    )
    figures = [*await _driven("intake", intake, said, asked), *await _driven("frontier", frontier, placements, asked)]
    kept = {name: int(await asked.memory_usage(f"{{{name}:0}}", samples=0) or 0) for name in ("intake", "frontier")}
    known = len({arrival.said.id for arrival in arrivals})
    figures += [
        Figure(name="kept in Redis by intake, a document", value=kept["intake"] / known, unit="bytes"),
        Figure(name="kept in Redis by frontier, a document", value=kept["frontier"] / known, unit="bytes"),
        Figure(name="both, a (document, scope)", value=sum(kept.values()) / known, unit="bytes", most=BYTES),
    ]
    await asked.aclose()
    await client.aclose()
    notes = [f"{len(placements.records):,} placements, {journal.events:,} changes; every document has one scope"]
    return show(f"both hops over Redis, {documents:,} statements, {known:,} documents", figures, notes)


async def _driven(name: str, shard: Driven, log: Listed, asked: Asked) -> list[Figure]:
    await shard.start()
    own, server = time.process_time(), await _worked(asked)
    while await shard.run_once(BATCH):
        pass
    count = len(log.records)
    own, server = time.process_time() - own, await _worked(asked) - server
    return [
        Figure(name=f"{name}, this process, a record", value=own / count * 1e6, unit="us"),
        Figure(name=f"{name}, Redis, a record", value=server / count * 1e6, unit="us"),
    ]


async def _worked(asked: Asked) -> float:
    told = await asked.info("cpu")
    return float(told["used_cpu_user"]) + float(told["used_cpu_sys"])


def main(documents: int = DOCUMENTS) -> int:
    """Over a Redis of its own, with the settings that ship."""
    with tempfile.TemporaryDirectory() as folder:
        redis = Redis(Path(folder))
        redis.start()
        try:
            return asyncio.run(measure(redis, documents))
        finally:
            redis.stop()


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
