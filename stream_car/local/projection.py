"""What follows from the log under one rule set: state, changes and text index, in a folder of their own.

Promise: `step` brings all of it on by some records; it can be stopped after any step, and whatever is
missing, behind, damaged or made otherwise is built anew from the log. Nothing in the folder is original.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import ShardKeys, SqliteStore
from stream_car.core.documents import Document
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.stored import StoredDocument
from stream_car.core.walk import WalkResult
from stream_car.errors import Halted
from stream_car.local.prefetch import Ahead, Task, begun
from stream_car.local.run_sync import at_once
from stream_car.ports import Encoder, IndexedDocument, Record
from stream_car.processing.effects import DecodedRecord, Effects, Future
from stream_car.processing.fold import Fold
from stream_car.processing.headers import Header
from stream_car.processing.shard import BATCH_MAX, AppliedRecord, Shard
from stream_car.processing.state import HEADER, Value, decode_value
from stream_car.queries.cache import AnswerCache
from stream_car.queries.queries import Queries
from stream_car.queries.scopes import ScopeQueries
from stream_car.queries.shards import OneShard
from stream_car.ranking.bm25 import DocumentTerms
from stream_car.ranking.settings import SETTINGS, Settings
from stream_car.subscriptions.lookup_cache import LookupCache
from stream_car.subscriptions.subscription import SubscriptionSources

if TYPE_CHECKING:
    from stream_car.adapters.search.hybrid import HybridIndex

ITEMS_AT_ONCE = 12  # of a snapshot: half a millisecond or so
REPLAY_MAX = 2000


class Fed:
    """What goes to the index together: the last word on each id, and every scope that any word gave."""

    def __init__(self) -> None:
        self.postings: dict[str, IndexedDocument | None] = {}
        self.scopes: set[str] = set()


class Built:
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
        self._ranking = ranking
        self._ahead: Ahead | None = None
        self._words: dict[int, DocumentTerms] = {}  # of the records that somebody read ahead, by offset
        self._anchor_types = ruleset.anchor_types()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.file = StateFile(folder / "state.sqlite")
        try:
            self.index = _index(folder / "index", ranking, encoder)
        except BaseException:
            self.file.close()
            raise
        self.journal = SqliteJournal(self.file)
        self.facts = LookupCache()
        self.store = SqliteStore(self.file)
        self.shard = Shard(
            shard=0, log=log, store=self.store, event_sink=self.journal, fold=self.fold, decode=self._read
        )
        self.queries = Queries(
            shards=OneShard(self.store),
            index=self.index,
            ruleset=ruleset,
            generation=self.shard.generation,
            cache=AnswerCache(cache_bytes, superseded_bonus=ranking.superseded_bonus) if cache_bytes else None,
            superseded_bonus=ranking.superseded_bonus,
        )
        self.scopes = ScopeQueries(self.queries, change_log=self.journal, log=log)

    @property
    def next_offset(self) -> int:
        """How many records of the log have been applied."""
        return self.shard.next_offset

    @property
    def end(self) -> int:
        """How many records the log has."""
        return at_once(self.log.range(0))[1]

    def begin(self) -> None:
        """Take up what is there, or begin anew where it was made otherwise or is damaged; `step` does the rest."""
        try:
            at_once(self.shard.start())
        except Halted as halted:
            if halted.code not in ("generation", "damaged", "foreign"):
                raise
            self.reset()
        if not self.next_offset or at_once(self.index.position()) > self.end:
            self.index.reset()  # made with another state, or another log
        self.read_ahead()

    def reset(self) -> None:
        """Forget everything that follows from the log."""
        self.file.reset()
        self.index.reset()
        self.facts = LookupCache()
        at_once(self.shard.start())

    def reset_if_damaged(self, halted: Halted) -> None:
        """Begin anew where that helps; otherwise the error stands."""
        if halted.code != "damaged":
            raise halted
        self.log.verify()  # nothing is given up for a log that could not replace it
        self.reset()
        self.read_ahead()

    def read_ahead(self) -> None:
        """Have a process of its own read the log up to its end, if that is worth it."""
        self.read_alone()
        self._ahead = begun(
            Task(
                log=str(self.log.path),
                first=self.next_offset,
                end=self.end,
                domains=self.ruleset.packs,
                future=self.fold.future,
                settings=self._ranking,
            )
        )

    def read_alone(self) -> None:
        """Have nobody read ahead any more."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()

    def step(self, most: int = BATCH_MAX) -> list[AppliedRecord[DecodedRecord, Effects]]:
        """Apply some of what the log holds beyond the state, and make it findable; nothing at the end of the log."""
        if not self.shard.is_started:
            at_once(self.shard.start())
        self.catch_up_index(self.next_offset)
        handled = at_once(self.shard.run_once(most))
        self._take_in()
        words, self._words = self._words, {}
        fed = Fed()
        for one in handled:
            if self.queries.cache is not None:
                self.queries.cache.invalidate(one.record.offset, one.effects.touched)
            said = one.decoded.statement
            if one.effects.outcome in ("accepted", "pending") and isinstance(said, Document):
                fed.scopes.update(one.decoded.scopes)
                fed.postings[said.id] = self.posting(said, one.decoded.scopes, words.get(one.record.offset))
            elif one.effects.outcome == "retracted" and said is not None:
                fed.postings[said.id] = None
        if handled:
            self._feed(fed, self.next_offset)
        self._take_in()
        return handled

    def catch_up_index(self, upto: int) -> None:
        """Feed the index what it lacks of the records that the state has applied already."""
        at = at_once(self.index.position())
        while at < upto:
            records = at_once(self.log.fetch(0, at, min(REPLAY_MAX, upto - at)))
            fed = Fed()
            for record in records:
                read = self.fold.read(record)
                said = read.statement
                if said is None:
                    continue
                fed.scopes.update(read.scopes)
                held = self.held(said.id)
                if held is not None and held.offset == record.offset:
                    fed.postings[said.id] = self.posting(said, held.scopes) if isinstance(said, Document) else None
            at = records[-1].offset + 1
            self._feed(fed, at)

    def _take_in(self) -> None:
        if self._ahead is not None:
            self._ahead.take_in(self.next_offset)
            if self.next_offset >= self._ahead.end:
                self.read_alone()

    def _read(self, record: Record) -> DecodedRecord:
        known = self._ahead.read(record) if self._ahead is not None else None
        if known is None:
            return self.fold.read(record)
        read, self._words[record.offset] = known
        return read

    def posting(
        self, document: Document, scopes: tuple[str, ...], words: DocumentTerms | None = None
    ) -> IndexedDocument:
        """What the index gets of a document."""
        return IndexedDocument(
            document=document, scopes=scopes, anchor=document.type in self._anchor_types, terms=words
        )

    def _feed(self, fed: Fed, position: int) -> None:
        postings = [posting for posting in fed.postings.values() if posting is not None]
        dropped = [name for name, posting in fed.postings.items() if posting is None]
        at_once(self.index.apply(postings, dropped, position, fed.scopes))

    def held(self, name: str) -> StoredDocument | None:
        """What is known of an id: the revision that stands, whether it is retracted or waits."""
        value = self.value(document_key(name))
        return value if isinstance(value, StoredDocument) else None

    def header(self) -> Header:
        """What the state counts: documents, those that wait, outcomes."""
        value = self.value(HEADER)
        return value if isinstance(value, Header) else Header()

    def value(self, key: bytes) -> Value:
        """One value of the state."""
        _, found = at_once(self.store.peek(0, [key]))
        return decode_value(key, found.get(key))

    def sources(self) -> SubscriptionSources:
        """What a subscription reads."""
        return SubscriptionSources(
            shards=OneShard(self.store),
            listing=ShardKeys(self.store),
            change_log=self.journal,
            index=self.index,
            ruleset=self.ruleset,
            generation=self.shard.generation,
            lookups=self.facts,
            items=ITEMS_AT_ONCE,
        )

    def names(self) -> Iterator[str]:
        """Every id that the state knows, retracted and waiting ones too, in order of their bytes."""
        prefix = document_key("")
        for key in self.store.keys(0, prefix):
            yield key[len(prefix) :].decode()

    async def walks(self, names: Sequence[str]) -> list[WalkResult | None]:
        """Stage 2 from each of these, as of one moment."""
        return await self.queries.reader().walk(names, named_max=0)

    def close(self) -> None:
        """Let the files go; again is harmless."""
        self.read_alone()
        try:
            self.index.close()
        finally:
            self.file.close()

    def remove(self) -> None:
        """Let the files go and delete them."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _index(folder: Path, ranking: Settings, encoder: Encoder | None) -> "TantivyIndex | HybridIndex":
    """The text index, with vectors beside it where there is an encoder; only then are its libraries needed."""
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
