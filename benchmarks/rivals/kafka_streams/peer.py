"""The Kafka Streams program as a process: built with Maven, started, and read."""

import asyncio
import json
import subprocess
from pathlib import Path

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.speed.rivals import Members
from benchmarks.speed.servers.testbed import Testbed, cpu_seconds
from deploy.local.processes import Process
from stream_car.adapters.kafka.reader import open_consumer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply
from stream_car.ports import Message
from tests.support.kafka_publisher import KafkaPublisher

FOLDER = Path(__file__).parent
JARS = FOLDER.parents[2] / "build" / "kafka-streams"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
JAVA = ("java", "-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
THREADS = 2
START_S = 60.0
QUIET_S = 2.0  # without a new change: it has caught up
POLL_S = 0.05


def build() -> None:
    """Compile the program, and fetch the libraries that it needs."""
    command = ["mvn", "-B", "-q", "-f", str(FOLDER / "pom.xml"), "package", COPY, "-DincludeScope=runtime"]
    subprocess.run(command, check=True)


class Peer:
    """One running program, with topics of its own."""

    def __init__(self, testbed: Testbed, folder: Path, guarantee: str) -> None:
        self.guarantee = guarantee
        self._testbed = testbed
        self._folder = folder
        self._layout = Layout(prefix=f"peer-{guarantee.replace('_', '-')}", single_broker=True)
        sender, place = testbed.connections.sender, testbed.connections.partitions.of_id
        topic = self._layout.full_name("documents")
        self._publisher = KafkaPublisher(sender, topic, lambda key: place(key.decode()))

    async def start(self) -> None:
        """Create the topics, start the program, and return when it runs."""
        plan = self._testbed.connections.plan
        await asyncio.to_thread(apply, plan.kafka, self._layout)
        topics = [self._layout.full_name(name) for name in ("documents", "placements", "changes")]
        self._folder.mkdir()
        arguments = [plan.kafka.address, self._layout.prefix, *topics, self.guarantee, str(self._folder), str(THREADS)]
        classpath = f"{JARS}/peer.jar:{JARS}/dependency/*"
        self._process = Process([*JAVA, "-cp", classpath, "peer.Main", *arguments], self._folder)
        running = lambda: "STATE RUNNING" in self._process.tail()  # noqa: E731
        await asyncio.to_thread(self._process.wait_until, running, timeout=START_S)
        self._consumer: AIOKafkaConsumer = await open_consumer(plan.kafka, isolation_level="read_committed")
        self._changes = [TopicPartition(topics[2], number) for number in range(self._layout.frontiers)]

    async def stop(self) -> None:
        """Stop the program."""
        await self._consumer.stop()
        await asyncio.to_thread(self._process.stop)

    @property
    def cpu_seconds(self) -> float:
        """The processor time that the program has used since its start."""
        return cpu_seconds(self._process.pid)

    async def publish(self, messages: list[Message]) -> None:
        """Publish documents to the program's topic."""
        await self._publisher.publish(messages)

    async def wait_until_idle(self) -> float:
        """Wait until no change has come for a while; return for how many seconds none has."""
        clock = asyncio.get_running_loop().time
        ends, since = await self._ends(), clock()
        while clock() - since < QUIET_S:
            await asyncio.sleep(POLL_S)
            latest = await self._ends()
            if latest != ends:
                ends, since = latest, clock()
        return clock() - since

    async def members(self) -> Members:
        """Return the active documents, from all changes."""
        ends = await self._ends()
        self._consumer.assign(self._changes)
        await self._consumer.seek_to_beginning(*self._changes)
        members: Members = set()
        while any([await self._consumer.position(partition) < ends[partition] for partition in self._changes]):
            for records in (await self._consumer.getmany(timeout_ms=1000)).values():
                for record in records:
                    scope, change = record.key.decode(), json.loads(record.value)
                    if "entered" in change:
                        members.add((scope, change["entered"]))
                    else:
                        members.discard((scope, change["left"]))
        return members

    async def _ends(self) -> dict[TopicPartition, int]:
        ends: dict[TopicPartition, int] = await self._consumer.end_offsets(self._changes)
        return ends
