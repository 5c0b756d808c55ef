"""The text index of a query worker, kept up to date with the documents that intake shards have accepted.

Promise: what is in the index is what intake decided: a record is indexed once its shard has applied it, and only if it
is the current one of its id. A stored index is continued; one that belongs to another generation, or is ahead of the
topic, is built again. State that was built with other rules is `Halted` (`generation`). Cost: about 40 us per document,
and one read of the heads of all intake shards every `LOOK_S`.
"""

import asyncio
from collections.abc import Mapping, Sequence

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.core.documents import Document, Statement
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import amended_scope, link_scope
from stream_car.core.stored import StoredDocument
from stream_car.core.timeline import scope_key
from stream_car.errors import Halted
from stream_car.ports import Log, Record, ShardId, SnapshotReader
from stream_car.processing.index_feed import IndexBatch
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import GENERATION
from stream_car.processing.state import decode_value
from stream_car.processing.two_hop import IntakeFold
from stream_car.queries.shards import ShardMoved
from stream_car.subscriptions.broadcast import Broadcast

LOOK_S = 0.03
BATCH_MAX = 500
SETTLE_S = 1.0


class Indexer:
    """Keeps one index, and the list of all keys, a short distance after the intake shards."""

    def __init__(
        self,
        index: TantivyIndex,
        keys: SqliteKeys,
        snapshots: SnapshotReader,
        documents: Log,
        ruleset: Ruleset,
        partitions: Partitions,
    ) -> None:
        self.indexed = [0] * partitions.intakes  # records of each partition that the index has
        self.is_ahead = False  # of shards that have lost their state and are being rebuilt
        self.broadcast = Broadcast()
        self._index = index
        self._keys = keys
        self._snapshots = snapshots
        self._documents = documents
        self._anchor_types = ruleset.anchor_types()
        self._folds = [IntakeFold(ruleset, partitions, shard=shard) for shard in range(partitions.intakes)]
        self._shards = [ShardId("intake", shard) for shard in range(partitions.intakes)]
        self._is_wanted = asyncio.Event()
        self._rounds_begun = self._rounds_ended = 0

    async def begin(self) -> None:
        """Continue with the stored index, or begin from nothing. Raises `Halted` (`generation`)."""
        await self.applied()
        total = await self._index.position()
        indexed = self._keys.positions_at(total) if total else None
        if indexed is not None and len(indexed) == len(self.indexed) and not await self._is_beyond_the_log(indexed):
            self.indexed = indexed
            return
        self._index.reset()
        self._keys.reset()

    async def _is_beyond_the_log(self, indexed: Sequence[int]) -> bool:
        ends = [(await self._documents.range(partition))[1] for partition in range(len(indexed))]
        return any(map(int.__gt__, indexed, ends))

    async def applied(self) -> list[int]:
        """Return how many records each intake shard has applied. Raises `Halted` if one was built with other rules."""
        snapshot = await self._snapshots.peek({shard: [GENERATION] for shard in self._shards})
        for fold, shard in zip(self._folds, self._shards, strict=True):
            known = snapshot[shard][1].get(GENERATION)
            if known is not None and known != fold.generation.encode():
                raise Halted(
                    "generation",
                    f"The state in Redis was built with other rules or for other partitions ({known.decode()}, not "
                    f"{fold.generation}); give this process the --rules, --prefix and --namespace of the workers.",
                )
        return [snapshot[shard][0] for shard in self._shards]

    async def catch_up(self) -> bool:
        """Index what was applied until now; whether there was anything. Raises `ShardMoved` if state was lost."""
        applied = await self.applied()
        lagging = [partition for partition, up_to in enumerate(applied) if self.indexed[partition] < up_to]
        for partition in lagging:
            while self.indexed[partition] < applied[partition]:
                limit = min(BATCH_MAX, applied[partition] - self.indexed[partition])
                records = await self._documents.fetch(partition, self.indexed[partition], limit)
                if not records:
                    break
                await self._add(partition, records)
                await asyncio.sleep(0)
        if lagging:
            self.broadcast.notify()
        self.is_ahead = any(map(int.__lt__, applied, self.indexed))
        if self.is_ahead:
            raise ShardMoved("An intake shard has lost its state and is being rebuilt; try again later.")
        return bool(lagging)

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._is_wanted.clear()
            self._rounds_begun += 1
            try:
                await self.catch_up()
                self._rounds_ended = self._rounds_begun
            except ShardMoved:
                pass  # those who wait in `settle` wait on
            self.broadcast.notify()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._is_wanted.wait()
            except TimeoutError:
                continue

    async def settle(self) -> None:
        """Return when the index has what had been applied by now. Raises `ShardMoved` if that takes long."""
        wanted = self._rounds_begun + 1
        deadline = asyncio.get_running_loop().time() + SETTLE_S
        while self._rounds_ended < wanted:
            signal = self.broadcast.listen()
            self._is_wanted.set()
            remaining = deadline - asyncio.get_running_loop().time()
            if remaining <= 0:
                raise ShardMoved("The index lags; try again.")
            await self.broadcast.wait(signal, remaining)

    async def wait_for(self, up_to: Mapping[int, int], deadline: float) -> bool:
        """Wait until these records are indexed, by partition, and return whether they were so before `deadline`."""
        while True:
            signal = self.broadcast.listen()
            if all(self.indexed[partition] > offset for partition, offset in up_to.items()):
                return True
            remaining = deadline - asyncio.get_running_loop().time()
            if remaining <= 0:
                return False
            await self.broadcast.wait(signal, remaining)

    async def _add(self, partition: int, records: Sequence[Record]) -> None:
        decoded = [read.decoded for record in records if (read := self._folds[partition].read(record)).is_home]
        statements = [content.statement for content in decoded if content.statement is not None]
        names = list(dict.fromkeys(statement.id for statement in statements))
        shard = self._shards[partition]
        _, values = (await self._snapshots.peek({shard: [document_key(name) for name in names]}))[shard]
        batch = IndexBatch(self._anchor_types)
        for content in decoded:
            if content.statement is not None:
                key = document_key(content.statement.id)
                stored = decode_value(key, values.get(key))
                batch.add_stored(content, stored if isinstance(stored, StoredDocument) else None)
        indexed = [*self.indexed[:partition], records[-1].offset + 1, *self.indexed[partition + 1 :]]
        links = {link for statement in statements for link in _links(statement)}
        keys = [*map(document_key, names), *map(scope_key, batch.scopes | links)]
        self._keys.add(keys, indexed)  # first: the index must never be ahead of it
        await self._index.apply(batch.documents, batch.removed, sum(indexed), batch.scopes)
        self.indexed = indexed


def _links(statement: Statement) -> list[str]:
    """The scopes of links that a statement may join: those of documents that it supersedes or amends by name."""
    if not isinstance(statement, Document):
        return []
    superseded = (*statement.supersedes, *((statement.id,) if statement.superseded_by else ()))
    return [*map(link_scope, superseded), *map(amended_scope, statement.amends)]
