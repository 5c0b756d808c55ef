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
        """For each shard its next offset and the values of its keys, all of one shard as of one moment."""
        few = {place: tuple(dict.fromkeys(keys)) for place, keys in wanted.items() if len(keys) <= READ_MAX}
        questions = [self._stores[hop].question(shard, keys) for (hop, shard), keys in few.items()]
        told = await self._calls.read_all(questions)
        found = {
            place: self._stores[place.hop].answer(place.shard, keys, values)
            for (place, keys), values in zip(few.items(), told, strict=True)
        }
        for place, keys in wanted.items():
            if place not in found:  # more than one command takes
                found[place] = await self._stores[place.hop].peek(place.shard, keys)
        return found
