"""State in Redis and topics of Kafka that an older release wrote can be continued."""

from base64 import b64decode
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest

from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.adapters.redis.views import RedisViews
from stream_car.ports import Emission, Hop
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import HasTouchedKeys, Shard
from stream_car.processing.two_hop import FrontierFold, IntakeFold
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import ImmediateRetries, ReadOptions
from stream_car.queries.shards import ManyShards
from tests.golden import documents
from tests.golden.stored import RELEASES, RecordedLog, hashes, records, values
from tests.support.plain_index import PlainIndex
from tests.support.servers import in_one_worker
from tests.support.two_hop_folds import SIGNATURES

pytestmark = [in_one_worker(__name__), pytest.mark.parametrize("release", RELEASES)]

HOPS: tuple[Hop, ...] = ("intake", "frontier")
RENAMED = {"active": "in_force", "void": "superseded"}  # what older releases called a status
TOPICS: dict[Hop, str] = {"intake": "documents", "frontier": "placements"}


class NoSink:
    """Implements `ports.EventSink`, and expects no event: everything has been published."""

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        raise AssertionError("an event was published again")

    async def last(self, shard: int) -> int:
        return 0


@asynccontextmanager
async def restore(url: str, release: str) -> AsyncIterator[dict[Hop, RedisStore]]:
    """Write what Redis had, under the same keys because checksums cover them; yield the stores of both hops."""
    client = await connect(RedisServer(url=url))
    stored = hashes(release)
    try:
        for _, _, key, pairs in stored:
            values = [b64decode(part) for pair in pairs for part in pair]
            await client.execute_command("HSET", b64decode(key), *values)
        names = {hop: b64decode(key).decode().strip("{}").rpartition(":")[0] for hop, _, key, _ in stored}
        yield {hop: RedisStore(client, names[hop]) for hop in HOPS}
    finally:
        await client.execute_command("UNLINK", *(b64decode(key) for _, _, key, _ in stored))
        await client.aclose()


async def test_shards_and_queries_continue_with_the_state_in_redis(release: str, redis: str) -> None:
    expected = values(release, "servers")
    intakes, frontiers = cast(list[int], expected["partitions"])
    partitions = Partitions(intakes=intakes, frontiers=frontiers)
    ruleset = documents.ruleset()
    async with restore(redis, release) as stores:
        logs = {hop: RecordedLog(records(release, topic)) for hop, topic in TOPICS.items()}
        intake = [IntakeFold(ruleset, partitions, shard=q, signatures=SIGNATURES) for q in range(intakes)]
        frontier = [FrontierFold(ruleset, partitions, shard=p, signatures=SIGNATURES) for p in range(frontiers)]
        ends = [
            *[await applied_records(logs["intake"], stores["intake"], fold) for fold in intake],
            *[await applied_records(logs["frontier"], stores["frontier"], fold) for fold in frontier],
        ]
        views = RedisViews(intake=stores["intake"], frontier=stores["frontier"])
        queries = Queries(
            shards=ManyShards(views, partitions), index=PlainIndex(), ruleset=ruleset, generation=intake[0].generation
        )
        statuses = cast(dict[str, str], expected["statuses"])
        resolutions = await queries.resolve(list(statuses), options=ReadOptions(retry=ImmediateRetries(3)))

    assert intake[0].generation == expected["generation"]
    assert all(ends)
    assert {resolution.name: resolution.status for resolution in resolutions} == {
        name: RENAMED.get(status, status) for name, status in statuses.items()
    }


async def applied_records(log: RecordedLog, store: RedisStore, fold: IntakeFold | FrontierFold) -> int:
    """Return how many records a shard had applied, after checking that none is left and that it accepts the log."""
    shard: Shard[object, HasTouchedKeys] = Shard(shard=fold.shard, log=log, store=store, event_sink=NoSink(), fold=fold)  # type: ignore[arg-type]  # either fold
    await shard.start()
    assert await shard.lag() == 0
    assert await shard.run_once() == []
    return shard.next_offset
