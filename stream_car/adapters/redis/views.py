"""What query workers read from Redis: the shards of both hops."""

from collections.abc import Mapping, Sequence

from stream_car.adapters.redis.store import READ_MAX, RedisStore
from stream_car.ports import Hop, Place


class RedisViews:
    """Implements `ports.Views` over the stores of the hops, which share one client: all shards are asked at once."""

    def __init__(self, *, intake: RedisStore, frontier: RedisStore) -> None:
        self._stores: Mapping[Hop, RedisStore] = {"intake": intake, "frontier": frontier}
        self._calls = intake.calls

    async def peek(self, asked: Mapping[Place, Sequence[bytes]]) -> Mapping[Place, tuple[int, dict[bytes, bytes]]]:
        """For each shard its next offset and the values of its keys, all of one shard as of one moment."""
        few = {place: tuple(dict.fromkeys(keys)) for place, keys in asked.items() if len(keys) <= READ_MAX}
        questions = [self._stores[hop].question(shard, keys) for (hop, shard), keys in few.items()]
        told = await self._calls.read_all(questions)
        found = {
            place: self._stores[place.hop].answer(place.shard, keys, values)
            for (place, keys), values in zip(few.items(), told, strict=True)
        }
        for place, keys in asked.items():
            if place not in found:  # more than one command takes
                found[place] = await self._stores[place.hop].peek(place.shard, keys)
        return found


__all__ = ["RedisViews"]
