"""The text index of a query worker, kept up to date with the documents that intake shards have accepted.

Promise: what is in the index is what intake decided: a record is indexed once its shard has applied it, and only if it
is the current one of its id. State that was lost is waited for, and no record is passed over meanwhile. A stored index
is continued; one that belongs to another generation, or is ahead of the topic, is built again. Whenever nothing is left
to index, the number of documents is compared with the state. If they differ, and every `PASS_S` in any case,
`IndexProof` compares every document. State that was built with other rules is `Halted` (`generation`).
Cost: about 40 us per document, and one read of the heads of all intake shards every `LOOK_S`.
"""

import asyncio
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.cluster.index_proof import IndexProof
from stream_car.core.documents import Document, Statement
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import amended_scope, link_scope
from stream_car.core.stored import StoredDocument
from stream_car.core.timeline import scope_key
from stream_car.errors import Halted
from stream_car.ports import Log, Record, ShardId, SnapshotReader
from stream_car.processing.headers import Header
from stream_car.processing.index_feed import IndexBatch
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import GENERATION
from stream_car.processing.signatures import Signatures
from stream_car.processing.state import HEADER, decode_value
from stream_car.processing.two_hop import IntakeFold
from stream_car.queries.shards import ShardMoved
from stream_car.subscriptions.broadcast import Broadcast

LOOK_S = 0.03
BATCH_MAX = 500
SETTLE_S = 1.0
PASS_S = 600.0  # between passes of the proof
PAGE = 100  # ids that one round of a pass compares, so that new documents need not wait
URGENT_PAGE = 500  # the same while the index is known to differ, and nothing is answered
LOST = "An intake shard has lost its state and is being rebuilt. Try again later."


