"""Kafka, Redis, topics and workers of a measurement, and the processor time of each of them."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiokafka import AIOKafkaConsumer, TopicPartition

from deploy.local import Kafka, Redis
from deploy.local.processes import ends_with_its_parent
from stream_car import rule_packs
from stream_car.adapters.kafka.reader import open_consumer
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.views import RedisViews
from stream_car.cluster.connections import TOPICS, Connections, Plan
from stream_car.ports import Hop, Message, ShardId
from stream_car.processing.fold import CHANGES
from tests.support.kafka_publisher import KafkaPublisher

RULES = "compliance"
POLL_S = 0.1
TIMEOUT_S = 300.0
PUBLISH_MAX = 2000  # messages per call
ROOT = Path(__file__).resolve().parents[3]
PROGRAM = (str(Path(sys.executable).with_name("stream-car")),)
TICKS = os.sysconf("SC_CLK_TCK")


class Assignment(msgspec.Struct):
    """A line of a worker's log that reports its shards."""

    event: str
    shards: tuple[str, ...] = ()


class Worker:
    """A worker process; `command` is `stream-car` or a program that replaces it."""

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
        """Return the shards that the group assigned to it, from the last line about them in its log."""
        lines = [line for line in self.log.read_bytes().splitlines() if line.startswith(b'{"event":"assigned"')]
        names = msgspec.json.decode(lines[-1], type=Assignment).shards if lines else ()
        pairs = (name.split() for name in names)
        return [ShardId("intake" if hop == "intake" else "frontier", int(shard)) for hop, shard in pairs]


class Testbed:
    """Servers, topics, an open connection, and workers that can be started and stopped."""

    def __init__(
        self, folder: Path, kafka: Kafka, redis: Redis, connections: Connections, consumer: AIOKafkaConsumer
    ) -> None:
        self.kafka, self.redis, self.connections = kafka, redis, connections
        self.views = RedisViews(
            intake=connections.plan.store(connections.client, "intake"),
            frontier=connections.plan.store(connections.client, "frontier"),
        )
        self.logs = {name: connections.log(name) for name in (*TOPICS.values(), CHANGES)}
        self.workers: list[Worker] = []
        self._folder = folder
        self._consumer = consumer
        self._publisher = KafkaPublisher(
            connections.sender, connections.topic("intake"), lambda key: connections.partitions.of_id(key.decode())
        )

    async def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages in large batches."""
        for start in range(0, len(messages), PUBLISH_MAX):
            await self._publisher.publish(messages[start : start + PUBLISH_MAX])

    async def start_workers(self, count: int, program: Sequence[str] = PROGRAM) -> None:
        """Start workers of both hops; return when all shards are assigned to them."""
        environment = {"STREAM_CAR_KAFKA": self.kafka.address, "STREAM_CAR_REDIS": self.redis.url}
        command = (*program, "worker", "all", "--single-broker", "--rules", RULES, "--json")
        for _ in range(count):
            folder = self._folder / f"worker-{len(list(self._folder.glob('worker-*')))}"
            self.workers.append(Worker(folder, command, environment))
        await self.wait_until_assigned()

    async def wait_until_assigned(self) -> None:
        """Wait until every shard is assigned to a worker, and every worker has shards."""
        shards = self.connections.layout.intakes + self.connections.layout.frontiers

        def is_assigned() -> bool:
            counts = [len(worker.shards()) for worker in self.workers]
            return all(counts) and sum(counts) == shards

        await self._wait_until(is_assigned)

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            if time.monotonic() > deadline or any(worker.process.poll() is not None for worker in self.workers):
                raise TimeoutError("\n".join(worker.log.read_text()[-1000:] for worker in self.workers))
            await asyncio.sleep(POLL_S)

    async def wait_until_idle(self) -> None:
        """Wait until both hops have reached the ends of their logs."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            positions = await self.positions()
            if positions == await self.ends():
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"The shards stopped at {positions}. See the logs in {self._folder}.")
            await asyncio.sleep(POLL_S)

    async def positions(self) -> dict[ShardId, int]:
        """Return the position of each shard in its log."""
        views = await self.views.peek({shard: [] for shards in self.shards().values() for shard in shards})
        return {shard: view[0] for shard, view in views.items()}

    async def ends(self) -> dict[ShardId, int]:
        """Return the end of each shard's log, with one request."""
        every = [shard for shards in self.shards().values() for shard in shards]
        sources = {shard: TopicPartition(self.connections.topic(shard.hop), shard.shard) for shard in every}
        ends = await self._consumer.end_offsets(list(sources.values()))
        return {shard: int(ends[source]) for shard, source in sources.items()}

    def shards(self) -> dict[Hop, list[ShardId]]:
        """Return all shards by hop."""
        layout = self.connections.layout
        return {
            "intake": [ShardId("intake", q) for q in range(layout.intakes)],
            "frontier": [ShardId("frontier", p) for p in range(layout.frontiers)],
        }

    async def changes(self) -> int:
        """Return the number of changes in the change log."""
        shards = range(self.connections.layout.frontiers)
        return sum([(await self.logs[CHANGES].range(shard))[1] for shard in shards])

    def cpu_seconds(self) -> dict[str, float]:
        """Return the processor time that each process has used since its start."""
        return {
            "this process": time.process_time(),
            "workers": sum(cpu_seconds(worker.process.pid) for worker in self.workers),
            "Kafka": cpu_seconds(self.kafka.pid),
            "Redis": cpu_seconds(self.redis.pid),
        }

    async def stop_workers(self) -> None:
        """Terminate the workers and wait until they have ended."""
        for worker in self.workers:
            worker.process.terminate()
        for worker in self.workers:
            await asyncio.to_thread(worker.process.wait)
        self.workers.clear()


@asynccontextmanager
async def open_testbed(folder: Path) -> AsyncIterator[Testbed]:
    """Run servers with the shipped settings and topics with their default partitions until the block ends."""
    kafka, redis = Kafka(folder / "kafka"), Redis(folder / "redis")
    try:
        redis.start()
        kafka.start()
        server = KafkaServer(address=kafka.address)
        await asyncio.to_thread(apply, server, Layout(single_broker=True))
        plan = Plan(
            kafka=server, redis=RedisServer(url=redis.url), ruleset=rule_packs.load([RULES]), single_broker=True
        )
        connections = await Connections.open(plan)
        consumer = await open_consumer(server)
        testbed = Testbed(folder, kafka, redis, connections, consumer)
        try:
            yield testbed
        finally:
            for worker in testbed.workers:
                worker.process.kill()
                worker.process.wait()
            await consumer.stop()
            await connections.close()
    finally:
        kafka.kill()
        redis.kill()


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process: all threads, user and system mode."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS
