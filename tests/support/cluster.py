"""A whole installation over Kafka and Redis in this process: the shards of both hops, and a query worker.

Promise: each installation has its own topics and state, which are deleted afterwards. Its shards are those of
`stream-car worker`, without the consumer group that would distribute them. Cost: about a second to start.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from msgspec.structs import replace

from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply, delete
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.views import RedisViews
from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.api import requests as r
from stream_car.api.bookmark import Bookmark
from stream_car.api.calls_aio import AsyncCalls
from stream_car.api.service import Service
from stream_car.cluster import watermarks as watermark_task
from stream_car.cluster.cancel import cancel
from stream_car.cluster.connections import Connections, Plan
from stream_car.cluster.service import ClusterService
from stream_car.cluster.shard_runner import ShardRunner, WorkerEvent
from stream_car.cluster.shared_log import KafkaReaders
from stream_car.cluster.watermarks import Watermarks
from stream_car.codec import Publishables, encode_document, iterate_documents
from stream_car.core.rules import Ruleset
from stream_car.ports import Hop, ShardId
from stream_car.processing.headers import FrontierHeader
from stream_car.processing.state import decode_value
from stream_car.processing.two_hop import FRONTIER
from stream_car.queries import answers as a
from stream_car.ranking.settings import SETTINGS as RANKING, Settings
from stream_car.settings import ServerSettings
from stream_car.subscriptions.events import Event
from tests.support.engines import RULESET

SETTINGS = ServerSettings(port=0)
PARTITIONS = 2, 3
WATERMARK_S = 0.01  # shards report their progress more often than usual, so that a test waits less
LOOK_S = 0.005
REST_S = 60.0
HOPS: tuple[Hop, ...] = ("intake", "frontier")
INTAKES = [ShardId("intake", shard) for shard in range(PARTITIONS[0])]
FRONTIERS = [ShardId("frontier", shard) for shard in range(PARTITIONS[1])]
PLACES = [*INTAKES, *FRONTIERS]

A = TypeVar("A")


class ServiceCalls(AsyncCalls):
    """The calls that programs make, to a service in this process."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def _carry_out(self, request: r.Request[A]) -> A:
        return await self.service.call(request)

    async def _publish(self, documents: Publishables, options: r.PublishOptions) -> a.Published:
        values = tuple(map(encode_document, iterate_documents(documents)))
        return await self.service.call(r.Publish(documents=values, strict=options.strict, format=options.format))

    async def _events(self, request: r.Subscribe, bookmark: Bookmark) -> AsyncGenerator[Event, None]:
        async for events in await self.service.subscribe(replace(request, after=bookmark.cursor)):
            for event in events:
                yield event


