"""The connections of a worker or query worker, and the shards of both hops over Kafka and Redis.

Promise: unsafe settings of topics and servers are rejected here, by name. The topics determine how many shards each hop
has. The shards of a process share its connections.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal

from msgspec import Struct

from stream_car.adapters.kafka import topics
from stream_car.adapters.kafka.journal import KafkaJournal
from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import KEYS, PREFIX, Layout
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.scripts import RedisClient
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.cluster.shard_runner import FETCH_WAIT_MS, InterruptibleLog, Report, ShardRunner
from stream_car.cluster.watermarks import Watermarks
from stream_car.core.rules import Ruleset
from stream_car.errors import StreamCarError
from stream_car.ports import Hop, Log, ShardId
from stream_car.processing.fold import CHANGES
from stream_car.processing.outbox import IntakeOutbox, WatermarkEmitter
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.signatures import Signatures, decode_signatures
from stream_car.processing.two_hop import FrontierFold, IntakeFold, generation_of

Hops = Literal["intake", "frontier", "all"]
TOPICS: dict[Hop, str] = {"intake": "documents", "frontier": "placements"}  # the topic that each hop reads


class Plan(Struct, frozen=True, kw_only=True):
    """Which servers, topics and rules. The keys in Redis and the consumer group begin with `namespace`."""

    kafka: KafkaServer
    redis: RedisServer
    ruleset: Ruleset
    prefix: str = PREFIX
    namespace: str = ""
    single_broker: bool = False

    @property
    def name(self) -> str:
        """The namespace; without one, the prefix of the topics."""
        return self.namespace or self.prefix

    def store(self, client: RedisClient, hop: Hop) -> RedisStore:
        """Return the state of a hop."""
        return RedisStore(client, f"{self.name}.{hop}")


class Connections:
    """Open connections, and the shards that use them. Close it."""

    def __init__(
        self,
        plan: Plan,
        layout: Layout,
        signatures: Signatures,
        client: RedisClient,
        reader: Reader,
        sender: Sender,
    ) -> None:
        self.plan = plan
        self.signatures = signatures
        self.layout = layout
        self.partitions = Partitions(intakes=layout.intakes, frontiers=layout.frontiers)
        self.generation = generation_of(plan.ruleset, self.partitions)
        self.client = client
        self.reader = reader
        self.sender = sender
        self.watermarks = Watermarks()

    @classmethod
    async def open(cls, plan: Plan, layout: Layout | None = None) -> "Connections":
        """Connect and check; topics that are given were checked before.

        Raises `UnsafeSettings`, `Unavailable` or `StreamCarError`.
        """
        if layout is None:
            read_layout = partial(topics.read_layout, single_broker=plan.single_broker)
            layout = await asyncio.to_thread(read_layout, plan.kafka, plan.prefix)
        reader, sender = await Reader.open(plan.kafka), Sender(plan.kafka)
        try:
            signatures = await read_signatures(KafkaLog(reader, sender, layout.full_name(KEYS)))
            client = await connect(plan.redis)
        except BaseException:
            await reader.close()
            raise
        return cls(plan, layout, signatures, client, reader, sender)

    async def close(self) -> None:
        """Close the connections."""
        await self.sender.close()
        await self.reader.close()
        await self.client.aclose()

    @property
    def index_owner(self) -> str:
        """What a stored text index belongs to."""
        plan = self.plan
        return f"{plan.kafka.address} {plan.prefix} {plan.name} {self.generation}"

    def topic(self, hop: Hop) -> str:
        """Return the name of the topic that a hop reads."""
        return self.layout.full_name(TOPICS[hop])

    def run_shard(self, place: ShardId, reader: Reader, report: Report) -> ShardRunner:
        """Start a shard. `reader` is that of the consumer group."""
        log = InterruptibleLog(KafkaLog(reader, self.sender, self.topic(place.hop), wait_ms=FETCH_WAIT_MS))
        return self._intake(place, log, report) if place.hop == "intake" else self._frontier(place, log, report)

    def log(self, topic: str) -> KafkaLog:
        """Return a topic, which is read outside of the consumer group."""
        return KafkaLog(self.reader, self.sender, self.layout.full_name(topic))

    def journal(self) -> KafkaJournal:
        """Return the change log of this generation."""
        return KafkaJournal({CHANGES: self.log("changes")}, self.generation, self.signatures)

    def _intake(self, place: ShardId, log: InterruptibleLog, report: Report) -> ShardRunner:
        outbox = IntakeOutbox(
            self.partitions,
            signatures=self.signatures,
            placements=self.log("placements"),
            documents=self.log("documents"),
            rejected=self.log("rejected"),
            concurrently=concurrently,
        )
        shard = Shard(
            shard=place.shard,
            log=log,
            store=self.plan.store(self.client, "intake"),
            event_sink=outbox,
            fold=IntakeFold(self.plan.ruleset, self.partitions, shard=place.shard, signatures=self.signatures),
        )
        emitter = WatermarkEmitter(shard, outbox)
        return ShardRunner(place, shard, log, report, emitter=emitter, watermarks=self.watermarks)

    def _frontier(self, place: ShardId, log: InterruptibleLog, report: Report) -> ShardRunner:
        shard = Shard(
            shard=place.shard,
            log=log,
            store=self.plan.store(self.client, "frontier"),
            event_sink=self.journal(),
            fold=FrontierFold(self.plan.ruleset, self.partitions, shard=place.shard, signatures=self.signatures),
        )
        return ShardRunner(place, shard, log, report)


async def read_signatures(keys: Log) -> Signatures:
    """Return what signs the records of an installation. Raises `StreamCarError` if its key was never made."""
    records = await keys.fetch(0, 0, 1)
    if not records:
        raise StreamCarError("The topic of keys is empty. Make the key with `stream-car topics apply`.")
    return decode_signatures(records[0].value)


async def concurrently(*requests: Callable[[], Awaitable[object]]) -> None:
    """Implements `ports.Concurrency`: all requests are sent before any is waited for."""
    results = await asyncio.gather(*(request() for request in requests), return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
