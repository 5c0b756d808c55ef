"""Compares the state of both hops with the topics, and with what the state was before.

Promise: after `look`, `lost` names every shard whose next record Kafka has deleted, so that its state can never be
complete again; `fallen_back`, every shard that has applied less than it had; `lagging`, every other shard that has not
applied what the topics had when this process began. Cost: one read of all heads per look, and the ranges of two topics
every `RANGES_S`.
"""

import asyncio
from collections.abc import Mapping

from stream_car.ports import Hop, Log, ShardId
from stream_car.processing.headers import FrontierHeader
from stream_car.processing.state import decode_value
from stream_car.processing.two_hop import FRONTIER
from stream_car.queries.shards import ManyShards

LOOK_S = 1.0
RANGES_S = 5.0


class StateCheck:
    """What is known of the shards since the last look."""

    def __init__(self, shards: ManyShards, logs: Mapping[Hop, Log]) -> None:
        partitions = shards.partitions
        self.lost: frozenset[ShardId] = frozenset()
        self.fallen_back: frozenset[ShardId] = frozenset()
        self.lagging: frozenset[ShardId] = frozenset()
        self._shards = shards
        self._logs = logs
        self._ids = [ShardId("intake", shard) for shard in range(partitions.intakes)]
        self._ids += [ShardId("frontier", shard) for shard in range(partitions.frontiers)]
        self._firsts: dict[ShardId, int] = {}
        self._target = [0] * partitions.intakes
        self._next_ranges_at = 0.0

    async def begin(self) -> None:
        """Look for the first time, and note where the topics end. Answers must have seen all input before that."""
        ranges = [await self._logs["intake"].range(shard) for shard in range(len(self._target))]
        self._target = [end for _, end in ranges]
        await self.look()
        lost = {shard.shard for shard in self.lost if shard.hop == "intake"}
        self._shards.require({shard: end for shard, end in enumerate(self._target) if shard not in lost})

    async def look(self) -> None:
        """Compare. Raises `Unavailable`."""
        now = asyncio.get_running_loop().time()
        if now >= self._next_ranges_at:
            ranges = await asyncio.gather(*(self._logs[hop].range(shard) for hop, shard in self._ids))
            self._firsts = {shard_id: first for shard_id, (first, _) in zip(self._ids, ranges, strict=True)}
            self._next_ranges_at = now + RANGES_S
        replies = await self._shards.views.peek({shard_id: [FRONTIER] for shard_id in self._ids})
        lost, fallen_back, lagging = set[ShardId](), set[ShardId](), set[ShardId]()
        for shard_id, (next_offset, values) in replies.items():
            applied, target = [next_offset], self._target[shard_id.shard : shard_id.shard + 1]
            if shard_id.hop == "frontier":
                header = decode_value(FRONTIER, values.get(FRONTIER))
                target = self._target
                applied = header.watermarks if isinstance(header, FrontierHeader) else [0] * len(target)
            if next_offset < self._firsts[shard_id]:
                lost.add(shard_id)
            if self._shards.has_fallen_back(shard_id, applied):
                fallen_back.add(shard_id)
            elif any(map(int.__lt__, applied, target)):
                lagging.add(shard_id)
        self.lost, self.fallen_back, self.lagging = frozenset(lost), frozenset(fallen_back), frozenset(lagging)
