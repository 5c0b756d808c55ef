"""Faust as the host of a worker: group membership, assignment, lifecycle and sensors, but not the records.

Promise: Faust reads no record, commits no offset that matters, writes nothing to Kafka and listens on no port. Its own
consumer acknowledges records before they are applied, and costs 87 us per message. Here each assigned partition goes to
a task that reads whole batches, and the store remembers how far a shard is. Cost: nothing per record.
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
    """A consumer without records: Faust calls none of what raises `NotImplementedError` here."""

    def _new_topicpartition(self, topic: str, partition: int) -> TP:
        return TP(topic, partition)

    def _to_message(self, tp: TP, record: object) -> ConsumerMessage:
        raise NotImplementedError

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> RecordMap:
        raise NotImplementedError

    async def _seek(self, partition: TP, offset: int) -> None:
        raise NotImplementedError

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        raise NotImplementedError

    async def position(self, tp: TP) -> int | None:
        raise NotImplementedError

    def highwater(self, tp: TP) -> int:
        raise NotImplementedError

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        raise NotImplementedError

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        raise NotImplementedError

    def topic_partitions(self, topic: str) -> int | None:
        raise NotImplementedError

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int | None:
        raise NotImplementedError

    async def create_topic(self, topic: str, partitions: int, replication: int, **options: object) -> None:
        raise NotImplementedError

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Do nothing: a shard begins at the offset in the store."""
        return {}

    async def commit(self, topics: object = None, start_new_transaction: bool = True) -> bool:
        """Do nothing: committed offsets are never read."""
        return False

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        return False


HEARTBEATS = 12  # per session: many may come late, and the others learn of a take-over within a twelfth of it
HEARTBEAT_MS_MAX = 1000
REJOIN_MS = 15_000  # how long the group waits for a member to finish its batches
METADATA_MS = 5000  # a leader that asked a broker before it knew the topics assigns nothing until it asks again
NEVER_MS = 2**31 - 1  # a shard that waits for Redis must not leave the group


class Partition(Protocol):
    """A topic and one of its partitions."""

    @property
    def topic(self) -> str:
        """The full name of the topic."""

    @property
    def partition(self) -> int:
        """The number of the partition."""


class GroupMember(Protocol):
    """What runs the partitions that the group assigns to this process."""

    def begin(self, consumer: AIOKafkaConsumer, assigned: Iterable[Partition]) -> None:
        """Run these partitions and no others."""

    async def drain(self) -> None:
        """Finish running batches and end all partitions."""


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    """Tells Faust what the group has decided."""

    def __init__(self, consumer: "BatchConsumer") -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> Coroutine[object, object, None]:
        """Begin a rebalance. Faust must know before anything is awaited."""
        self._consumer.app.on_rebalance_start()
        return self._revoked(ensure_TPset(revoked))

    async def _revoked(self, revoked: set[TP]) -> None:
        await self._consumer.on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        generation = self._consumer.driver._coordinator.generation
        self._consumer.app.consumer_generation_id = generation
        await self._consumer.on_partitions_assigned(ensure_TPset(assigned), generation)


class BatchConsumer(SilentConsumer):
    """A member of the group on the loop of the app. Its `GroupMember` reads."""

    driver: AIOKafkaConsumer

    async def on_start(self) -> None:
        app = self.app
        assert isinstance(app, App)
        self.driver = AIOKafkaConsumer(
            **app.server.options(),
            **READING,
            group_id=app.conf.id,
            request_timeout_ms=app.server.timeout_ms,
            session_timeout_ms=app.session_ms,
            heartbeat_interval_ms=min(app.session_ms // HEARTBEATS, HEARTBEAT_MS_MAX),
            rebalance_timeout_ms=REJOIN_MS,
            max_poll_interval_ms=NEVER_MS,
            metadata_max_age_ms=METADATA_MS,
            partition_assignment_strategy=[StickyPartitionAssignor],
        )
        await self.driver.start()

    async def on_stop(self) -> None:
        await self.wait_empty()
        await self.driver.stop()

    async def subscribe(self, topics: Iterable[str]) -> None:
        self.driver.subscribe(topics=list(topics), listener=Listener(self))

    def resume_flow(self) -> None:
        """End a rebalance."""
        super().resume_flow()
        self._member.begin(self.driver, self.assignment())

    async def wait_empty(self) -> None:
        """Prepare for a rebalance or the end."""
        await self._member.drain()

    @property
    def _member(self) -> GroupMember:
        app = self.app
        assert isinstance(app, App)
        return app.member

    def assignment(self) -> set[TP]:
        return ensure_TPset(self.driver.assignment())

    async def perform_seek(self) -> None:
        """Do nothing: a shard begins at the offset in the store."""

    async def _drain_messages(self, fetcher: ServiceT) -> None:
        await fetcher.wait_until_stopped()

    async def verify_all_partitions_active(self) -> None:
        """Do nothing: the worker has a watchdog of its own."""

    def pause_partitions(self, tps: Iterable[TP]) -> None:
        """Do nothing: a busy shard does not fetch, and pausing would drop what was fetched."""

    def resume_partitions(self, tps: Iterable[TP]) -> None:
        """Do nothing, because nothing is paused."""


class BatchTransport(Transport):
    """Faust's transport with `BatchConsumer`."""

    Consumer = BatchConsumer


class Boot(BootStrategy):
    """No web server, which would listen on all addresses, and no producer."""

    enable_web = False
    enable_kafka_producer = False


class Rebalances(Sensor):
    """Counts the rebalances of the group."""

    def __init__(self) -> None:
        self.count = 0
        super().__init__()

    def on_rebalance_end(self, app: object, state: Mapping[str, object]) -> None:
        self.count += 1


class App(faust.App):
    """The worker's Faust app. A member that is silent for `session_s` seconds loses its partitions to the others."""

    BootStrategy = Boot

    def __init__(
        self,
        group: str,
        server: KafkaServer,
        topics: Sequence[str],
        member: GroupMember,
        session_s: float,
    ) -> None:
        self.server = server
        self.session_ms = round(session_s * 1000)
        self.member = member
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
        """Do nothing: there are no tables."""

    def _new_transport(self) -> BatchTransport:
        return BatchTransport(self.conf.broker_consumer, self)
