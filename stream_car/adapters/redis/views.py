"""What query workers read from Redis: the shards of both hops."""

from collections.abc import Mapping, Sequence

from stream_car.adapters.redis.store import READ_MAX, RedisStore
from stream_car.ports import Hop, ShardId


class RedisViews:
    """Implements `ports.SnapshotReader` over the stores of both hops, all shards in one exchange."""

    def __init__(self, *, intake: RedisStore, frontier: RedisStore) -> None:
        self._stores: Mapping[Hop, RedisStore] = {"intake": intake, "frontier": frontier}
        self._calls = intake.calls

    async def peek(self, wanted: Mapping[ShardId, Sequence[bytes]]) -> Mapping[ShardId, tuple[int, dict[bytes, bytes]]]:
        small = {shard_id: tuple(dict.fromkeys(keys)) for shard_id, keys in wanted.items() if len(keys) <= READ_MAX}
        requests = [self._stores[hop].peek_request(shard, keys) for (hop, shard), keys in small.items()]
        results = await self._calls.read_all(requests)
        views = {
            shard_id: self._stores[shard_id.hop].decode_peek(shard_id.shard, keys, values)
            for (shard_id, keys), values in zip(small.items(), results, strict=True)
        }
        for shard_id, keys in wanted.items():
            if shard_id not in views:  # more keys than one command takes
                views[shard_id] = await self._stores[shard_id.hop].peek(shard_id.shard, keys)
        return views
