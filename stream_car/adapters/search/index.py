"""Stage 1 on disk: tantivy, with the newest documents in memory in front of it.

Promise: once `apply` has returned, the next call finds its documents, whether tantivy has committed them or not.
Tantivy and memory propose candidates, by words and by the names of scopes. The best candidates are scored exactly and
alike, with exact statistics of the documents that there are now. A result depends only on these documents and the
query, not on how they were batched or when the index was opened. The index is derived: a folder that is unreadable,
damaged, from another release or analysed differently is emptied and starts at position 0. The coroutines suspend only
in the `yield_control` that they are given. Cost: `apply` analyses a document and passes it to tantivy's threads, about
30 us. A commit runs in a thread; it begins when 500 documents are searched in memory, or when 8,000 documents of a bulk
load wait. Only the first search after a bulk load waits for a commit, 50-100 ms. A search takes about two milliseconds
at 10^5 documents; its work is bounded however long the query is and however many documents tie.
"""

import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import tantivy

from stream_car.adapters.database import delete_database
from stream_car.adapters.search.disk import CommittedDocuments
from stream_car.adapters.search.index_faults import FILES, META, are_words_whole
from stream_car.adapters.search.memory import name_term
from stream_car.adapters.search.schema import (
    Statistics,
    analyse,
    document_row,
    index_format,
    match_terms,
    pair_term,
    read_statistics,
    replace_surrogates,
    schema,
    whitespace_analyzer,
)
from stream_car.adapters.search.scope_names import CURE, ScopeNames
from stream_car.adapters.search.term_store import TermStore
from stream_car.adapters.search.uncommitted_documents import UncommittedDocument, UncommittedDocuments
from stream_car.adapters.search.writer import Writer, translate_read_errors, translate_write_errors
from stream_car.core.documents import Document
from stream_car.errors import Halted, StreamCarError
from stream_car.files.lock import FileLock
from stream_car.files.seals import break_seal, seal
from stream_car.ports import IndexedDocument, Pairs, YieldControl
from stream_car.ranking.anchor_order import Hit
from stream_car.ranking.bm25 import QueryWeights
from stream_car.ranking.closeness import closeness
from stream_car.ranking.query_plan import QueryPlan, QueryTerms, plan_query, read_query
from stream_car.ranking.settings import SETTINGS, Settings

TAIL_MAX = 500  # documents searched in memory
FRESH_TAIL_MAX = 64  # the same while there is nothing on disk to take statistics from
SCORED_AT_ONCE = 25  # candidates scored before `yield_control` is awaited
RESTARTS_MAX = 8  # of a search because others changed the index, before it runs without a pause
MEASURED_MAX = 200  # words of a query whose closeness is measured
TAIL_ADDED_MAX = 1000  # documents that a search adds to the tail; for more it waits for a commit
UNCOMMITTED_MAX = 8000  # documents in one commit
UNCOMMITTED_CHARACTERS_MAX = 16 << 20  # of their words


