"""Watches whether query workers call themselves ready while they are not.

Promise: a process that answers 200 to `/readyz` has state that includes what had been acknowledged when it was started.
"""

import asyncio
from collections import Counter
from collections.abc import Callable

import httpx

from stream_car.errors import StreamCarError, Unavailable
from stream_car.ports import ShardId, SnapshotReader
from stream_car.processing.headers import FrontierHeader
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import decode_value
from stream_car.processing.two_hop import FRONTIER
from tests.chaos.fleet import Member

Ends = tuple[int, ...]


class Readiness:
    """Watches the query workers of one installation.

    `losses` counts the beginnings and ends of faults in which Redis loses state: it is odd while one happens.
    """

    def __init__(self, views: SnapshotReader, partitions: Partitions, losses: Callable[[], int]) -> None:
        self.violations: list[str] = []
        self.answers: Counter[str] = Counter()
        self.targets: dict[int, Ends] = {}  # of each query worker: what was acknowledged when it was started
        self._views = views
        self._losses = losses
        intakes, frontiers = partitions.intakes, partitions.frontiers
        self._shards = [ShardId("intake", shard) for shard in range(intakes)]
        self._shards += [ShardId("frontier", shard) for shard in range(frontiers)]

    async def watch(self, member: Member, pause_s: float) -> None:
        """Ask a query worker whether it is ready until cancelled."""
        async with httpx.AsyncClient(base_url=member.client.url, timeout=10.0, trust_env=False) as http:
            while True:
                await asyncio.sleep(pause_s)
                start, losses, target = member.starts, self._losses(), self.targets.get(member.number, ())
                try:
                    response = await http.get("/readyz")
                except httpx.TransportError:
                    self.answers["none"] += 1
                    continue
                self.answers[str(response.status_code)] += 1
                if response.status_code not in (200, 503):
                    self.violations.append(f"query worker {member.number}: /readyz answers {response.status_code}")
                if response.status_code == 200:
                    behind = await self._behind(target)
                    if behind and self._lost_nothing_since(losses) and member.starts == start:
                        self.violations.append(f"query worker {member.number} is ready, and {behind}, not at {target}")
                    await self._require_status(member, start, losses, target)

    def _lost_nothing_since(self, losses: int) -> bool:
        return self._losses() == losses and losses % 2 == 0

    async def _behind(self, target: Ends) -> str:
        """Return which shard has not applied the target, if one has not."""
        try:
            heads = await self._views.peek({shard: [FRONTIER] for shard in self._shards})
        except StreamCarError:
            return ""
        for shard, (next_offset, values) in heads.items():
            if shard.hop == "intake":
                applied, wanted = [next_offset], target[shard.shard : shard.shard + 1]
            else:
                header = decode_value(FRONTIER, values.get(FRONTIER))
                applied = header.watermarks if isinstance(header, FrontierHeader) else [0] * len(target)
                wanted = target
            if any(map(int.__lt__, applied, wanted)):
                return f"{shard.hop} shard {shard.shard} is at {applied}"
        return ""

    async def _require_status(self, member: Member, start: int, losses: int, target: Ends) -> None:
        try:
            status = await member.client.status()
        except Unavailable:
            return
        if member.starts != start or not self._lost_nothing_since(losses):
            return
        if status.reasons or status.next_offset < sum(target):
            has = f"{status.next_offset} records {status.reasons}"
            self.violations.append(f"query worker {member.number} is ready, and has {has}, not {sum(target)}")
