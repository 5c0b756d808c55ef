"""Both hops on a real Kafka and a real Redis say what the embedded engine says, also after their state is lost."""

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
from stream_car.adapters.redis.scripts import Client
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.adapters.redis.views import RedisViews
from stream_car.codec import decode
from stream_car.ports import Emission, Message
from stream_car.processing.outbox import IntakeOutbox, WatermarkEmitter
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import FrontierFold, IntakeFold
from stream_car.queries.answers import Resolution
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import ImmediateRetries, ReadOptions
from stream_car.queries.shards import ManyShards
from tests.support.kafka_publisher import KafkaPublisher
from tests.support.plain_index import PlainIndex
from tests.support.servers import in_one_worker

pytestmark = in_one_worker("kafka")

FEED = Path(stream_car.__file__).parent / "demo" / "feed.jsonl"
PARTS = Partitions(intakes=2, frontiers=3)
RULESET = rule_packs.load()


async def all_at_once(*requests: Callable[[], Awaitable[object]]) -> None:
    """Implements `ports.Concurrency`."""
    await asyncio.gather(*(request() for request in requests))


class Hops:
    """The shards of one generation, driven by hand; `live` gives them another life."""

    def __init__(self, server: KafkaServer, layout: Layout, reader: Reader, sender: Sender, client: Client) -> None:
        self.server = server
        self.layout = layout
        self.reader = reader
        self.sender = sender
        self.client = client
        names = ("documents", "placements", "changes", "rejected")
        self.logs = {name: KafkaLog(reader, sender, layout.named(name)) for name in names}
        self.stores = {hop: RedisStore(client, f"{layout.prefix}.{hop}") for hop in ("intake", "frontier")}
        self.publisher = KafkaPublisher(sender, layout.named("documents"), lambda key: PARTS.of_id(key.decode()))
        self.outlet = IntakeOutbox(
            PARTS,
            placements=self.logs["placements"],
            documents=self.logs["documents"],
            rejected=self.logs["rejected"],
            concurrently=all_at_once,
        )

    async def publish(self, lines: list[bytes]) -> None:
        await self.publisher.publish([Message(value=line, key=decode(line).id.encode()) for line in lines])

    def journal(self) -> KafkaJournal:
        return KafkaJournal({"changes": self.logs["changes"]}, IntakeFold(RULESET, PARTS, shard=0).generation)

    async def live(self) -> None:
        """Claim every shard and bring it to the end of its log, marks included."""
        for q in range(PARTS.intakes):
            intake = Shard(
                shard=q,
                log=self.logs["documents"],
                store=self.stores["intake"],
                event_sink=self.outlet,
                fold=IntakeFold(RULESET, PARTS, shard=q),
            )
            marks = WatermarkEmitter(intake, self.outlet)
            while await intake.run_once(37):
                await marks.emit()
        for p in range(PARTS.frontiers):
            frontier = Shard(
                shard=p,
                log=self.logs["placements"],
                store=self.stores["frontier"],
                event_sink=self.journal(),
                fold=FrontierFold(RULESET, PARTS, shard=p),
            )
            while await frontier.run_once(23):
                pass

    async def resolve(self, names: list[str]) -> tuple[Resolution, ...]:
        views = RedisViews(intake=self.stores["intake"], frontier=self.stores["frontier"])
        queries = Queries(shards=ManyShards(views, PARTS), index=PlainIndex(), ruleset=RULESET, generation="g")
        return await queries.resolve(names, options=ReadOptions(min_revisions=(), retry=ImmediateRetries(3)))

    async def changes(self) -> list[list[Emission]]:
        return [list(await self.journal().read(p, "changes", limit=10_000)) for p in range(PARTS.frontiers)]

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
        prefix=f"test-{secrets.token_hex(6)}", intakes=PARTS.intakes, frontiers=PARTS.frontiers, single_broker=True
    )
    apply(server, layout)

    async def opened() -> Hops:
        client = await connect(RedisServer(url=redis))
        return Hops(server, layout, await Reader.open(server), Sender(server), client)

    hops = runner.run(opened())
    yield hops
    runner.run(hops.close())
    delete(server, layout)


def controlling(found: Resolution) -> tuple[str, list[list[str]]]:
    return found.status, [[one.document.id for one in group.controlling] for group in found.groups]


async def test_servers_say_what_the_embedded_engine_says_also_after_redis_is_lost(hops: Hops) -> None:
    lines = FEED.read_bytes().splitlines()
    ids = [decode(line).id for line in lines]
    with stream_car.open() as car:
        car.publish(lines)
        expected = [controlling(one) for one in car.resolve(ids)]
    half = len(lines) // 2
    await hops.publish(lines[:half])
    await hops.live()
    await hops.publish(lines[half:])
    await hops.live()

    found = await hops.resolve(ids)
    told = await hops.changes()
    lengths = [await hops.logs["changes"].range(p) for p in range(PARTS.frontiers)]

    assert len({status for status, _ in expected}) > 1
    assert [controlling(one) for one in found] == expected
    assert [reason for one in found for reason in one.reasons] == []
    for events in told:
        assert [event.oseq for event in events] == list(range(1, len(events) + 1))

    await hops.lose_redis()
    await hops.live()

    assert [controlling(one) for one in await hops.resolve(ids)] == expected
    assert await hops.changes() == told
    assert [await hops.logs["changes"].range(p) for p in range(PARTS.frontiers)] == lengths, "nothing is told again"
