"""What a worker is made of: the shards of both hops over Kafka and Redis.

Promise: topics and servers whose settings would break a promise are refused here, by name. How many shards
each hop has is what the topics say. Shards of one process share its connections.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec import Struct

from stream_car.adapters.kafka import topics
from stream_car.adapters.kafka.journal import KafkaJournal
from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import PREFIX, Layout
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.scripts import Client
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.cluster.shard_runner import REST_MS, AttendedLog, Hosted, Tell
from stream_car.core.rules import Ruleset
from stream_car.ports import Hop, ShardId
from stream_car.processing.fold import CHANGES
from stream_car.processing.outbox import IntakeOutbox, WatermarkEmitter
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import FrontierFold, IntakeFold, generation_of

Hops = Literal["intake", "frontier", "all"]
TOPICS: dict[Hop, str] = {"intake": "documents", "frontier": "placements"}  # what each hop reads


class Plan(Struct, frozen=True, kw_only=True):
    """Which servers, topics and rules; `namespace` begins the names of what is kept in Redis, and of the group."""

    kafka: KafkaServer
    redis: RedisServer
    ruleset: Ruleset
    prefix: str = PREFIX
    namespace: str = ""
    single_broker: bool = False

    @property
    def name(self) -> str:
        """The namespace; that of the topics where none is said."""
        return self.namespace or self.prefix

    def store(self, client: Client, hop: Hop) -> RedisStore:
        """The state of a hop."""
        return RedisStore(client, f"{self.name}.{hop}")


class Works:
    """Open connections, and the shards that can be made with them. Close it."""

    def __init__(self, plan: Plan, layout: Layout, client: Client, reader: Reader, sender: Sender) -> None:
        self.plan = plan
        self.layout = layout
        self.partitions = Partitions(intakes=layout.intakes, frontiers=layout.frontiers)
        self.generation = generation_of(plan.ruleset, self.partitions)
        self.client = client
        self.reader = reader
        self.sender = sender

    @classmethod
    async def open(cls, plan: Plan) -> "Works":
        """Connected and checked. Raises `UnsafeSettings`, `Unavailable`, `StreamCarError`."""
        layout = await asyncio.to_thread(topics.laid_out, plan.kafka, plan.prefix, single_broker=plan.single_broker)
        reader = await Reader.open(plan.kafka)
        try:
            client = await connect(plan.redis)
        except BaseException:
            await reader.close()
            raise
        return cls(plan, layout, client, reader, Sender(plan.kafka))

    async def close(self) -> None:
        """Let the connections go."""
        await self.sender.close()
        await self.reader.close()
        await self.client.aclose()

    def topic(self, hop: Hop) -> str:
        """What a hop reads."""
        return self.layout.named(TOPICS[hop])

    def host(self, place: ShardId, reader: Reader, tell: Tell) -> Hosted:
        """A shard at work; `reader` is that of the group."""
        log = AttendedLog(KafkaLog(reader, self.sender, self.topic(place.hop), wait_ms=REST_MS))
        return self._intake(place, log, tell) if place.hop == "intake" else self._frontier(place, log, tell)

    def log(self, topic: str) -> KafkaLog:
        """A topic, read outside of any group."""
        return KafkaLog(self.reader, self.sender, self.layout.named(topic))

    def journal(self) -> KafkaJournal:
        """The changes of this generation."""
        return KafkaJournal({CHANGES: self.log("changes")}, self.generation)

    def _intake(self, place: ShardId, log: AttendedLog, tell: Tell) -> Hosted:
        outlet = IntakeOutbox(
            self.partitions,
            placements=self.log("placements"),
            documents=self.log("documents"),
            rejected=self.log("rejected"),
            concurrently=at_once,
        )
        shard = Shard(
            shard=place.shard,
            log=log,
            store=self.plan.store(self.client, "intake"),
            event_sink=outlet,
            fold=IntakeFold(self.plan.ruleset, self.partitions, shard=place.shard),
        )
        return Hosted(place, shard, log, WatermarkEmitter(shard, outlet), tell)

    def _frontier(self, place: ShardId, log: AttendedLog, tell: Tell) -> Hosted:
        shard = Shard(
            shard=place.shard,
            log=log,
            store=self.plan.store(self.client, "frontier"),
            event_sink=self.journal(),
            fold=FrontierFold(self.plan.ruleset, self.partitions, shard=place.shard),
        )
        return Hosted(place, shard, log, None, tell)


async def at_once(*requests: Callable[[], Awaitable[object]]) -> None:
    """Implements `ports.Concurrency`: all are sent before any is waited for."""
    told = await asyncio.gather(*(request() for request in requests), return_exceptions=True)
    for one in told:
        if isinstance(one, BaseException):
            raise one
