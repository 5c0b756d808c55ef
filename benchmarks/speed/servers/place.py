"""Kafka, Redis, topics and workers of one measurement, and what processor's time each of them takes."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from deploy.local import Kafka, Redis
from deploy.local.processes import ends_with_its_parent
from stream_car import rule_packs
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.views import RedisViews
from stream_car.cluster.connections import TOPICS, Plan, Works
from stream_car.ports import Hop, Message, ShardId
from stream_car.processing.fold import CHANGES
from tests.support.kafka_publisher import KafkaPublisher

RULES = "compliance"
LOOK_S = 0.02
PATIENCE_S = 300.0
SENT_AT_ONCE = 2000
ROOT = Path(__file__).resolve().parents[3]
PROGRAM = (str(Path(sys.executable).with_name("stream-car")),)
TICKS = os.sysconf("SC_CLK_TCK")


class Assigned(msgspec.Struct):
    """What a worker says of its shards."""

    event: str
    shards: tuple[str, ...] = ()


class Worker:
    """A worker process; `command` is `stream-car` or what stands in for it."""

    def __init__(self, folder: Path, command: Sequence[str], environment: Mapping[str, str]) -> None:
        folder.mkdir()
        self.folder = folder
        self.log = folder / "log"
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*ends_with_its_parent(), *command],
                cwd=ROOT,
                env={**os.environ, **environment, "STAGES": str(folder / "stages")},
                stdout=out,
                stderr=out,
            )

    def shards(self) -> list[ShardId]:
        """What the group has given it, as it last said."""
        lines = [line for line in self.log.read_bytes().splitlines() if line.startswith(b'{"event":"assigned"')]
        names = msgspec.json.decode(lines[-1], type=Assigned).shards if lines else ()
        pairs = (name.split() for name in names)
        return [ShardId("intake" if hop == "intake" else "frontier", int(shard)) for hop, shard in pairs]


class Measured:
    """What is measured: servers, topics, an open connection, and workers that come and go."""

    def __init__(self, folder: Path, kafka: Kafka, redis: Redis, works: Works) -> None:
        self.kafka, self.redis, self.works = kafka, redis, works
        self.views = RedisViews(
            intake=works.plan.store(works.client, "intake"), frontier=works.plan.store(works.client, "frontier")
        )
        self.logs = {name: works.log(name) for name in (*TOPICS.values(), CHANGES)}
        self.workers: list[Worker] = []
        self._folder = folder
        self._publisher = KafkaPublisher(
            works.sender, works.topic("intake"), lambda key: works.partitions.of_id(key.decode())
        )

    async def publish(self, messages: Sequence[Message]) -> None:
        """As a publisher in a hurry does."""
        for start in range(0, len(messages), SENT_AT_ONCE):
            await self._publisher.publish(messages[start : start + SENT_AT_ONCE])

    async def work(self, count: int, program: Sequence[str] = PROGRAM) -> None:
        """Start so many workers of both hops; returns when the group has shared all shards out to them."""
        environment = {"STREAM_CAR_KAFKA": self.kafka.address, "STREAM_CAR_REDIS": self.redis.url}
        command = (*program, "worker", "all", "--single-broker", "--rules", RULES, "--json")
        for _ in range(count):
            place = self._folder / f"worker-{len(list(self._folder.glob('worker-*')))}"
            self.workers.append(Worker(place, command, environment))
        await self.shared()

    async def shared(self) -> None:
        """Returns when every shard is some worker's, and every worker has some."""
        every = self.works.layout.intakes + self.works.layout.frontiers
        await self._until(lambda: all(w.shards() for w in self.workers) and self._given() == every)

    def _given(self) -> int:
        return sum(len(worker.shards()) for worker in self.workers)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_so():
            if time.monotonic() > deadline or any(w.process.poll() is not None for w in self.workers):
                raise TimeoutError("\n".join(worker.log.read_text()[-1000:] for worker in self.workers))
            await asyncio.sleep(LOOK_S)

    async def rest(self) -> None:
        """Returns when both hops stand at the ends of their logs."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            stands = await self.stands()
            if stands == await self.ends():
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"it stands at {stands}; see {self._folder}")
            await asyncio.sleep(LOOK_S)

    async def stands(self) -> dict[ShardId, int]:
        """How far each shard has come."""
        found = await self.views.peek({place: [] for places in self.places().values() for place in places})
        return {place: told[0] for place, told in found.items()}

    async def ends(self) -> dict[ShardId, int]:
        """Where their logs end."""
        every = [place for places in self.places().values() for place in places]
        return {place: (await self.logs[TOPICS[place.hop]].range(place.shard))[1] for place in every}

    def places(self) -> dict[Hop, list[ShardId]]:
        """All shards by hop."""
        layout = self.works.layout
        return {
            "intake": [ShardId("intake", q) for q in range(layout.intakes)],
            "frontier": [ShardId("frontier", p) for p in range(layout.frontiers)],
        }

    async def told(self) -> int:
        """How many changes there are."""
        shards = range(self.works.layout.frontiers)
        return sum([(await self.logs[CHANGES].range(shard))[1] for shard in shards])

    def spent(self) -> dict[str, float]:
        """Seconds of the processor that each process has taken since it began."""
        return {
            "this process": time.process_time(),
            "workers": sum(cpu(worker.process.pid) for worker in self.workers),
            "Kafka": cpu(self.kafka.pid),
            "Redis": cpu(self.redis.pid),
        }

    async def end_workers(self) -> None:
        """In order."""
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            await asyncio.to_thread(worker.process.wait)
        self.workers.clear()


@asynccontextmanager
async def measured(folder: Path) -> AsyncIterator[Measured]:
    """Servers with the settings that ship and topics with their default partitions, within."""
    kafka, redis = Kafka(folder / "kafka"), Redis(folder / "redis")
    try:
        redis.start()
        kafka.start()
        server = KafkaServer(address=kafka.address)
        await asyncio.to_thread(apply, server, Layout(single_broker=True))
        plan = Plan(
            kafka=server, redis=RedisServer(url=redis.url), ruleset=rule_packs.load([RULES]), single_broker=True
        )
        works = await Works.open(plan)
        found = Measured(folder, kafka, redis, works)
        try:
            yield found
        finally:
            for worker in found.workers:
                worker.process.kill()
                worker.process.wait()
            await works.close()
    finally:
        kafka.kill()
        redis.kill()


def cpu(pid: int) -> float:
    """Seconds of the processor that a process has taken, all threads, in user's and system's mode."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS
