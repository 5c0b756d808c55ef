"""Faust as the host: membership of the group, assignment, lifecycle and sensors; records go another way.

Promise: nothing of Faust touches a record, commits an offset that matters, writes to Kafka or listens on a
port. Its own consumer acknowledges what is not done (`design` of the two hops: the store says where a shard
stands), and costs 87 us a message; this one hands each assigned partition to a task that reads whole batches.
Cost: none a record.
"""

from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Protocol

import faust
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from faust.app.base import BootStrategy
from faust.sensors import Sensor
from faust.transport.consumer import Consumer, RecordMap, ensure_TPset
from faust.transport.drivers.aiokafka import Transport
from faust.types import TP, ConsumerMessage
from mode import ServiceT

from stream_car.adapters.kafka.reader import READING
from stream_car.adapters.kafka.settings import KafkaServer


class SilentConsumer(Consumer):
    """A consumer that gives no records."""

    def _new_topicpartition(self, topic: str, partition: int) -> TP:
        return TP(topic, partition)

    def _to_message(self, tp: TP, record: object) -> ConsumerMessage:
        raise NotImplementedError

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> RecordMap:
        raise NotImplementedError

    async def _seek(self, partition: TP, offset: int) -> None:
        raise NotImplementedError

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Not asked."""
        raise NotImplementedError

    async def position(self, tp: TP) -> int | None:
        """Not asked."""
        raise NotImplementedError

    def highwater(self, tp: TP) -> int:
        """Not asked."""
        raise NotImplementedError

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        """Not asked."""
        raise NotImplementedError

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        """Not asked."""
        raise NotImplementedError

    def topic_partitions(self, topic: str) -> int | None:
        """Not asked."""
        raise NotImplementedError

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int | None:
        """Not asked."""
        raise NotImplementedError

    async def create_topic(self, topic: str, partitions: int, replication: int, **options: object) -> None:
        """Not asked: `stream-car topics apply` does it."""
        raise NotImplementedError

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Nothing: every shard begins where the store says."""
        return {}

    async def commit(self, topics: object = None, start_new_transaction: bool = True) -> bool:
        """Nothing: what the group has committed is never read."""
        return False

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        return False


SESSION_MS = 6000  # the least that brokers allow unless told otherwise
HEARTBEAT_MS = 1000
REJOIN_MS = 15_000  # how long the group waits for a member that finishes its batches
METADATA_MS = 5000  # a broker that just started knows no topics: a leader that asked it then has nothing to share out
NEVER_MS = 2**31 - 1  # a shard that waits for Redis is no reason to leave the group


class Partition(Protocol):
    """A topic and one of its partitions."""

    @property
    def topic(self) -> str:
        """The topic's full name."""
        ...

    @property
    def partition(self) -> int:
        """The number."""
        ...


class Guest(Protocol):
    """Who is told what the group has assigned."""

    def begin(self, consumer: AIOKafkaConsumer, assigned: Iterable[Partition]) -> None:
        """These are ours now; nothing else is."""
        ...

    async def drain(self) -> None:
        """Finish what is running and let go of all."""
        ...


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Tells Faust what the group decides."""

    def __init__(self, consumer: "BatchConsumer") -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> Coroutine[object, object, None]:
        """A rebalance begins; Faust wants to know before anything is awaited."""
        self._consumer.app.on_rebalance_start()
        return self._revoked(ensure_TPset(revoked))

    async def _revoked(self, revoked: set[TP]) -> None:
        await self._consumer.on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """A rebalance has an outcome."""
        generation = self._consumer.driver._coordinator.generation
        self._consumer.app.consumer_generation_id = generation
        await self._consumer.on_partitions_assigned(ensure_TPset(assigned), generation)


class BatchConsumer(SilentConsumer):
    """A member of the group on the app's own loop; who reads is the guest."""

    driver: AIOKafkaConsumer

    async def on_start(self) -> None:
        """Connect."""
        app = self.app
        assert isinstance(app, App)
        self.driver = AIOKafkaConsumer(
            **app.server.options(),
            **READING,
            group_id=app.conf.id,
            request_timeout_ms=app.server.timeout_ms,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            rebalance_timeout_ms=REJOIN_MS,
            max_poll_interval_ms=NEVER_MS,
            metadata_max_age_ms=METADATA_MS,
            partition_assignment_strategy=[StickyPartitionAssignor],
        )
        await self.driver.start()

    async def on_stop(self) -> None:
        """Let go and leave the group."""
        await self.wait_empty()
        await self.driver.stop()

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Join the group for these."""
        self.driver.subscribe(topics=list(topics), listener=Listener(self))

    def resume_flow(self) -> None:
        """The end of every rebalance."""
        super().resume_flow()
        self._guest.begin(self.driver, self.assignment())

    async def wait_empty(self) -> None:
        """Before a rebalance, and before the end."""
        await self._guest.drain()

    @property
    def _guest(self) -> Guest:
        app = self.app
        assert isinstance(app, App)
        return app.guest

    def assignment(self) -> set[TP]:
        """What the group has given us."""
        return ensure_TPset(self.driver.assignment())

    async def perform_seek(self) -> None:
        """Nothing: every shard begins where the store says."""

    async def _drain_messages(self, fetcher: ServiceT) -> None:
        await fetcher.wait_until_stopped()

    async def verify_all_partitions_active(self) -> None:
        """The worker's own watchdog does it."""

    def pause_partitions(self, tps: Iterable[TP]) -> None:
        """Nothing: a shard that is busy does not ask, and pausing would throw away what was fetched."""

    def resume_partitions(self, tps: Iterable[TP]) -> None:
        """Nothing, likewise."""


class BatchTransport(Transport):
    """Kafka, with that consumer."""

    Consumer = BatchConsumer


class Boot(BootStrategy):
    """Neither a web server, which would listen on all addresses, nor a producer."""

    enable_web = False
    enable_kafka_producer = False


class Rebalances(Sensor):
    """Counts what the group does."""

    def __init__(self) -> None:
        self.count = 0
        super().__init__()

    def on_rebalance_end(self, app: object, state: Mapping[str, object]) -> None:
        """One more."""
        self.count += 1


class App(faust.App):
    """The worker's Faust app."""

    BootStrategy = Boot

    def __init__(self, group: str, server: KafkaServer, topics: Sequence[str], guest: Guest) -> None:
        self.server = server
        self.guest = guest
        self.rebalances = Rebalances()
        super().__init__(
            group,
            broker=f"kafka://{server.address.split(',')[0]}",
            topic_disable_leader=True,
            topic_allow_declare=False,
            web_enabled=False,
            store="memory://",
            key_serializer="raw",
            value_serializer="raw",
        )
        self.sensors.add(self.rebalances)
        for topic in topics:
            self.topics.add(self.topic(topic, key_type=bytes, value_type=bytes))

    async def on_first_start(self) -> None:
        """Nothing: there are no tables to keep on disk."""

    def _new_transport(self) -> BatchTransport:
        return BatchTransport(self.conf.broker_consumer, self)
