"""Both hops over a real Kafka and a real Redis answer like the library, also after their state is lost."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

import stream_car
from stream_car import rule_packs
from stream_car.adapters.kafka.journal import KafkaJournal
from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply, delete
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.scripts import RedisClient
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.adapters.redis.views import RedisViews
from stream_car.codec import decode
from stream_car.ports import Emission, Message
from stream_car.processing.outbox import IntakeOutbox, WatermarkEmitter
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import FrontierFold, IntakeFold, generation_of
from stream_car.queries.answers import Resolution
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import ImmediateRetries, ReadOptions
from stream_car.queries.shards import ManyShards
from tests.support.kafka_publisher import KafkaPublisher
from tests.support.plain_index import PlainIndex
from tests.support.servers import in_one_worker
from tests.support.two_hop_folds import SIGNATURES

pytestmark = in_one_worker(__name__)

FEED = Path(stream_car.__file__).parent / "demo" / "feed.jsonl"
PARTITIONS = Partitions(intakes=2, frontiers=3)
RULESET = rule_packs.load()


async def concurrently(*requests: Callable[[], Awaitable[object]]) -> None:
    """Implements `ports.Concurrency`."""
    await asyncio.gather(*(request() for request in requests))


class Hops:
    """The shards of one generation, which a test runs with `run`."""

    def __init__(
        self, server: KafkaServer, layout: Layout, reader: Reader, sender: Sender, client: RedisClient
    ) -> None:
        self.server = server
        self.layout = layout
        self.reader = reader
        self.sender = sender
        self.client = client
        names = ("documents", "placements", "changes", "rejected")
        self.logs = {name: KafkaLog(reader, sender, layout.full_name(name)) for name in names}
        self.stores = {hop: RedisStore(client, f"{layout.prefix}.{hop}") for hop in ("intake", "frontier")}
        self.publisher = KafkaPublisher(
            sender, layout.full_name("documents"), lambda key: PARTITIONS.of_id(key.decode())
        )
        self.outbox = IntakeOutbox(
            PARTITIONS,
            signatures=SIGNATURES,
            placements=self.logs["placements"],
            documents=self.logs["documents"],
            rejected=self.logs["rejected"],
            concurrently=concurrently,
        )

    async def publish(self, lines: list[bytes]) -> None:
        await self.publisher.publish([Message(value=line, key=decode(line).id.encode()) for line in lines])

    def journal(self) -> KafkaJournal:
        return KafkaJournal({"changes": self.logs["changes"]}, generation_of(RULESET, PARTITIONS), SIGNATURES)

    async def run(self) -> None:
        """Claim every shard and apply its log up to the end, watermarks included."""
        for q in range(PARTITIONS.intakes):
            intake = Shard(
                shard=q,
                log=self.logs["documents"],
                store=self.stores["intake"],
                event_sink=self.outbox,
                fold=IntakeFold(RULESET, PARTITIONS, shard=q, signatures=SIGNATURES),
            )
            watermarks = WatermarkEmitter(intake, self.outbox)
            while await intake.run_once(37):
                await watermarks.emit()
        for p in range(PARTITIONS.frontiers):
            frontier = Shard(
                shard=p,
                log=self.logs["placements"],
                store=self.stores["frontier"],
                event_sink=self.journal(),
                fold=FrontierFold(RULESET, PARTITIONS, shard=p, signatures=SIGNATURES),
            )
            while await frontier.run_once(23):
                pass

    async def resolve(self, names: list[str]) -> tuple[Resolution, ...]:
        views = RedisViews(intake=self.stores["intake"], frontier=self.stores["frontier"])
        queries = Queries(shards=ManyShards(views, PARTITIONS), index=PlainIndex(), ruleset=RULESET, generation="g")
        return await queries.resolve(names, options=ReadOptions(min_revisions=(), retry=ImmediateRetries(3)))

    async def changes(self) -> list[list[Emission]]:
        return [list(await self.journal().read(p, "changes", limit=10_000)) for p in range(PARTITIONS.frontiers)]

    async def lose_redis(self) -> None:
        for store in self.stores.values():
            await store.drop(range(8))

    async def close(self) -> None:
        await self.lose_redis()
        await self.reader.close()
        await self.sender.close()
        await self.client.aclose()


@pytest.fixture
def hops(kafka: str, redis: str, runner: asyncio.Runner) -> Iterator[Hops]:
    server = KafkaServer(address=kafka)
    layout = Layout(
        prefix=f"test-{secrets.token_hex(6)}",
        intakes=PARTITIONS.intakes,
        frontiers=PARTITIONS.frontiers,
        single_broker=True,
    )
    apply(server, layout)

    async def connect_all() -> Hops:
        client = await connect(RedisServer(url=redis))
        return Hops(server, layout, await Reader.open(server), Sender(server), client)

    hops = runner.run(connect_all())
    yield hops
    runner.run(hops.close())
    delete(server, layout)


def controlling(resolution: Resolution) -> tuple[str, list[list[str]]]:
    groups = [[evidence.document.id for evidence in group.controlling] for group in resolution.groups]
    return resolution.status, groups


async def test_servers_answer_like_the_library_also_after_redis_is_lost(hops: Hops) -> None:
    lines = FEED.read_bytes().splitlines()
    ids = [decode(line).id for line in lines]
    with stream_car.open() as car:
        car.publish(lines)
        expected = [controlling(resolution) for resolution in car.resolve(ids)]
    half = len(lines) // 2
    await hops.publish(lines[:half])
    await hops.run()
    await hops.publish(lines[half:])
    await hops.run()

    resolutions = await hops.resolve(ids)
    changes = await hops.changes()
    lengths = [await hops.logs["changes"].range(p) for p in range(PARTITIONS.frontiers)]

    assert len({status for status, _ in expected}) > 1
    assert [controlling(resolution) for resolution in resolutions] == expected
    assert [reason for resolution in resolutions for reason in resolution.reasons] == []
    for events in changes:
        assert [event.oseq for event in events] == list(range(1, len(events) + 1))

    await hops.lose_redis()
    await hops.run()

    assert [controlling(resolution) for resolution in await hops.resolve(ids)] == expected
    assert await hops.changes() == changes
    assert [await hops.logs["changes"].range(p) for p in range(PARTITIONS.frontiers)] == lengths, (
        "a change was published again"
    )
