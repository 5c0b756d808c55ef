"""The changes of all frontier shards, as a query worker reads them for its subscribers.

Promise: every change once, each shard's in order, however often it was published. The newest are in memory for all; a
subscriber that is further back reads the topic, and delays no other. A cursor of one query worker is good at every
other of the same generation. While a server is away, subscribers wait. Cost: one connection; 1,000 changes per shard in
memory.
"""

import asyncio
from collections.abc import Sequence

from stream_car.adapters.kafka.journal import STALE_MAX, KafkaJournal
from stream_car.adapters.kafka.tail import KafkaTail
from stream_car.cluster.connections import Connections
from stream_car.cluster.shared_log import SharedLog
from stream_car.errors import Unavailable
from stream_car.ports import Emission, Record
from stream_car.processing.fold import CHANGES
from stream_car.subscriptions.broadcast import Broadcast
from stream_car.subscriptions.events import Notice, Selection
from stream_car.subscriptions.subscription import Numbers, SubscriptionReader, SubscriptionSources

RECENT_MAX = 1000
RETRY_S = 0.5
ARRIVE_S = 2.0  # how long to wait for changes up to a cursor that another process gave
LOOK_S = 10.0  # between looks at what retention has deleted


class ChangeTail:
    """Implements `ports.ChangeLogReader`. `run` it beside the readers; it notifies `broadcast` of new changes."""

    def __init__(self, connections: Connections, log: SharedLog, broadcast: Broadcast) -> None:
        self.shards = range(connections.partitions.frontiers)
        self.is_open = False
        self._kafka = connections.plan.kafka
        self._log = log
        self._change_log = KafkaJournal({CHANGES: log}, connections.generation, connections.signatures)
        self._broadcast = broadcast
        self._last = [0 for _ in self.shards]
        self._recent: list[list[Emission]] = [[] for _ in self.shards]
        self._deleted = [0 for _ in self.shards]
        self._looked_at = [0.0 for _ in self.shards]

    async def run(self) -> None:
        """Follow the topic until cancelled."""
        while True:
            try:
                await self._follow()
            except Unavailable:
                await asyncio.sleep(RETRY_S)

    async def _follow(self) -> None:
        """Follow from a little before the end; return if a number is missing, to begin again."""
        ranges = await asyncio.gather(*(self._log.range(shard) for shard in self.shards))
        starts = [max(first, end - STALE_MAX) for first, end in ranges]
        lagging = {shard: end for shard, (_, end) in enumerate(ranges) if starts[shard] < end}
        tail = await KafkaTail.open(self._kafka, self._log.topic, starts)
        try:
            while lagging:
                for shard, records in (await tail.next()).items():
                    self._begin(shard, records)
                    if records[-1].offset + 1 >= lagging.get(shard, 0):
                        lagging.pop(shard, None)
            self.is_open = True
            self._broadcast.notify()
            while all(self._take(shard, records) for shard, records in (await tail.next()).items()):
                pass
        finally:
            await tail.close()

    def _begin(self, shard: int, records: Sequence[Record]) -> None:
        """Keep records as long as their numbers are consecutive; what came before is read from the topic."""
        for record in records:
            if not self._take(shard, [record]):
                emission = self._change_log.event(shard, CHANGES, record)
                assert emission is not None
                self._recent[shard], self._last[shard] = [emission], emission.oseq

    def _take(self, shard: int, records: Sequence[Record]) -> bool:
        """Keep what is new; whether nothing is missing before it."""
        recent, before = self._recent[shard], self._last[shard]
        for record in records:
            emission = self._change_log.event(shard, CHANGES, record)
            if emission is None or emission.oseq <= self._last[shard]:
                continue
            if emission.oseq != self._last[shard] + 1:
                return False
            recent.append(emission)
            self._last[shard] = emission.oseq
        if len(recent) > 2 * RECENT_MAX:
            del recent[:-RECENT_MAX]
        if self._last[shard] > before:
            self._broadcast.notify()
        return True

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        """Return kept changes with `oseq > after`, oldest first, up to `last`.

        If some are gone, `deleted_up_to` says so from then on.
        """
        recent = self._recent[shard]
        if key is None and recent and recent[0].oseq <= after + 1:
            start = after + 1 - recent[0].oseq
            return recent[start : start + limit]
        if key is None and after >= self._last[shard]:
            return ()
        emissions = await self._change_log.read(shard, stream, after=after, limit=limit, key=key)
        known = [emission for emission in emissions if emission.oseq <= self._last[shard]]
        if key is None and not (known and known[0].oseq == after + 1):
            known = known or recent[:limit]  # the topic has lost them, and all before them
            self._deleted[shard] = max(self._deleted[shard], known[0].oseq - 1)
        return known

    async def last(self, shard: int) -> int:
        """The highest number received."""
        return self._last[shard]

    async def deleted_up_to(self, shard: int) -> int:
        now = asyncio.get_running_loop().time()
        if now - self._looked_at[shard] > LOOK_S:
            self._looked_at[shard] = now
            last = self._last[shard]
            deleted = min(last, await self._change_log.deleted_up_to(shard))
            self._deleted[shard] = max(self._deleted[shard], deleted)
        return self._deleted[shard]

    async def has_reached(self, numbers: Numbers) -> bool:
        """Whether these changes exist; what another process has received arrives here a moment later."""
        deadline = asyncio.get_running_loop().time() + ARRIVE_S
        while any(self._last[shard] < number for shard, number in enumerate(numbers)):
            signal = self._broadcast.listen()
            remaining = deadline - asyncio.get_running_loop().time()
            if remaining <= 0:
                return False
            await self._broadcast.wait(signal, remaining)
        return True


class ClusterChangeFeed:
    """Implements `hub.ChangeSource`."""

    marks = None  # topics have no chain of hashes

    def __init__(self, sources: SubscriptionSources, tail: ChangeTail) -> None:
        self._sources = sources
        self._tail = tail

    @property
    def generation(self) -> str:
        """The generation of rules and partitions; it does not change while a process runs."""
        return self._sources.generation

    async def last(self) -> Numbers:
        return tuple([await self._tail.last(shard) for shard in self._tail.shards])

    async def deleted_up_to(self) -> Numbers:
        return tuple([await self._tail.deleted_up_to(shard) for shard in self._tail.shards])

    async def has_reached(self, numbers: Numbers) -> bool:
        return await self._tail.has_reached(numbers)

    def subscription(self, selection: Selection, *, cursor: Sequence[int], with_snapshot: bool) -> SubscriptionReader:
        return SubscriptionReader(self._sources, selection, cursor=cursor, with_snapshot=with_snapshot)

    async def pull(self, reader: SubscriptionReader) -> tuple[list[Notice], bool]:
        """As in `hub.ChangeSource`; nothing while a server is away."""
        try:
            return await reader.step(), await reader.has_caught_up()
        except Unavailable:
            return [], False
