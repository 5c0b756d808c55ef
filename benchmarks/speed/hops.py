"""Both hops over a real Redis, and the memory it uses: `python -m benchmarks.speed.hops [STATEMENTS]`.

Logs are lists in memory, so folds, encoding, the Redis client and Redis itself are measured; the cost of Kafka and its
client comes on top. Times are processor time, of this process and of Redis.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from redis.asyncio import Redis as RedisClient

from benchmarks.speed.event_stream import mixed
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
from stream_car.processing.signatures import KEY_BYTES, Signatures
from stream_car.processing.two_hop import FrontierFold, IntakeFold
from stream_car.rule_packs import load

BATCH = 100  # as in workers
BYTES = 600  # per document
DOCUMENTS = 50_000
SINGLE = Partitions(intakes=1, frontiers=1)
SIGNATURES = Signatures(key=bytes(KEY_BYTES))


class ListLog:
    """Implements `ports.Log` for one partition with a list."""

    def __init__(self, now: int) -> None:
        self.records: list[Record] = []
        self._now = now

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        first = len(self.records)
        self.records += [
            Record(offset=offset, append_time=self._now, value=each.value, key=each.key, headers=each.headers)
            for offset, each in enumerate(messages, first)
        ]
        return first

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        return self.records[from_offset : from_offset + max_records]

    async def range(self, partition: int) -> tuple[int, int]:
        return 0, len(self.records)


class AnyShard(Protocol):
    """A shard of either hop."""

    async def start(self) -> None: ...

    async def run_once(self, max_records: int) -> Sequence[object]: ...


class CountingChangeLog:
    """Implements `ports.ChangeLog`; counts the events."""

    def __init__(self) -> None:
        self.events = 0

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        self.events += len(events)

    async def last(self, shard: int) -> int:
        return self.events


async def measure(redis: Redis, documents: int) -> int:
    """Run both hops to the ends of their logs; return 1 if the goal for memory is missed."""
    arrivals = mixed(documents)
    now = max(arrival.append_time for arrival in arrivals)
    documents_log, placements, rejected = ListLog(now), ListLog(now), ListLog(now)
    changes = CountingChangeLog()
    await documents_log.append(0, [Message(value=encode(arrival.statement)) for arrival in arrivals])
    client = await connect(RedisServer(url=redis.url))
    monitor = RedisClient.from_url(redis.url)
    ruleset = load(["compliance"])
    outbox = IntakeOutbox(
        SINGLE, signatures=SIGNATURES, placements=placements, documents=documents_log, rejected=rejected
    )
    intake = Shard(
        shard=0,
        log=documents_log,
        store=RedisStore(client, "intake"),
        event_sink=outbox,
        fold=IntakeFold(ruleset, SINGLE, shard=0, signatures=SIGNATURES),
    )
    frontier = Shard(
        shard=0,
        log=placements,
        store=RedisStore(client, "frontier"),
        event_sink=changes,
        fold=FrontierFold(ruleset, SINGLE, shard=0, signatures=SIGNATURES),
    )
    figures = await _run("intake", intake, documents_log, monitor)
    figures += await _run("frontier", frontier, placements, monitor)
    used = {name: int(await monitor.memory_usage(f"{{{name}:0}}", samples=0) or 0) for name in ("intake", "frontier")}
    known = len({arrival.statement.id for arrival in arrivals})
    figures += [
        Figure(name="Redis memory of intake, per document", value=used["intake"] / known, unit="bytes"),
        Figure(name="Redis memory of frontier, per document", value=used["frontier"] / known, unit="bytes"),
        Figure(name="both, per (document, scope)", value=sum(used.values()) / known, unit="bytes", at_most=BYTES),
    ]
    await monitor.aclose()
    await client.aclose()
    notes = [f"{len(placements.records):,} placements, {changes.events:,} changes; every document has one scope"]
    return show(f"both hops over Redis, {documents:,} statements, {known:,} documents", figures, notes)


async def _run(name: str, shard: AnyShard, log: ListLog, monitor: RedisClient) -> list[Figure]:
    await shard.start()
    own, server = time.process_time(), await _redis_cpu_seconds(monitor)
    while await shard.run_once(BATCH):
        pass
    count = len(log.records)
    own, server = time.process_time() - own, await _redis_cpu_seconds(monitor) - server
    return [
        Figure(name=f"{name}, this process, per record", value=own / count * 1e6, unit="us"),
        Figure(name=f"{name}, Redis, per record", value=server / count * 1e6, unit="us"),
    ]


async def _redis_cpu_seconds(monitor: RedisClient) -> float:
    info = await monitor.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def main(documents: int = DOCUMENTS) -> int:
    """Run on a Redis of its own, with the shipped settings."""
    with tempfile.TemporaryDirectory() as folder:
        redis = Redis(Path(folder))
        redis.start()
        try:
            return asyncio.run(measure(redis, documents))
        finally:
            redis.stop()


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