class Installed:
    """An installation that runs. `calls` are those of its query worker."""

    def __init__(self, connections: Connections, views: RedisViews, service: ClusterService) -> None:
        self.connections = connections
        self.views = views
        self.service = service
        self.calls = ServiceCalls(service)
        self._readers: list[Reader] = []
        self._runners: list[ShardRunner] = []

    @property
    def shards(self) -> int:
        """The number of shards that emit changes."""
        return PARTITIONS[1]

    @property
    def generation(self) -> str:
        """The generation that cursors belong to."""
        return self.connections.generation

    async def rest(self) -> None:
        """Return when everything published is applied by both hops, has reached subscribers, and is indexed."""
        async with asyncio.timeout(REST_S):
            while not await self._is_at_rest():
                await asyncio.sleep(LOOK_S)
            await self.service.indexer.settle()

    async def lose_redis(self, hops: Sequence[Hop] = HOPS) -> None:
        """Delete the state of these hops."""
        await _drop(self.connections, hops)

    @asynccontextmanager
    async def without_workers(self) -> AsyncIterator[None]:
        """Stop the shards within, as if every worker process had ended."""
        await self.stop_shards()
        yield
        await self.start_shards()

    async def start_shards(self, places: Sequence[ShardId] = PLACES) -> None:
        """Run these shards, without a consumer group."""
        readers = [await Reader.open(self.connections.plan.kafka) for _ in places]
        self._readers += readers
        self._runners += [
            self.connections.run_shard(place, reader, _require_progress)
            for place, reader in zip(places, readers, strict=True)
        ]

    async def kill_shards(self) -> None:
        """Stop the shards wherever they are, as `kill -9` of their workers would."""
        runners, self._runners = self._runners, []
        readers, self._readers = self._readers, []
        watermarks, self.connections.watermarks = self.connections.watermarks, Watermarks()
        tasks = [runner._task for runner in runners] + ([watermarks.task] if watermarks.task is not None else [])
        await cancel(*tasks)
        await asyncio.gather(*(reader.close() for reader in readers))

    async def stop_shards(self) -> None:
        """End the shards in order."""
        runners, self._runners = self._runners, []
        readers, self._readers = self._readers, []
        await asyncio.gather(*(runner.end(5.0) for runner in runners))
        await asyncio.gather(*(reader.close() for reader in readers))

    async def _is_at_rest(self) -> bool:
        log = self.connections.log("documents")
        ends = [(await log.range(shard.shard))[1] for shard in INTAKES]
        snapshot = await self.views.peek({shard: [FRONTIER] for shard in PLACES})
        if [snapshot[shard][0] for shard in INTAKES] != ends:
            return False
        changes = []
        for shard in FRONTIERS:
            header = decode_value(FRONTIER, snapshot[shard][1].get(FRONTIER))
            if not isinstance(header, FrontierHeader):
                return not any(ends)
            if header.watermarks != ends:
                return False
            changes.append(header.changes)
        return list(await self.service.hub.source.last()) == changes


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
    """Run an installation within, with a query worker that is ready."""
    server, name = KafkaServer(address=kafka), f"test-{secrets.token_hex(6)}"
    layout = Layout(prefix=name, intakes=PARTITIONS[0], frontiers=PARTITIONS[1], single_broker=True)
    plan = Plan(kafka=server, redis=RedisServer(url=redis), ruleset=ruleset, prefix=name, single_broker=True)
    async with AsyncExitStack() as opened:
        await asyncio.to_thread(apply, server, layout)
        opened.push_async_callback(asyncio.to_thread, delete, server, layout)
        connections = await Connections.open(plan)
        opened.push_async_callback(connections.close)
        opened.push_async_callback(_drop, connections)
        folder = index or Path(opened.enter_context(TemporaryDirectory()))
        worker = query_worker(connections, folder, settings=settings, ranking=ranking)
        installation = Installed(connections, views_of(connections), await opened.enter_async_context(worker))
        usual, watermark_task.WATERMARK_S = watermark_task.WATERMARK_S, WATERMARK_S
        opened.callback(setattr, watermark_task, "WATERMARK_S", usual)
        opened.push_async_callback(installation.stop_shards)
        await installation.start_shards()
        yield installation


class SettledCalls(ServiceCalls):
    """The calls of an installation. What is published is applied by both hops and indexed when `publish` returns."""

    def __init__(self, installation: Installed) -> None:
        super().__init__(installation.service)
        self._installation = installation

    async def _publish(self, documents: Publishables, options: r.PublishOptions) -> a.Published:
        published = await super()._publish(documents, options)
        await self._installation.rest()
        return published


@asynccontextmanager
async def settled_calls(kafka: str, redis: str, ruleset: Ruleset) -> AsyncIterator[AsyncCalls]:
    """Run an installation within; yield its calls."""
    async with installed(kafka, redis, ruleset=ruleset) as installation:
        yield SettledCalls(installation)


@asynccontextmanager
async def query_worker(
    connections: Connections, folder: Path, *, settings: ServerSettings = SETTINGS, ranking: Settings = RANKING
) -> AsyncIterator[ClusterService]:
    """Run a query worker within, whose index is in `folder`; it answers."""
    async with starting_query_worker(connections, folder, settings=settings, ranking=ranking) as service:
        async with asyncio.timeout(REST_S):
            while not service.can_answer:
                await asyncio.sleep(LOOK_S)
        yield service


@asynccontextmanager
async def starting_query_worker(
    connections: Connections, folder: Path, *, settings: ServerSettings = SETTINGS, ranking: Settings = RANKING
) -> AsyncIterator[ClusterService]:
    """Run a query worker within, whose index is in `folder`; it need not answer yet."""
    async with AsyncExitStack() as opened:
        readers = await KafkaReaders.open(connections)
        opened.push_async_callback(readers.close)
        index = TantivyIndex(folder, settings=ranking)
        opened.callback(index.close)
        keys = SqliteKeys(folder / "keys.sqlite", connections.index_owner)
        opened.callback(keys.close)
        service = ClusterService(connections, views_of(connections), readers, index, keys, settings)
        service.queries.superseded_bonus = ranking.superseded_bonus
        await service.begin()
        await opened.enter_async_context(service)
        yield service


def views_of(connections: Connections) -> RedisViews:
    """Return a reader of the state of both hops."""
    plan, client = connections.plan, connections.client
    return RedisViews(intake=plan.store(client, "intake"), frontier=plan.store(client, "frontier"))


def _require_progress(event: WorkerEvent) -> None:
    if event.event == "halted":
        raise AssertionError(f"{event.hop} {event.shard} halted: {event.reason}")


async def _drop(connections: Connections, hops: Sequence[Hop] = HOPS) -> None:
    for hop in hops:
        await connections.plan.store(connections.client, hop).drop(range(max(PARTITIONS)))