class Heads(NamedTuple):
    """How many records each intake shard has applied, and how many documents all of them have as of then."""

    applied: list[int]
    documents: int


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
        signatures: Signatures,
    ) -> None:
        self.indexed = [0] * partitions.intakes  # records of each partition that the index has
        self.target = [0] * partitions.intakes  # records that it must have before anything is answered
        self.lost: Set[int] = frozenset()  # intake shards whose state can never be complete again
        self.applied_before = [0] * partitions.intakes  # records that intake had applied when it was last asked
        self.is_ahead = False  # of shards that have lost their state and are being rebuilt
        self.is_proven = False  # whether the index has every document of the state, as far as is known
        self.has_lost_history = False  # whether Kafka has deleted records of documents that the index lacks
        self.broadcast = Broadcast()
        self._index = index
        self._keys = keys
        self._snapshots = snapshots
        self._documents = documents
        self._ruleset = ruleset
        self._folds = [
            IntakeFold(ruleset, partitions, shard=shard, signatures=signatures) for shard in range(partitions.intakes)
        ]
        self._shards = [ShardId("intake", shard) for shard in range(partitions.intakes)]
        self._proof = IndexProof(index, keys, snapshots, documents, self._folds, ruleset, partitions)
        self._is_after_pass = self._was_built_again = False
        self._next_pass_at = 0.0
        self._missing = 0  # documents that cannot be indexed any more
        self._has_skipped = False  # whether records were passed over, and documents were not counted since
        self._is_wanted = asyncio.Event()
        self._rounds_begun = self._rounds_ended = 0

    async def begin(self) -> None:
        """Continue with the stored index, or begin from nothing. Raises `Halted` (`generation`)."""
        await self._heads()
        self.target = [(await self._documents.range(partition))[1] for partition in range(len(self.indexed))]
        total = await self._index.position()
        indexed = self._keys.positions_at(total) if total else None
        if indexed is None or len(indexed) != len(self.indexed) or any(map(int.__gt__, indexed, self.target)):
            self._reset()
        else:
            self.indexed = indexed

    @property
    def has_caught_up(self) -> bool:
        """Whether the index has what the topic had at the beginning, and whatever it had before it was built again."""
        return not any(
            self.indexed[partition] < target
            for partition, target in enumerate(self.target)
            if partition not in self.lost
        )

    @property
    def repaired(self) -> int:
        """How many documents the proof had to repair since the process began."""
        return self._proof.repaired

    def _reset(self) -> None:
        """Begin from nothing: what is then indexed is complete."""
        self.target = list(map(max, self.target, self.indexed))
        self._index.reset()
        self._keys.reset()
        self.indexed = [0] * len(self.indexed)
        self.is_proven = True
        self._next_pass_at = asyncio.get_running_loop().time() + PASS_S

    async def _heads(self) -> Heads:
        """Read how far the intake shards are. Raises `Halted` (`generation`) if one was built with other rules."""
        snapshot = await self._snapshots.peek({shard: [GENERATION, HEADER] for shard in self._shards})
        documents = 0
        for fold, shard in zip(self._folds, self._shards, strict=True):
            _, values = snapshot[shard]
            known = values.get(GENERATION)
            if known is not None and known != fold.generation.encode():
                raise Halted(
                    "generation",
                    f"The state in Redis was built with other rules or for other partitions ({known.decode()}, not "
                    f"{fold.generation}); give this process the --rules, --prefix and --namespace of the workers.",
                )
            header = decode_value(HEADER, values.get(HEADER))
            documents += header.documents if isinstance(header, Header) else 0
        self.applied_before = [snapshot[shard][0] for shard in self._shards]
        return Heads(self.applied_before, documents)

    @property
    def lag(self) -> int:
        """The number of applied records that the index does not have."""
        return sum(max(up_to - indexed, 0) for up_to, indexed in zip(self.applied_before, self.indexed, strict=True))

    async def catch_up(self) -> bool:
        """Index what was applied until now; whether there was anything. Raises `ShardMoved` if state was lost."""
        heads = await self._heads()
        lagging = [partition for partition, up_to in enumerate(heads.applied) if self.indexed[partition] < up_to]
        for partition in lagging:
            while self.indexed[partition] < heads.applied[partition]:
                records = await self._fetch(partition, heads.applied[partition])
                if not records:
                    break
                await self._add(partition, records)
                await asyncio.sleep(0)
        if lagging:
            self.broadcast.notify()
        self.is_ahead = any(
            up_to < self.indexed[partition]
            for partition, up_to in enumerate(heads.applied)
            if partition not in self.lost
        )
        if self.is_ahead:
            raise ShardMoved(LOST)
        if heads.applied == self.indexed and not lagging:
            await self._compare_counts(heads.documents)
        return bool(lagging)

    async def _fetch(self, partition: int, up_to: int) -> Sequence[Record]:
        """Return the next records of a partition. What Kafka has deleted is passed over, and the proof is due."""
        begin = self.indexed[partition]
        try:
            return await self._documents.fetch(partition, begin, min(BATCH_MAX, up_to - begin))
        except Halted as halted:
            if halted.code != "lost_history":
                raise
        first, _ = await self._documents.range(partition)
        self._has_skipped, self.is_proven = True, False
        await self._move(partition, min(first, up_to), [], IndexBatch(self._ruleset))
        return ()

    async def _compare_counts(self, documents: int) -> None:
        """Compare the number of documents with the state's, as of the same records.

        A pass of the proof follows a difference. If one is left after it, there are documents of which the index does
        not even have the id: it is built again, or Kafka has deleted their records.
        """
        missing = documents - self._index.document_count
        if missing == self._missing:
            self.is_proven, self._has_skipped = True, False
        elif not self._is_after_pass:
            self.is_proven = False
        elif any([(await self._documents.range(partition))[0] for partition in range(len(self.indexed))]):
            self._missing, self._has_skipped = missing, False
        elif self._was_built_again:
            counts = f"{self._index.document_count} documents, and the state has {documents}"
            raise Halted("bug", f"The text index was built again and has {counts}. Please report this.")
        else:
            self._was_built_again = True
            self._reset()
        self._is_after_pass = False
        self._note_lost_history()

    def _note_lost_history(self) -> None:
        """Note whether documents are lost. As long as those of deleted records are not counted, they are."""
        self.has_lost_history = bool(self._missing or self._proof.lost or self._has_skipped)

    async def _prove(self) -> None:
        """Compare a page of documents with the state if a pass is due. Raises `ShardMoved` if state was lost."""
        now = asyncio.get_running_loop().time()
        if not self.has_caught_up or (self.is_proven and now < self._next_pass_at):
            return
        if await self._proof.next_page(self.indexed, self.lost, PAGE if self.is_proven else URGENT_PAGE):
            return
        self._next_pass_at = now + PASS_S
        self._is_after_pass = True
        heads = await self._heads()
        if heads.applied == self.indexed:
            await self._compare_counts(heads.documents)
        else:
            self.is_proven = True
            self._note_lost_history()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._is_wanted.clear()
            self._rounds_begun += 1
            try:
                await self.catch_up()
                self._rounds_ended = self._rounds_begun
                await self._prove()
            except ShardMoved:
                pass  # those who wait in `settle` wait on
            self.broadcast.notify()
            try:
                async with asyncio.timeout(LOOK_S if self.is_proven or self.is_ahead else 0):
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
        next_offset, values = (await self._snapshots.peek({shard: [document_key(name) for name in names]}))[shard]
        if next_offset <= records[-1].offset:  # the shard has fallen back since its head was read
            raise ShardMoved(LOST)
        batch = IndexBatch(self._ruleset)
        for content in decoded:
            if content.statement is not None:
                key = document_key(content.statement.id)
                stored = decode_value(key, values.get(key))
                batch.add_stored(content, stored if isinstance(stored, StoredDocument) else None)
        links = {link for statement in statements for link in _links(statement)}
        keys = [*map(document_key, names), *map(scope_key, batch.scopes | links)]
        await self._move(partition, records[-1].offset + 1, keys, batch)

    async def _move(self, partition: int, up_to: int, keys: Sequence[bytes], batch: IndexBatch) -> None:
        """Index a batch. Then the index has the records of this partition up to an offset."""
        indexed = [*self.indexed[:partition], up_to, *self.indexed[partition + 1 :]]
        self._keys.add(keys, indexed)  # first: the index must never be ahead of it
        await self._index.apply(batch.documents, batch.removed, sum(indexed), batch.scopes)
        self.indexed = indexed


def _links(statement: Statement) -> list[str]:
    """The scopes of links that a statement may join: those of documents that it supersedes or amends by name."""
    if not isinstance(statement, Document):
        return []
    superseded = (*statement.supersedes, *((statement.id,) if statement.superseded_by else ()))
    return [*map(link_scope, superseded), *map(amended_scope, statement.amends)]
