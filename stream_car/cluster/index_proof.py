"""Proves that a text index has what the state has, and repairs it where it does not.

Promise: after a pass over all ids, the index has every document of the state at its current revision with its content,
and no other, as of the records that were indexed. A difference is repaired from the record in Kafka. What cannot be
repaired because Kafka has deleted the record is counted in `lost`. Between passes the number of documents is compared.
Cost: about 25 us of computing per document and one read of the state per page.
"""

import logging
from collections.abc import Mapping, Sequence, Set

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.stored import StoredDocument
from stream_car.errors import Halted
from stream_car.ports import Log, Record, ShardId, SnapshotReader
from stream_car.processing.effects import DecodedRecord
from stream_car.processing.fold import TICK
from stream_car.processing.index_feed import IndexBatch, is_indexed
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import decode_value
from stream_car.processing.two_hop import IntakeFold
from stream_car.queries.shards import ShardMoved

_log = logging.getLogger(__name__)
FIRST_KEY, LAST_KEY = document_key(""), b"d;"  # all keys of documents lie between them


class IndexProof:
    """Compares an index with the state, a page of ids at a time. Nothing else may change the index meanwhile."""

    def __init__(
        self,
        index: TantivyIndex,
        keys: SqliteKeys,
        snapshots: SnapshotReader,
        documents: Log,
        folds: Sequence[IntakeFold],
        ruleset: Ruleset,
        partitions: Partitions,
    ) -> None:
        self.repaired = 0  # documents, since the process began
        self.lost = 0  # documents that the last pass could not repair
        self._index = index
        self._keys = keys
        self._snapshots = snapshots
        self._documents = documents
        self._folds = folds
        self._ruleset = ruleset
        self._partitions = partitions
        self.begin()

    def begin(self) -> None:
        """Begin a pass."""
        self._after = FIRST_KEY
        self._lost = 0

    async def next_page(self, indexed: Sequence[int], lost: Set[int], limit: int) -> bool:
        """Compare the next ids, and return whether there are more. `indexed` are the records that the index has.

        Ids of the intake shards that are `lost` are not compared: the index knows more than their state.

        Raises `ShardMoved` if the state has lost records that the index has; the pass continues with the next call.
        """
        keys = await self._keys.keys(self._after, LAST_KEY, limit)
        if not keys:
            self.lost = self._lost
            self.begin()
            return False
        names = [key.removeprefix(FIRST_KEY).decode() for key in keys]
        stored = await self._stored([name for name in names if self._partitions.of_id(name) not in lost], indexed)
        documents = await self._index.documents(list(stored))
        different = [name for name, value in stored.items() if not is_indexed(value, documents.get(name))]
        if different:
            await self._repair({name: stored[name] for name in different})
        self._after = keys[-1]
        return True

    async def _stored(self, names: Sequence[str], indexed: Sequence[int]) -> dict[str, StoredDocument | None]:
        """Return what the state has of these ids, without those whose current record is not indexed yet."""
        wanted: dict[ShardId, list[bytes]] = {}
        for name in names:
            wanted.setdefault(ShardId("intake", self._partitions.of_id(name)), []).append(document_key(name))
        stored: dict[str, StoredDocument | None] = {}
        for shard, (next_offset, values) in (await self._snapshots.peek(wanted)).items():
            if next_offset < indexed[shard.shard]:
                raise ShardMoved("An intake shard has lost its state and is being rebuilt. Try again later.")
            for key in wanted[shard]:
                value = decode_value(key, values.get(key))
                current = value if isinstance(value, StoredDocument) else None
                if current is None or current.offset < indexed[shard.shard]:
                    stored[key.removeprefix(FIRST_KEY).decode()] = current
        return stored

    async def _repair(self, stored: Mapping[str, StoredDocument | None]) -> None:
        batch = IndexBatch(self._ruleset)
        removed = [name for name, value in stored.items() if value is None or value.retracted]
        for name, value in stored.items():
            if value is not None and not value.retracted:
                batch.add_stored(await self._decoded(self._partitions.of_id(name), value.offset), value)
        self._lost += len(stored) - len(removed) - len(batch.documents)
        repaired = len(batch.documents) + len(removed)
        _log.warning("The text index differed from the state in %d documents; %d are repaired.", len(stored), repaired)
        self.repaired += repaired
        await self._index.apply(batch.documents, removed, await self._index.position(), batch.scopes)

    async def _decoded(self, partition: int, offset: int) -> DecodedRecord:
        """Return a record of `documents`. If Kafka has deleted it, what is returned has no statement."""
        try:
            [record] = await self._documents.fetch(partition, offset, 1)
        except Halted as halted:
            if halted.code != "lost_history":
                raise
            record = Record(offset=offset, append_time=0, value=None, headers=(TICK,))
        return self._folds[partition].read(record).decoded
