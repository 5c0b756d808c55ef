"""What follows from the log under one rule set: state, changes and text index, in a folder of their own.

Promise: `step` advances all of it by some records; it can be stopped after any step, and whatever is missing, out of
date, damaged or made otherwise is built from the log. Nothing in the folder is original.
"""

import gc
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import ShardKeys, SqliteStore
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.stored import StoredDocument
from stream_car.core.walk import WalkResult
from stream_car.errors import Halted
from stream_car.local.pinned_state import LocalPinnedState
from stream_car.local.run_sync import run_sync
from stream_car.ports import Encoder
from stream_car.processing.effects import DecodedRecord, Effects, Future
from stream_car.processing.fold import Fold
from stream_car.processing.headers import Header
from stream_car.processing.index_feed import IndexBatch
from stream_car.processing.shard import BATCH_MAX, AppliedRecord, Shard
from stream_car.processing.state import HEADER, Value, decode_value
from stream_car.queries.cache import AnswerCache
from stream_car.queries.queries import Queries
from stream_car.queries.scopes import ScopeQueries
from stream_car.queries.shards import OneShard
from stream_car.ranking.settings import SETTINGS, Settings
from stream_car.subscriptions.lookup_cache import LookupCache
from stream_car.subscriptions.subscription import SubscriptionSources

if TYPE_CHECKING:
    from stream_car.adapters.search.hybrid import HybridIndex

VALUES_MAX = 40_000  # decoded values in memory between batches; a few hundred bytes each
SNAPSHOT_ITEMS = 12  # read at a time: half a millisecond or so
CATCH_UP_MAX = 2000  # records indexed at a time that the state has already applied