class TantivyIndex:
    """Implements `ports.AnchorIndex` in a folder of its own, for one process."""

    def __init__(self, folder: Path | str, *, settings: Settings = SETTINGS) -> None:
        self._folder = Path(folder)
        self._settings = settings
        self._schema = schema()
        self._version = 0
        self._last_plan: tuple[int, str, QueryTerms, QueryPlan] | None = None  # of this version, for this text
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            reason = f"{error.strerror}. Check its permissions, or choose another folder."
            raise StreamCarError(f"The folder {self._folder} cannot be created: {reason}") from error
        self._lock = FileLock(self._folder / "lock", "the text index")
        try:
            try:
                self._open()
            except Halted:
                self._wipe()
                self._open()
        except BaseException:
            self._lock.release()
            raise

    def _open(self) -> None:
        words, marker = self._folder / "tantivy", self._folder / "format"
        if not self._is_usable(words, marker):
            self._wipe()
        words.mkdir(mode=0o700, exist_ok=True)
        self._scopes = ScopeNames(self._folder / "scopes.sqlite")
        try:
            self._texts = TermStore(self._folder / "analysed.sqlite")
        except BaseException:
            self._scopes.close()
            raise
        try:
            with translate_read_errors():
                self._index = tantivy.Index(self._schema, path=str(words))
                self._index.register_tokenizer("words", whitespace_analyzer())
                self._index.config_reader("manual")
                self._writer = Writer(self._index)
            marker.write_text(index_format(self._settings))
            self._uncommitted = UncommittedDocuments()
            self._reload()
            self._documents, self._tokens = self._committed.documents, self._committed.tokens
            self._position = self._committed.position
            if self._scopes.position < self._position:
                self._writer.close()
                raise Halted("damaged", f"The file scopes.sqlite lacks names that the text index has. {CURE}")
            self._last_on_disk = self._texts.last
        except BaseException:
            self._scopes.close()
            self._texts.close()
            raise

    def _is_usable(self, words: Path, marker: Path) -> bool:
        """Return whether what is on disk is whole, unchanged, and analysed as these settings want it."""
        if not marker.exists() or marker.read_bytes() != index_format(self._settings).encode():
            return False
        return are_words_whole(words, break_seal) and all((self._folder / name).exists() for name in FILES)

    def _wipe(self) -> None:
        """Delete the files that this class writes, and no others that may be in the folder."""
        (self._folder / "format").unlink(missing_ok=True)
        delete_database(self._folder / "scopes.sqlite")
        delete_database(self._folder / "analysed.sqlite")
        shutil.rmtree(self._folder / "tantivy", ignore_errors=True)

    def _reload(self) -> None:
        self._version += 1
        with translate_read_errors():
            self._index.reload()
            searcher = self._index.searcher()
            statistics = read_statistics(self._schema, searcher)
        self._disk = CommittedDocuments(self._schema, searcher, statistics.documents)
        self._committed = statistics

    async def apply(
        self, documents: Sequence[IndexedDocument], dropped: Sequence[str], position: int, scopes: Collection[str] = ()
    ) -> None:
        self._version += bool(documents or dropped)
        analysed_terms = [analyse(indexed, self._settings) for indexed in documents]
        numbers = self._texts.add(
            (indexed.document.id, its_terms) for indexed, its_terms in zip(documents, analysed_terms, strict=True)
        )
        with translate_write_errors():
            for document_id in dropped:
                self._replace(document_id, None)
            for indexed, number, document_terms in zip(documents, numbers, analysed_terms, strict=True):
                self._replace(indexed.document.id, UncommittedDocument(indexed, number, document_terms))
                self._writer.add(document_row(indexed, number, document_terms))
        self._scopes.add(chain(scopes, (scope for indexed in documents for scope in indexed.scopes)))
        self._scopes.add_aliases(alias for indexed in documents for alias in indexed.aliases)
        self._position = position
        self._commit_if_due(UNCOMMITTED_MAX)

    def _replace(self, document_id: str, document: UncommittedDocument | None) -> None:
        replaced = self._uncommitted.put(document_id, document, self._disk.number)
        if replaced is not None:
            self._writer.delete(document_id)  # of a new id tantivy has no row to look for
            self._documents -= 1
            self._tokens -= self._texts.length(replaced)
        if document is not None:
            self._documents += 1
            self._tokens += document.terms.length

    def _commit_if_due(self, limit: int) -> None:
        """Finish a commit that is done. Begin one if `limit` documents, or very long ones, are uncommitted."""
        is_long = self._uncommitted.characters >= UNCOMMITTED_CHARACTERS_MAX
        if self._writer.is_commit_done or (
            self._writer.is_committing and (is_long or len(self._uncommitted) >= 2 * UNCOMMITTED_MAX)
        ):
            self._end_commit()
        if (is_long or len(self._uncommitted) >= limit) and not self._writer.is_committing:
            self._begin_commit()

    def _begin_commit(self) -> None:
        """Begin to commit everything that is uncommitted. It stays in memory until `_end_commit`."""
        # first: the committed position must never be ahead of the scopes or the term store
        self._scopes.flush(self._position)
        self._texts.flush()
        self._uncommitted.seal()
        self._last_sealed = self._texts.last
        self._writer.begin(Statistics(self._documents, self._tokens, self._position), self._sync)

    def _sync(self) -> None:
        """Make what was flushed durable, and checkpoint it so that no later flush has to."""
        self._scopes.sync()
        self._texts.sync()
        self._scopes.checkpoint()
        self._texts.checkpoint()

    def _end_commit(self) -> None:
        """Wait for the commit that was begun, if any, and read its documents from disk from now on."""
        if self._writer.is_committing:
            self._writer.finish()
            self._reload()
            self._last_on_disk = self._last_sealed
            self._texts.remove(self._uncommitted.forget_sealed())

    def _commit(self) -> None:
        """Commit everything, and wait for it."""
        self._end_commit()
        self._begin_commit()
        self._end_commit()

    @property
    def committed(self) -> int:
        """The input offset at which indexing continues after a crash."""
        return self._committed.position

    @property
    def document_count(self) -> int:
        """The number of documents that there are now."""
        return self._documents

    async def version(self) -> int:
        return self._version

    async def vectors_pending(self) -> int:
        return 0  # this index has no vectors

    async def position(self) -> int:
        return self._position

    async def search(
        self, text: str, depth: int, yield_control: YieldControl | None = None, *, within: Pairs = ()
    ) -> Sequence[Hit]:
        """Return the `depth` best anchors, as `ports.AnchorIndex` promises.

        The rarest `TERMS_MAX` words and the rarest `NAMES_MAX` names of the query count.
        """
        restarts = 0
        while depth > 0:
            self._fill_tail()
            version, hits = self._version, list[Hit]()
            count = max(depth, self._settings.candidates)
            for scored in self._search_steps(text, within, count, count if yield_control is None else SCORED_AT_ONCE):
                hits += scored
                if yield_control is not None:
                    await yield_control()
                    if self._version != version:  # the index changed meanwhile: search again, at last without a pause
                        restarts += 1
                        yield_control = yield_control if restarts < RESTARTS_MAX else None
                        break
            else:
                hits.sort(key=lambda hit: (-hit.score, hit.id))
                return tuple(hits[:depth])
        return ()

    def _search_steps(self, text: str, within: Pairs, count: int, at_once: int) -> Iterator[list[Hit]]:
        """Yield anchors for a query in any order, some after each step. The index must not change meanwhile."""
        _, plan = self._known_plan(text)
        if plan is None:
            query = read_query(replace_surrogates(text), self._settings)
            yield []
            plan = self._plan(text, query)
        if not plan.weights.known and not plan.names:
            return
        yield []
        replaced, pairs = set(self._uncommitted.replaced), [pair_term(pair) for pair in within]
        on_disk = self._disk.candidates(plan.terms_to_search, plan.names, count, replaced, pairs)
        candidates = [*on_disk, *self._tail_candidates(plan.weights, count, within)]
        yield []
        for start in range(0, len(candidates), at_once):
            stored = self._texts.get(candidates[start : start + at_once])
            scores = plan.scores([document.terms for document in stored], self._settings)
            yield [Hit(document.id, value) for document, value in zip(stored, scores, strict=True)]

    async def ignored_terms(self, text: str) -> int:
        """Return how many words of a query do not count. Cost: that of planning it, if it was not searched for last."""
        _, plan = self._known_plan(text)
        if plan is None:
            query = read_query(replace_surrogates(text), self._settings)
            if not query.may_be_cut:
                return 0
            self._fill_tail()
            plan = self._plan(text, query)
        return plan.ignored

    async def closeness(self, text: str, ids: Sequence[str]) -> float:
        query, _ = self._known_plan(text)
        if query is None:
            query = read_query(replace_surrogates(text), self._settings)
        frequencies = {word: self._frequency("words", word, word) for word in dict.fromkeys(query.words[:MEASURED_MAX])}
        matches = match_terms(query.names, (await self.documents(ids)).values(), self._settings)
        return closeness(frequencies, self._documents, matches) if matches is not None else 1.0

    def _known_plan(self, text: str) -> tuple[QueryTerms, QueryPlan] | tuple[None, None]:
        last = self._last_plan
        return last[2:] if last is not None and last[:2] == (self._version, text) else (None, None)

    def _plan(self, text: str, query: QueryTerms) -> QueryPlan:
        """Plan a query with the statistics of disk and memory together."""
        plan = plan_query(
            query,
            {word: self._frequency("words", word, word) for word in dict.fromkeys(query.words)},
            {name: self._frequency("names", name, name_term(name)) for name in query.names},
            documents=self._documents,
            average_length=self._average_length(),
            settings=self._settings,
        )
        self._last_plan = self._version, text, query, plan
        return plan

    def prepare(self) -> bool:
        """Return whether a search need not wait for a commit. If it would have to, begin one."""
        self._commit_if_due(TAIL_MAX + 1)
        return len(self._uncommitted) <= TAIL_MAX

    def _fill_tail(self) -> None:
        """Add the newest documents to the tail. If it has become too long, begin a commit or wait for one."""
        on_disk = self._committed.documents
        is_fresh_and_long = not on_disk and len(self._uncommitted) > FRESH_TAIL_MAX
        if self._uncommitted.outside_tail > TAIL_ADDED_MAX or is_fresh_and_long:
            self._commit()
        elif on_disk:
            self._commit_if_due(min(TAIL_MAX, on_disk) + 1)
        self._uncommitted.fill_tail()
        for ghost in self._texts.get(self._uncommitted.new_ghosts(self._last_on_disk)):
            self._uncommitted.ghosts.add(str(ghost.number), ghost.terms)

    def _frequency(self, field: str, on_disk: str, in_memory: str) -> int:
        """Return the number of documents that have a word or name now."""
        uncommitted = self._uncommitted
        frequency = self._disk.document_frequency(field, on_disk) + uncommitted.tail.document_frequency(in_memory)
        return frequency - uncommitted.ghosts.frequencies.get(in_memory, 0)

    def _average_length(self) -> float:
        return self._tokens / self._documents if self._documents else 0.0

    def _tail_candidates(self, query: QueryWeights, count: int, within: Pairs) -> list[int]:
        if not self._uncommitted.tail:
            return []
        weights = {term: weight for term, _, weight in query.terms}
        weights |= {name_term(name.strip()): weight for name, weight in query.names}
        return self._uncommitted.best(weights, query.average_length, count, within)

    def anchors_within(self, pairs: Pairs) -> list[str]:
        """Return the ids of all anchors that have these pairs. Cost: some microseconds for each."""
        numbers = self._disk.numbers_of([pair_term(pair) for pair in pairs], set(self._uncommitted.replaced))
        on_disk = [document.id for document in self._texts.get(numbers)]
        return [*on_disk, *self._uncommitted.anchors_within(pairs)]

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        distinct = dict.fromkeys(ids)
        documents = self._uncommitted.documents(distinct)
        if on_disk := [document_id for document_id in distinct if document_id not in self._uncommitted]:
            documents |= self._disk.documents(on_disk)
        return documents

    async def scopes(self, pairs: Sequence[tuple[str, str]], limit: int, start: str = "") -> Sequence[str]:
        return self._scopes.find(pairs, limit, start)

    async def known_pairs(self, pairs: Collection[tuple[str, str]]) -> Collection[tuple[str, str]]:
        return self._scopes.known(pairs)

    def settle(self) -> None:
        """Do nothing: this index has no vectors to wait for."""

    def reset(self) -> None:
        """Delete everything, readable or not. The position is 0 again."""
        with suppress(StreamCarError):
            self._close_files()
        self._wipe()
        self._open()

    def _close_files(self) -> None:
        self._scopes.close()
        self._texts.close()
        self._writer.close()
        with suppress(OSError):
            for name in META:
                seal(self._folder / "tantivy" / name)

    def close(self) -> None:
        """Commit what is in memory, wait for merges, and release the folder. Further calls do nothing."""
        if self._lock.is_released:
            return
        try:
            try:
                self._end_commit()
                if self._uncommitted or self._position != self._committed.position:
                    self._commit()
            finally:
                self._close_files()
        finally:
            self._lock.release()
