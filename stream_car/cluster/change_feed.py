"""The changes of all frontier shards, as query workers read them for their subscribers.

Promise: every change once, each shard's in order, however often it was published. The newest are in memory
for everybody; who is further behind reads the topic, and holds up nobody who is not. A topic that is away
is waited for. Cost: one connection for what comes; 1,000 changes a shard in memory.
"""

import asyncio
from collections.abc import Sequence

from stream_car.adapters.kafka.journal import STALE_MAX, KafkaJournal
from stream_car.adapters.kafka.tail import KafkaTail
from stream_car.cluster.connections import Works
from stream_car.cluster.shared_log import SharedLog
from stream_car.errors import Unavailable
from stream_car.ports import Emission, Record
from stream_car.processing.fold import CHANGES
from stream_car.subscriptions.broadcast import Broadcast
from stream_car.subscriptions.events import Filter, Notice
from stream_car.subscriptions.subscription import Cursor, Subscription, SubscriptionSources

RECENT_MAX = 1000
AGAIN_S = 0.5
COME_S = 2.0  # how long a cursor that another process gave is waited for
LOOK_S = 10.0  # between looks at what retention has taken


class Changes:
    """Implements `ports.RetainedChangeLog` for readers. `run` it beside them; it notifies `broadcast` of news."""

    def __init__(self, works: Works, log: SharedLog, bell: Broadcast) -> None:
        self.shards = range(works.partitions.frontiers)
        self.is_open = False
        self._works = works
        self._log = log
        self._journal = KafkaJournal({CHANGES: log}, works.generation)
        self._bell = bell
        self._last = [0 for _ in self.shards]
        self._recent: list[list[Emission]] = [[] for _ in self.shards]
        self._forgotten = [0 for _ in self.shards]
        self._looked_at = [0.0 for _ in self.shards]

    async def run(self) -> None:
        """Follow the topic until cancelled."""
        while True:
            try:
                await self._follow()
            except Unavailable:
                await asyncio.sleep(AGAIN_S)

    async def _follow(self) -> None:
        """From a little before the end on; begins anew where a number is missing."""
        ranges = await asyncio.gather(*(self._log.range(shard) for shard in self.shards))
        starts = [max(first, end - STALE_MAX) for first, end in ranges]
        behind = {shard: end for shard, (_, end) in enumerate(ranges) if starts[shard] < end}
        tail = await KafkaTail.open(self._works.plan.kafka, self._log.topic, starts)
        try:
            while behind:
                for shard, records in (await tail.next()).items():
                    self._begin(shard, records)
                    if records[-1].offset + 1 >= behind.get(shard, 0):
                        behind.pop(shard, None)
            self.is_open = True
            self._bell.notify()
            while all(self._take(shard, records) for shard, records in (await tail.next()).items()):
                pass
        finally:
            await tail.close()

    def _begin(self, shard: int, records: Sequence[Record]) -> None:
        """What came before is read from the topic: only where numbers go on are they kept."""
        for record in records:
            if not self._take(shard, [record]):
                event = self._journal.event(shard, CHANGES, record)
                assert event is not None
                self._recent[shard], self._last[shard] = [event], event.oseq

    def _take(self, shard: int, records: Sequence[Record]) -> bool:
        """Keep what is new; whether nothing is missing before it."""
        recent, before = self._recent[shard], self._last[shard]
        for record in records:
            event = self._journal.event(shard, CHANGES, record)
            if event is None or event.oseq <= self._last[shard]:
                continue
            if event.oseq != self._last[shard] + 1:
                return False
            recent.append(event)
            self._last[shard] = event.oseq
        if len(recent) > 2 * RECENT_MAX:
            del recent[:-RECENT_MAX]
        if self._last[shard] > before:
            self._bell.notify()
        return True

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        """Changes with `oseq > after` that are kept, oldest first, none that was not heard of by `last`.

        Where some are gone, `forgotten` says so from then on.
        """
        recent = self._recent[shard]
        if key is None and recent and recent[0].oseq <= after + 1:
            start = after + 1 - recent[0].oseq
            return recent[start : start + limit]
        if key is None and after >= self._last[shard]:
            return ()
        found = await self._journal.read(shard, stream, after=after, limit=limit, key=key)
        known = [event for event in found if event.oseq <= self._last[shard]]
        if key is None and not (known and known[0].oseq == after + 1):
            known = known or recent[:limit]  # the topic has lost them, and all that came before
            self._forgotten[shard] = max(self._forgotten[shard], known[0].oseq - 1)
        return known

    async def last(self, shard: int) -> int:
        """The highest number heard."""
        return self._last[shard]

    async def deleted_up_to(self, shard: int) -> int:
        """Changes up to this number may be gone."""
        now = asyncio.get_running_loop().time()
        if now - self._looked_at[shard] > LOOK_S:
            self._looked_at[shard] = now
            last = self._last[shard]
            gone = min(last, await self._journal.deleted_up_to(shard))
            self._forgotten[shard] = max(self._forgotten[shard], gone)
        return self._forgotten[shard]

    async def has_come_to(self, cursor: Cursor) -> bool:
        """Whether these changes are told; what another process has heard comes here a moment later."""
        deadline = asyncio.get_running_loop().time() + COME_S
        while any(self._last[shard] < number for shard, number in enumerate(cursor)):
            heard = self._bell.listen()
            left = deadline - asyncio.get_running_loop().time()
            if left <= 0:
                return False
            await self._bell.wait(heard, left)
        return True

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Workers do."""
        raise NotImplementedError

    async def delete_up_to(self, shard: int, stream: str, up_to: int, limit: int) -> int:
        """The topic's retention does."""
        raise NotImplementedError


class ManyTellers:
    """Implements `ChangeSource`."""

    def __init__(self, sources: SubscriptionSources, changes: Changes) -> None:
        self._sources = sources
        self._changes = changes

    @property
    def generation(self) -> str:
        """That of the rules and the partitions; it does not change while a process runs."""
        return self._sources.generation

    async def last(self) -> Cursor:
        """For each shard the last change heard."""
        return tuple([await self._changes.last(shard) for shard in self._changes.shards])

    async def deleted_up_to(self) -> Cursor:
        """For each shard: changes up to this number may no longer be kept."""
        return tuple([await self._changes.deleted_up_to(shard) for shard in self._changes.shards])

    async def has_come_to(self, cursor: Cursor) -> bool:
        """Whether these changes are told, here or a moment later."""
        return await self._changes.has_come_to(cursor)

    def subscription(self, selection: Filter, *, cursor: Sequence[int], with_snapshot: bool) -> Subscription:
        """A place in the stream of changes."""
        return Subscription(self._sources, selection, cursor=cursor, with_snapshot=with_snapshot)

    async def pull(self, subscription: Subscription) -> tuple[list[Notice], bool]:
        """The next notices, and whether the subscription has caught up; nothing while a server is away."""
        try:
            return await subscription.step(), await subscription.has_caught_up()
        except Unavailable:
            return [], False