class Projection:
    """One generation of everything derived."""

    def __init__(
        self,
        folder: Path,
        log: SqliteLog,
        ruleset: Ruleset,
        future: Future,
        *,
        ranking: Settings = SETTINGS,
        encoder: Encoder | None = None,
        cache_bytes: int = 0,
    ) -> None:
        self.folder = folder
        self.log = log
        self.ruleset = ruleset
        self.fold = Fold(ruleset, future=future)
        self._indexed = -1  # the next record to index; unknown until the index was read
        for path in (folder.parent, folder):  # `parents=True` would not give parents this mode
            path.mkdir(exist_ok=True, mode=0o700)
        self.file = StateFile(folder / "state.sqlite")
        try:
            self.index = _index(folder / "index", ranking, encoder)
        except BaseException:
            self.file.close()
            raise
        self.change_log = SqliteJournal(self.file)
        self.lookups, self.record_lookups = LookupCache(), LookupCache()
        self.store = SqliteStore(self.file, self.change_log)
        self.shard = Shard(
            shard=0, log=log, store=self.store, event_sink=self.change_log, fold=self.fold, cache_max=VALUES_MAX
        )
        self.queries = Queries(
            shards=OneShard(self.store, pin=lambda: LocalPinnedState(self.file, self.store, log, self.fold)),
            index=self.index,
            ruleset=ruleset,
            generation=self.shard.generation,
            cache=AnswerCache(cache_bytes, superseded_bonus=ranking.superseded_bonus) if cache_bytes else None,
            superseded_bonus=ranking.superseded_bonus,
        )
        self.scopes = ScopeQueries(self.queries, change_log=self.change_log, log=log, marks=log)

    @property
    def next_offset(self) -> int:
        """How many records of the log have been applied."""
        return self.shard.next_offset

    @property
    def end(self) -> int:
        """How many records the log has."""
        return run_sync(self.log.range(0))[1]

    def begin(self) -> None:
        """Continue with what is stored, or start from nothing if that is of no use. `step` does the rest."""
        try:
            run_sync(self.shard.start())
        except Halted as halted:
            if halted.code not in ("generation", "damaged", "foreign"):
                raise
            self.reset()
        if not self.next_offset or run_sync(self.index.position()) > self.end:
            self.index.reset()  # made with another state, or another log

    def reset(self) -> None:
        """Remove everything that follows from the log."""
        self.file.reset()
        self.index.reset()
        self.lookups, self.record_lookups = LookupCache(), LookupCache()
        run_sync(self.shard.start())

    def reset_if_damaged(self, halted: Halted) -> None:
        """Begin from nothing if that helps; otherwise raise the error again."""
        if halted.code != "damaged":
            raise halted
        self.log.verify()  # nothing is removed for a log that could not replace it
        self.reset()

    def step(self, limit: int = BATCH_MAX) -> list[AppliedRecord[DecodedRecord, Effects]]:
        """Apply records that the state lacks and index them. An empty list means the end of the log.

        Raises:
            Halted: as `Shard.run_once` does.
        """
        was_enabled = gc.isenabled()
        gc.disable()  # until the batch is done: nearly all that the collector would look at meanwhile stays in use
        try:
            return run_sync(self._step(limit))
        finally:
            if was_enabled:
                gc.enable()

    async def _step(self, limit: int) -> list[AppliedRecord[DecodedRecord, Effects]]:
        applied = await self.shard.run_once(limit)
        first = applied[0].record.offset if applied else self.next_offset
        if self._indexed != first:  # a step failed after its commit, or this is the first one
            await self._catch_up_index(first)
        if applied:
            if self.queries.cache is not None:
                for record in applied:
                    self.queries.cache.invalidate(record.record.offset, record.effects.touched)
            batch = IndexBatch(self.ruleset)
            batch.add_applied(applied)
            await self._index(batch, applied[-1].record.offset + 1)
        return applied

    async def _catch_up_index(self, up_to: int) -> None:
        """Index records that the state has already applied."""
        position = await self.index.position()
        while position < up_to:
            records = await self.log.fetch(0, position, min(CATCH_UP_MAX, up_to - position))
            batch = IndexBatch(self.ruleset)
            for record in records:
                decoded = self.fold.read(record)
                if decoded.statement is not None:
                    batch.add_stored(decoded, self.stored(decoded.statement.id))
            position = records[-1].offset + 1
            await self._index(batch, position)

    async def _index(self, batch: IndexBatch, position: int) -> None:
        self._indexed = -1
        await self.index.apply(batch.documents, batch.removed, position, batch.scopes)
        self._indexed = position

    def stored(self, name: str) -> StoredDocument | None:
        """What is known of an id: its current revision, and whether it is retracted or pending."""
        value = self.value(document_key(name))
        return value if isinstance(value, StoredDocument) else None

    def header(self) -> Header:
        """The counts of the state: documents, pending ones, outcomes."""
        value = self.value(HEADER)
        return value if isinstance(value, Header) else Header()

    def value(self, key: bytes) -> Value:
        """One value of the state."""
        _, values = run_sync(self.store.peek(0, [key]))
        return decode_value(key, values.get(key))

    def sources(self) -> SubscriptionSources:
        """What a subscription reads."""
        return SubscriptionSources(
            shards=OneShard(self.store),
            listing=ShardKeys(self.store),
            change_log=self.change_log,
            index=self.index,
            ruleset=self.ruleset,
            generation=self.shard.generation,
            marks=self.log,
            lookups=self.lookups,
            record_lookups=self.record_lookups,
            items_per_step=SNAPSHOT_ITEMS,
        )

    def names(self) -> Iterator[str]:
        """Every id that the state knows, retracted and pending ones too, in order of their bytes."""
        prefix = document_key("")
        for key in self.store.keys(0, prefix):
            yield key[len(prefix) :].decode()

    async def walks(self, names: Sequence[str]) -> list[WalkResult | None]:
        """Stage 2 from each of these, as of one moment."""
        return await self.queries.snapshot().walk(names, named_max=0)

    def close(self) -> None:
        """Close the files; closing again is harmless."""
        try:
            self.index.close()
        finally:
            self.file.close()

    def remove(self) -> None:
        """Close the files and delete them."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _index(folder: Path, ranking: Settings, encoder: Encoder | None) -> "TantivyIndex | HybridIndex":
    """The text index, with vectors beside it if there is an encoder; only then are its libraries needed."""
    texts = TantivyIndex(folder, settings=ranking)
    if encoder is None:
        return texts
    from stream_car.adapters.search.hybrid import HybridIndex
    from stream_car.adapters.search.vectors import Vectors

    try:
        return HybridIndex(texts, Vectors(folder / "vectors.sqlite", encoder), settings=ranking)
    except BaseException:
        texts.close()
        raise
