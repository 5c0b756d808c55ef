"""Stage 1 on disk: tantivy, with the newest documents in memory in front of it.

Promise: what `apply` has returned for is found by the next call, whether tantivy has committed it or
not. Tantivy and memory propose candidates, by words and by the names of scopes; the best of them are
scored exactly, alike, with the statistics of both together (a replaced document counts twice until
tantivy merges it away; the mean length is the disk's and memory's). A result depends on the
index's content and the question alone. The index is derived: a folder that is unreadable, damaged,
of another release or analysed otherwise is begun anew at position 0.
Cost: `apply` analyses a document and hands it to tantivy's threads, about 30 us; a commit goes on beside
it in a thread, and is begun when 500 documents are searched in memory, or 8,000 of a bulk load wait; only
the first search after a bulk load waits for one, 50-100 ms. A search takes about two milliseconds at 10^5
documents; however long the question is, and however many documents tie, its work is bounded. Its coroutines
suspend only where they are given something to wait for.
"""

import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import tantivy

from stream_car.adapters.search.checksums import intact
from stream_car.adapters.search.disk import Committed
from stream_car.adapters.search.memory import named_term
from stream_car.adapters.search.query_terms import Asked, asked
from stream_car.adapters.search.schema import (
    analysed,
    format_of,
    read_statistics,
    readable,
    rounded,
    row,
    schema,
    splitter,
)
from stream_car.adapters.search.scope_names import ScopeParts
from stream_car.adapters.search.term_store import AnalysedTexts
from stream_car.adapters.search.uncommitted import Kept, Pending
from stream_car.adapters.search.writer import Writer, reading, writing
from stream_car.core.documents import Document
from stream_car.errors import Halted, StreamCarError
from stream_car.files.database import remove
from stream_car.files.lock import FileLock
from stream_car.ports import IndexedDocument, YieldControl
from stream_car.ranking.analysis import mentions, terms
from stream_car.ranking.anchor_order import Hit
from stream_car.ranking.bm25 import NAMES_MAX, TERMS_MAX, QueryWeights, counted, proposing, query_weights, rarest, score
from stream_car.ranking.settings import SETTINGS, Settings

TAIL_MAX = 500  # documents searched in memory
FRESH_TAIL_MAX = 64  # the same while there is nothing on disk to take statistics from
SCORED_AT_ONCE = 25  # candidates, before others may go first
UNREAD_MAX = 1000  # documents that a search reads into memory; for more it waits for a commit
UNCOMMITTED_MAX = 8000  # documents handed to tantivy in one commit
UNCOMMITTED_CHARACTERS_MAX = 16 << 20  # and their words


