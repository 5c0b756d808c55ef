"""Stage 1 on disk: tantivy, with the newest documents in memory in front of it.

Promise: what `apply` has returned for is found by the next call, whether tantivy has committed it or
not; memory and disk are scored alike, with the statistics of both together (a replaced document
counts twice until tantivy merges it away; means of length are the disk's). The index is derived: a
folder that is unreadable, damaged or of another release is begun anew at position 0.
Cost: `apply` hands a document to tantivy's threads, about 20 us; a commit takes 50-100 ms and
happens every 500 documents that are searched in memory, or 8,000 of a bulk load; a search about
a millisecond at 10^5 documents, more where very many documents tie. Its coroutines never suspend.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from math import ceil
from pathlib import Path

import tantivy

from stream_car.adapters.embedded.lock import FileLock
from stream_car.adapters.embedded.rows import (
    CURE,
    FORMAT,
    MARK,
    analyzer,
    mark,
    read_statistics,
    readable,
    rounded,
    row,
    schema,
    stored,
    words,
)
from stream_car.adapters.embedded.scopes import ScopeParts
from stream_car.adapters.embedded.segments import intact
from stream_car.adapters.embedded.sqlite import remove
from stream_car.adapters.embedded.tail import Tail, idf
from stream_car.core.documents import Document
from stream_car.errors import Halted, StreamCarError
from stream_car.ports import Hit, Posting

TERMS_MAX = 256  # distinct words of a question that count, the first ones
TAIL_MAX = 500  # documents searched in memory
FRESH_TAIL_MAX = 64  # the same while there is nothing on disk to take statistics from
UNCOMMITTED_MAX = 8000  # documents handed to tantivy in one commit

_HEAP = 100_000_000
_THREADS = 2
_SLACK = 16  # hits asked for beyond the depth, for ties


class TantivyIndex:
    """Implements `ports.AnchorIndex` in a folder of its own, for one process."""

    def __init__(self, folder: Path | str) -> None:
        self._folder = Path(folder)
        self._schema = schema()
        self._analyzer = analyzer()
        self._version = 0
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
        if not (marker.exists() and marker.read_bytes() == FORMAT.encode() and intact(words)):
            self._wipe()
        words.mkdir(mode=0o700, exist_ok=True)
        self._scopes = ScopeParts(self._folder / "scopes.sqlite")
        try:
            with _reading():
                self._index = tantivy.Index(self._schema, path=str(words))
                self._index.register_tokenizer("words", self._analyzer)
                self._index.config_reader("manual")
                self._writer = self._index.writer(_HEAP, _THREADS)
            marker.write_text(FORMAT)
            self._clear_tail()
            self._reload()
        except BaseException:
            self._scopes.close()
            raise

    def _wipe(self) -> None:
        """Removes what this class writes, and nothing else that may lie in the folder."""
        (self._folder / "format").unlink(missing_ok=True)
        remove(self._folder / "scopes.sqlite")
        shutil.rmtree(self._folder / "tantivy", ignore_errors=True)

    def _clear_tail(self) -> None:
        self._pending: dict[str, Posting | None] = {}  # None: dropped
        self._unread: dict[str, None] = {}  # pending, and not yet in the tail
        self._tail = Tail()

    def _reload(self) -> None:
        self._version += 1
        with _reading():
            self._index.reload()
            self._searcher = self._index.searcher()
            self._statistics = read_statistics(self._schema, self._analyzer, self._searcher)
        self._committed = self._position = self._statistics.position

    async def apply(
        self, postings: Sequence[Posting], dropped: Sequence[str], position: int, scopes: Collection[str] = ()
    ) -> None:
        """Add or replace documents by id, drop others; all input before `position` is now in."""
        self._version += bool(postings or dropped)
        with _writing():
            for name in dropped:
                self._writer.delete_documents_by_term("id", name)
                self._set_pending(name, None)
            for posting in postings:
                name = posting.document.id
                self._writer.delete_documents_by_term("id", name)
                self._writer.add_document(row(posting))
                self._set_pending(name, posting)
        self._scopes.add(chain(scopes, (scope for posting in postings for scope in posting.scopes)))
        self._position = position
        if len(self._pending) >= UNCOMMITTED_MAX:
            self._commit()

    def _set_pending(self, name: str, posting: Posting | None) -> None:
        self._tail.remove(name)
        self._pending[name] = posting
        if posting is None:
            self._unread.pop(name, None)
        else:
            self._unread[name] = None

    def _commit(self) -> None:
        position = self._position
        self._scopes.flush()  # first: the position must never be ahead of the scopes
        with _writing():
            self._writer.delete_documents_by_term("mark", MARK)
            self._writer.add_document(mark(position))
            self._writer.commit()
        self._clear_tail()
        self._reload()

    async def version(self) -> int:
        """A number that goes up whenever a search could answer otherwise than before, scores included."""
        return self._version

    async def position(self) -> int:
        """The input offset from which to feed after opening; 0 where there is no usable index."""
        return self._position

    async def search(self, text: str, depth: int) -> Sequence[Hit]:
        """The `depth` best anchors for a question, best first; ties by id. Any text is allowed."""
        counts: dict[str, int] = {}
        for term in self._analyzer.analyze(readable(text)):
            if term in counts or len(counts) < TERMS_MAX:
                counts[term] = counts.get(term, 0) + 1
        if depth <= 0 or not counts:
            return ()
        self._settle()
        hits = [*self._disk_hits(counts, depth), *self._tail_hits(counts)]
        hits.sort(key=lambda hit: (-hit.score, hit.id))
        return tuple(hits[:depth])

    def _settle(self) -> None:
        """Read the newest documents into the tail, or commit them where they are too many for it."""
        on_disk = self._statistics.documents
        if len(self._pending) > (min(TAIL_MAX, on_disk) if on_disk else FRESH_TAIL_MAX):
            self._commit()
        for name in self._unread:
            posting = self._pending[name]
            if posting is not None:
                self._tail.add(name, self._analyzer.analyze(words(posting.document)))
        self._unread.clear()

    def _disk_hits(self, counts: Mapping[str, int], depth: int) -> Sequence[Hit]:
        statistics = self._statistics
        if not statistics.anchors:
            return ()
        query = self._query(counts)
        limit = ceil((depth + _SLACK) * statistics.documents / statistics.anchors)
        while True:
            with _reading():
                found = self._searcher.search(query, limit, count=False).hits
                hits, complete = self._live(found, depth)
            if complete or len(found) < limit:
                return hits
            limit *= 4

    def _query(self, counts: Mapping[str, int]) -> tantivy.Query:
        """A plain OR; each term is weighed so that it counts by the statistics of disk and tail together."""
        documents, clauses = self._statistics.documents, []
        for term, count in counts.items():
            clause = tantivy.Query.term_query(self._schema, "words", term, "freq")
            boost = float(count)
            if added := len(self._tail):
                having = self._searcher.doc_freq("words", term)
                boost *= idf(documents + added, having + self._tail.having(term)) / idf(documents, having)
            clauses.append((tantivy.Occur.Should, clause if boost == 1.0 else tantivy.Query.boost_query(clause, boost)))
        return tantivy.Query.boolean_query(clauses)

    def _live(self, found: Sequence[tuple[float, tantivy.DocAddress]], depth: int) -> tuple[list[Hit], bool]:
        """The anchors that memory does not replace, with all that tie with the last; whether it is all of these."""
        hits: list[Hit] = []
        anchors = self._searcher.fast_field_values("anchor", [address for _, address in found])
        for (raw, address), anchor in zip(found, anchors, strict=True):
            score = rounded(raw)
            if len(hits) >= depth and score < hits[depth - 1].score:
                return hits, True
            if anchor:
                name = str(self._searcher.doc(address).get_first("id"))
                if name not in self._pending:
                    hits.append(Hit(name, score))
        return hits, False

    def _tail_hits(self, counts: Mapping[str, int]) -> Iterator[Hit]:
        if not self._tail:
            return
        documents = self._statistics.documents + len(self._tail)
        weights = {
            term: count * idf(documents, self._tail.having(term) + self._searcher.doc_freq("words", term))
            for term, count in counts.items()
        }
        length = self._statistics.average_length or self._tail.average_length()
        for name, score in self._tail.scores(weights, length).items():
            posting = self._pending[name]
            if posting is not None and posting.anchor:
                yield Hit(name, rounded(score))

    async def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents kept under these ids."""
        found: dict[str, Document] = {}
        for name in dict.fromkeys(ids):
            if name in self._pending:
                posting = self._pending[name]
                document = posting.document if posting is not None else None
            else:
                document = self._stored(name)
            if document is not None:
                found[name] = document
        return found

    def _stored(self, name: str) -> Document | None:
        if readable(name) != name:
            return None
        query = tantivy.Query.term_query(self._schema, "id", name, "basic")
        with _reading():
            hits = self._searcher.search(query, 1, count=False).hits
            return stored(name, self._searcher.doc(hits[0][1])) if hits else None

    async def scopes(self, parts: Sequence[tuple[str, str]], limit: int) -> Sequence[str]:
        """Names of scopes that have all these pairs, in order of name; some may have become empty."""
        return self._scopes.find(parts, limit)

    def reset(self) -> None:
        """Forget everything, readable or not; the position is 0 again."""
        with suppress(StreamCarError):
            self._let_go()
        self._wipe()
        self._open()

    def _let_go(self) -> None:
        self._scopes.close()
        with _writing():
            self._writer.wait_merging_threads()

    def close(self) -> None:
        """Commit what is in memory, wait for merges, let go of the folder; again is harmless."""
        if self._lock.released:
            return
        try:
            try:
                if self._pending or self._position != self._committed:
                    self._commit()
            finally:
                self._let_go()
        finally:
            self._lock.release()


@contextmanager
def _reading() -> Iterator[None]:
    """Whatever tantivy raises while it reads its own files means that they are not as it wrote them."""
    try:
        yield
    except BaseException as error:
        if _is_tantivys(error):
            raise Halted("damaged", f"the text index cannot be read ({error}); {CURE}") from error
        raise


@contextmanager
def _writing() -> Iterator[None]:
    """A writer that has failed once stays unusable; what it had not committed is fed again from the log."""
    try:
        yield
    except BaseException as error:
        if _is_tantivys(error):
            raise StreamCarError(f"the text index cannot be written ({error}); free disk space and restart") from error
        raise


def _is_tantivys(error: BaseException) -> bool:
    """Its panics are no `Exception`, and their class cannot be imported."""
    return isinstance(error, (ValueError, RuntimeError, OSError)) or type(error).__name__ == "PanicException"
