"""What queries read, over the stores of both hops."""

from collections.abc import Mapping, Sequence

from stream_car.ports import ShardId, Store


class StoreViews:
    """Implements `ports.SnapshotReader` over the stores of both hops, shards in turn."""

    def __init__(self, *, intake: Store, frontier: Store) -> None:
        self._stores: dict[str, Store] = {"intake": intake, "frontier": frontier}

    async def peek(self, wanted: Mapping[ShardId, Sequence[bytes]]) -> Mapping[ShardId, tuple[int, dict[bytes, bytes]]]:
        return {
            shard_id: await self._stores[shard_id.hop].peek(shard_id.shard, keys) for shard_id, keys in wanted.items()
        }
