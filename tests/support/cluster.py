"""Kafka and Redis with a whole installation on them in this process: shards of both hops, and a query worker.

Promise: topics and state of its own for each, deleted after; its shards are those of `stream-car worker` without
the group that would share them out. Cost: about a second to begin.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply, delete
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.views import RedisViews
from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.cluster import shard_runner
from stream_car.cluster.connections import Plan, Works
from stream_car.cluster.service import ServersService
from stream_car.cluster.shard_runner import Hosted, Said
from stream_car.cluster.shared_log import Reading
from stream_car.core.rules import Ruleset
from stream_car.ports import ShardId
from stream_car.processing.headers import FrontierHeader
from stream_car.processing.state import decode_value
from stream_car.processing.two_hop import FRONTIER
from stream_car.ranking.settings import SETTINGS as RANKING
from stream_car.ranking.settings import Settings
from stream_car.settings import ServerSettings
from tests.support.engines import RULESET

SETTINGS = ServerSettings(port=0)
PARTITIONS = 2, 3
MARK_S = 0.01  # the shards say more often how far they are, so that a test need not wait to see all
LOOK_S = 0.005
REST_S = 20.0
PLACES = [*(ShardId("intake", q) for q in range(2)), *(ShardId("frontier", p) for p in range(3))]


class Installed:
    """Everything that runs."""

    def __init__(self, works: Works, views: RedisViews, service: ServersService) -> None:
        self.works = works
        self.views = views
        self.service = service

    @property
    def shards(self) -> int:
        """How many tell changes."""
        return PARTITIONS[1]

    @property
    def generation(self) -> str:
        """Names what cursors belong to."""
        return self.works.generation

    async def rest(self) -> None:
        """Returns when all that was published is applied by both hops, told and in the index."""
        async with asyncio.timeout(REST_S):
            while not await self._rests():
                await asyncio.sleep(LOOK_S)
            await self.service.feeder.settle()

    async def lose_redis(self) -> None:
        """All state of both hops."""
        await _dropped(self.works)

    async def _rests(self) -> bool:
        log = self.works.log("documents")
        ends = [(await log.range(q))[1] for q in range(PARTITIONS[0])]
        found = await self.views.peek({place: [FRONTIER] for place in PLACES})
        if [found[place][0] for place in PLACES if place.hop == "intake"] != ends:
            return False
        told = []
        for place in PLACES[PARTITIONS[0] :]:
            header = decode_value(FRONTIER, found[place][1].get(FRONTIER))
            if not isinstance(header, FrontierHeader):
                return not any(ends)
            if header.watermarks != ends:
                return False
            told.append(header.changes)
        return list(await self.service.subscriptions.source.last()) == told


@asynccontextmanager
async def installed(
    kafka: str,
    redis: str,
    *,
    ruleset: Ruleset = RULESET,
    settings: ServerSettings = SETTINGS,
    ranking: Settings = RANKING,
    index: Path | None = None,
) -> AsyncIterator[Installed]:
    """Everything runs within, and its query worker is ready."""
    server, name = KafkaServer(address=kafka), f"test-{secrets.token_hex(6)}"
    layout = Layout(prefix=name, intakes=PARTITIONS[0], frontiers=PARTITIONS[1], single_broker=True)
    plan = Plan(kafka=server, redis=RedisServer(url=redis), ruleset=ruleset, prefix=name, single_broker=True)
    async with AsyncExitStack() as opened:
        await asyncio.to_thread(apply, server, layout)
        opened.push_async_callback(asyncio.to_thread, delete, server, layout)
        works = await Works.open(plan)
        opened.push_async_callback(works.close)
        opened.push_async_callback(_dropped, works)
        await opened.enter_async_context(_shards(works))
        folder = index or Path(opened.enter_context(TemporaryDirectory()))
        service = await opened.enter_async_context(query_worker(works, folder, settings=settings, ranking=ranking))
        yield Installed(works, views_of(works), service)


@asynccontextmanager
async def query_worker(
    works: Works, folder: Path, *, settings: ServerSettings = SETTINGS, ranking: Settings = RANKING
) -> AsyncIterator[ServersService]:
    """A query worker with its index in `folder`, ready."""
    async with AsyncExitStack() as opened:
        reading = await Reading.open(works)
        opened.push_async_callback(reading.close)
        index = TantivyIndex(folder, settings=ranking)
        opened.callback(index.close)
        keys = SqliteKeys(folder / "keys.sqlite", works.plan.name)
        opened.callback(keys.close)
        service = ServersService(works, views_of(works), reading, index, keys, settings)
        service.queries.superseded_bonus = ranking.superseded_bonus
        await service.begin()
        await opened.enter_async_context(service)
        async with asyncio.timeout(REST_S):
            while not service.is_ready:
                await asyncio.sleep(LOOK_S)
        yield service


def views_of(works: Works) -> RedisViews:
    """The state of both hops."""
    plan, client = works.plan, works.client
    return RedisViews(intake=plan.store(client, "intake"), frontier=plan.store(client, "frontier"))


@asynccontextmanager
async def _shards(works: Works) -> AsyncIterator[None]:
    """The shards of both hops, at work without a group."""
    readers = [await Reader.open(works.plan.kafka) for _ in PLACES]
    usual, shard_runner.MARK_S = shard_runner.MARK_S, MARK_S
    running: list[Hosted] = []
    try:
        running += [works.host(place, reader, _heard) for place, reader in zip(PLACES, readers, strict=True)]
        yield
    finally:
        await asyncio.gather(*(one.end(5.0) for one in running))
        shard_runner.MARK_S = usual
        await asyncio.gather(*(reader.close() for reader in readers))


def _heard(said: Said) -> None:
    if said.event == "halted":
        raise AssertionError(f"{said.hop} {said.shard} halted: {said.reason}")


async def _dropped(works: Works) -> None:
    for hop in ("intake", "frontier"):
        await works.plan.store(works.client, hop).drop(range(max(PARTITIONS)))