class TantivyIndex:
    """Implements `ports.AnchorIndex` in a folder of its own, for one process."""

    def __init__(self, folder: Path | str, *, settings: Settings = SETTINGS) -> None:
        self._folder = Path(folder)
        self._settings = settings
        self._schema = schema()
        self._version = 0
        self._asked: Asked | None = None  # the last of those that have too many words
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StreamCarError(f"{self._folder} cannot be made: {error.strerror}") from error
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
        if not (marker.exists() and marker.read_bytes() == format_of(self._settings).encode() and intact(words)):
            self._wipe()
        words.mkdir(mode=0o700, exist_ok=True)
        self._scopes = ScopeParts(self._folder / "scopes.sqlite")
        try:
            self._texts = AnalysedTexts(self._folder / "analysed.sqlite")
        except BaseException:
            self._scopes.close()
            raise
        try:
            with reading():
                self._index = tantivy.Index(self._schema, path=str(words))
                self._index.register_tokenizer("words", splitter())
                self._index.config_reader("manual")
                self._writer = Writer(self._index)
            marker.write_text(format_of(self._settings))
            self._pending = Pending()
            self._reload()
            self._position = self._committed
        except BaseException:
            self._scopes.close()
            self._texts.close()
            raise

    def _wipe(self) -> None:
        """Removes what this class writes, and nothing else that may lie in the folder."""
        (self._folder / "format").unlink(missing_ok=True)
        remove(self._folder / "scopes.sqlite")
        remove(self._folder / "analysed.sqlite")
        shutil.rmtree(self._folder / "tantivy", ignore_errors=True)

    def _reload(self) -> None:
        self._version += 1
        with reading():
            self._index.reload()
            searcher = self._index.searcher()
            self._statistics = read_statistics(self._schema, searcher)
        self._disk = Committed(self._schema, searcher, self._statistics)
        self._committed = self._statistics.position

    async def apply(
        self, documents: Sequence[IndexedDocument], dropped: Sequence[str], position: int, scopes: Collection[str] = ()
    ) -> None:
        """Add or replace documents by id, drop others; all input before `position` is now in."""
        self._version += bool(documents or dropped)
        said = [posting.terms or analysed(posting, self._settings) for posting in documents]
        numbers = self._texts.add((posting.document.id, one) for posting, one in zip(documents, said, strict=True))
        with writing():
            for name in dropped:
                self._put(name, None)
            for posting, number, one in zip(documents, numbers, said, strict=True):
                self._put(posting.document.id, Kept(posting, number, one))
                self._writer.add(row(posting, number, one))
        self._scopes.add(chain(scopes, (scope for posting in documents for scope in posting.scopes)))
        self._position = position
        self._go_on(UNCOMMITTED_MAX)

    def _put(self, name: str, kept: Kept | None) -> None:
        """Take the place of whatever was there under this id; what is new need not be looked for by tantivy."""
        if self._pending.put(name, kept, self._disk.number):
            self._writer.delete(name)

    def _go_on(self, most: int) -> None:
        """Take up a commit that has ended, and begin one where as much as this is pending, or very long texts are."""
        is_much = self._pending.characters >= UNCOMMITTED_CHARACTERS_MAX
        if self._writer.is_through or (
            self._writer.is_committing and (is_much or len(self._pending) >= 2 * UNCOMMITTED_MAX)
        ):
            self._end_commit()
        if (is_much or len(self._pending) >= most) and not self._writer.is_committing:
            self._begin_commit()

    def _begin_commit(self) -> None:
        """Begin to commit what is pending, all of which stays in memory until `_end_commit`."""
        self._scopes.flush()  # first: the position must never be ahead of the scopes, nor of the texts
        self._texts.flush()
        self._pending.seal()
        self._writer.begin(self._position, self._sync)

    def _sync(self) -> None:
        """What was flushed survives a power cut, and need not be brought into its file by a later flush."""
        self._scopes.sync()
        self._texts.sync()
        self._texts.checkpoint()

    def _end_commit(self) -> None:
        """Read from disk what a commit brought there; waits for it."""
        if self._writer.is_committing:
            self._writer.finish()
            self._reload()
            self._texts.remove(self._pending.let_go())

    def _commit(self) -> None:
        """Commit all that is pending, and wait for it."""
        self._end_commit()
        self._begin_commit()
        self._end_commit()

    @property
    def committed(self) -> int:
        """The input offset from which to feed after a crash."""
        return self._committed

    async def version(self) -> int:
        """A number that goes up whenever a search could answer otherwise than before, scores included."""
        return self._version

    async def vectors_pending(self) -> int:
        """Nothing here is found by meaning."""
        return 0

    async def position(self) -> int:
        """The input offset from which to feed after opening; 0 where there is no usable index."""
        return self._position

    async def search(self, text: str, depth: int, yield_control: YieldControl | None = None) -> Sequence[Hit]:
        """The `depth` best anchors for a question, best first; ties by id. Any text is allowed.

        Of its words and names the rarest `TERMS_MAX` and `NAMES_MAX` count.
        """
        while depth > 0:
            self._settle()
            version, hits = self._version, list[Hit]()
            count = max(depth, self._settings.candidates)
            for some in self._pieces(text, count, count if yield_control is None else SCORED_AT_ONCE):
                hits += some
                if yield_control is not None:
                    await yield_control()
                    if self._version != version:  # something was applied meanwhile
                        break
            else:
                hits.sort(key=lambda hit: (-hit.score, hit.id))
                return tuple(hits[:depth])
        return ()

    def _pieces(self, text: str, count: int, at_once: int) -> Iterator[list[Hit]]:
        """Anchors for a question, in any order, after each piece of the work; what is settled must stay so."""
        read = self._known(text) or self._read(text, self._terms(text))
        said, words = read.said, read.words
        yield []
        names = self._named(text)
        if not words and not names:
            return
        yield []
        proposed = proposing(counted(said, words), words, self._documents())
        found = self._disk.candidates(proposed, names, count, set(self._pending.replaced))
        question = query_weights(said, words, names, self._documents(), self._average_length(), self._settings)
        every = [*found, *self._tail_candidates(question, count)]
        yield []
        for at in range(0, len(every), at_once):
            texts = self._texts.get(every[at : at + at_once])
            yield [Hit(one.id, rounded(score(question, one.analysed, self._settings))) for one in texts]

    async def ignored_terms(self, text: str) -> int:
        """How many words of a question do not count, although some document has them; it has too many.

        To read such a question takes as long as to search for it; one that was just searched for is not read again.
        """
        known = self._known(text)
        if known is None:
            said = self._terms(text)
            if len(set(said)) <= TERMS_MAX:
                return 0
            self._settle()
            known = self._read(text, said)
        return known.unread

    def _known(self, text: str) -> Asked | None:
        known = self._asked
        return known if known is not None and known.version == self._version and known.text == text else None

    def _read(self, text: str, said: list[str]) -> Asked:
        having = self._having(said)
        read = asked(text, self._version, said, having)
        if len(having) > TERMS_MAX:
            self._asked = read
        return read

    def _terms(self, text: str) -> list[str]:
        return terms(readable(text), stems=self._settings.stems)

    def _having(self, said: Iterable[str]) -> dict[str, int]:
        """How many documents have each of these terms."""
        disk, tail = self._disk.having, self._pending.tail.having
        return {term: disk("words", term) + tail(term) for term in dict.fromkeys(said)}

    def prepare(self) -> bool:
        """Whether a search need not wait for a commit; if it would, one is begun."""
        self._go_on(TAIL_MAX + 1)
        return len(self._pending) <= TAIL_MAX

    def _settle(self) -> None:
        """Read the newest documents into the tail; where it has become too long a commit is begun, or waited for."""
        on_disk = self._statistics.documents
        if self._pending.unread > UNREAD_MAX or (not on_disk and len(self._pending) > FRESH_TAIL_MAX):
            self._commit()
        elif on_disk:
            self._go_on(min(TAIL_MAX, on_disk) + 1)
        self._pending.read()

    def _named(self, text: str) -> dict[str, int]:
        """The names in a question that some scope or document has now, and how many have each."""
        if not self._settings.names:
            return {}
        disk, tail = self._disk.having, self._pending.tail.having
        found = {name: disk("names", name) + tail(named_term(name)) for name in mentions(readable(text))}
        return rarest(found, NAMES_MAX)

    def _documents(self) -> int:
        return self._statistics.documents + len(self._pending.tail)

    def _average_length(self) -> float:
        on_disk, tail = self._statistics.documents, self._pending.tail
        total = on_disk * self._statistics.average_length + tail.tokens()
        return total / (on_disk + len(tail)) if on_disk or tail else 0.0

    def _tail_candidates(self, question: QueryWeights, count: int) -> list[int]:
        if not self._pending.tail:
            return []
        weights = {term: weight for term, _, weight in question.terms}
        weights |= {named_term(name.strip()): weight for name, weight in question.names}
        return self._pending.best(weights, question.average_length, count)

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents kept under these ids."""
        names = dict.fromkeys(ids)
        found = self._pending.documents(names)
        if stored := [name for name in names if name not in self._pending]:
            found |= self._disk.documents(stored)
        return found

    async def scopes(self, pairs: Sequence[tuple[str, str]], limit: int) -> Sequence[str]:
        """Names of scopes that have all these pairs, in order of name; some may have become empty."""
        return self._scopes.find(pairs, limit)

    def settle(self) -> None:
        """Nothing is made in the background here."""

    def reset(self) -> None:
        """Forget everything, readable or not; the position is 0 again."""
        with suppress(StreamCarError):
            self._let_go()
        self._wipe()
        self._open()

    def _let_go(self) -> None:
        self._scopes.close()
        self._texts.close()
        self._writer.close()

    def close(self) -> None:
        """Commit what is in memory, wait for merges, let go of the folder; again is harmless."""
        if self._lock.released:
            return
        try:
            try:
                self._end_commit()
                if self._pending or self._position != self._committed:
                    self._commit()
            finally:
                self._let_go()
        finally:
            self._lock.release()
