"""What query workers read from Redis: the shards of both hops."""

import asyncio
from collections.abc import Mapping, Sequence

from stream_car.adapters.redis.store import RedisStore
from stream_car.ports import Place


class RedisViews:
    """Implements `ports.Views` over the stores of the hops: all shards are asked at once."""

    def __init__(self, *, intake: RedisStore, frontier: RedisStore) -> None:
        self._stores = {"intake": intake, "frontier": frontier}

    async def peek(self, asked: Mapping[Place, Sequence[bytes]]) -> Mapping[Place, tuple[int, dict[bytes, bytes]]]:
        """For each shard its next offset and the values of its keys, all of one shard as of one moment."""
        told = await asyncio.gather(*(self._stores[place.hop].peek(place.shard, keys) for place, keys in asked.items()))
        return dict(zip(asked, told, strict=True))


__all__ = ["RedisViews"]
