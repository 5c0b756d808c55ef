"""The documents of the last commit: candidates for a query by tantivy's own score, and documents by id.

Promise: the best anchors are proposed. If many tie with the last of them, the oldest are proposed, or all of them up to
`TIED_MAX` if the tie begins in the first quarter. A rare name proposes the documents that have it, even if none of
their words matches.
Cost: about half a millisecond for eight words at 10^5 documents; a document by id, ten microseconds.
"""

from collections.abc import Mapping, Sequence, Set

import tantivy

from stream_car.adapters.search.schema import MARK, read_document, replace_surrogates
from stream_car.adapters.search.writer import translate_read_errors
from stream_car.core.documents import Document

TIED_MAX = 1000  # candidates beyond the requested number

_SLACK = 16  # hits requested beyond the needed number, for ties
_TIE = 1 - 1e-5  # digits beyond the fifth depend on the order in which terms were added up
_EARLY = 4  # all ties are scored if they begin in this part of the candidates: the first quarter
_RARE = 4  # if fewer than one document in this many is an anchor, tantivy searches among anchors only
_CHUNK = 256  # ids in one search
_FREQUENCIES_MAX = 50_000  # document frequencies in memory


class CommittedDocuments:
    """A tantivy searcher, and what it has counted so far."""

    def __init__(self, fields: tantivy.Schema, searcher: tantivy.Searcher, documents: int) -> None:
        """Read a commit of so many documents, without those that it replaced."""
        self._fields = fields
        self._searcher = searcher
        self._documents = searcher.num_docs
        self._anchors = searcher.doc_freq("anchor", True)  # noqa: FBT003  the value to look for
        others = searcher.doc_freq("anchor", False)  # noqa: FBT003  the value to look for
        self._has_replaced = self._anchors + others - searcher.doc_freq("mark", MARK) != documents
        self._frequencies: dict[tuple[str, str], int] = {}

    def document_frequency(self, field: str, term: str) -> int:
        """Return the number of documents that have a term.

        tantivy's own number counts a replaced document until it is merged away, which depends on how documents were
        batched. If there are such documents, the others are counted: a few nanoseconds per document that has the term,
        once per commit and term.
        """
        frequency = self._searcher.doc_freq(field, term)
        if not frequency or not self._has_replaced:
            return frequency
        if len(self._frequencies) > _FREQUENCIES_MAX:
            self._frequencies.clear()
        if (field, term) not in self._frequencies:
            query = self._term_query(field, term, "freq" if field == "words" else "basic")
            with translate_read_errors():
                result = self._searcher.search(query, 1, count=True)
            frequency = result.count  # type: ignore[attr-defined]  # its stubs lack it
            self._frequencies[field, term] = frequency
        return self._frequencies[field, term]

    def candidates(
        self,
        words: Mapping[str, int],
        names: Mapping[str, int],
        count: int,
        replaced: Set[int],
        pairs: Sequence[str] = (),
    ) -> Sequence[int]:
        """Return the numbers of the `count` best anchors by words, and of as many by rare names.

        `words` has how often the query repeats each word, `names` the document frequency of each name. A name that
        more than `count` documents have proposes nothing; it only adds to scores. The `replaced` are left out, and
        documents that lack one of the `pairs`.
        """
        if not self._anchors:
            return ()
        within = [self._term_query("pairs", pair, "basic") for pair in pairs]
        by_words = self._best([self._word_query(word, times) for word, times in words.items()], within, count, replaced)
        rare = [
            self._term_query("names", name, "basic")
            for name, frequency in names.items()
            if frequency <= count or within  # how many documents within have the name is not known
        ]
        return list(dict.fromkeys([*by_words, *self._best(rare, within, count, replaced)]))

    def numbers_of(self, pairs: Sequence[str], replaced: Set[int]) -> list[int]:
        """Return the numbers of all anchors that have these pairs, except the `replaced`."""
        if not self._anchors:
            return []
        first, *rest = [self._term_query("pairs", pair, "basic") for pair in pairs]
        return self._best([first], rest, self._documents, replaced)

    def _word_query(self, word: str, times: int) -> tantivy.Query:
        # a query without a boost lets tantivy skip documents that cannot be among the best
        query = self._term_query("words", word, "freq")
        return query if times == 1 else tantivy.Query.boost_query(query, float(times))

    def _term_query(self, field: str, value: str, index_option: str) -> tantivy.Query:
        return tantivy.Query.term_query(self._fields, field, value, index_option)

    def _best(
        self, clauses: Sequence[tantivy.Query], within: Sequence[tantivy.Query], count: int, replaced: Set[int]
    ) -> list[int]:
        if not clauses:
            return []
        query = clauses[0] if len(clauses) == 1 else _any_of(clauses)
        if within:
            query = _among(query, within)
        limit = count + _SLACK
        if self._anchors * _RARE < self._documents:
            anchors = tantivy.Query.term_query(self._fields, "anchor", True, "basic")  # noqa: FBT003  the value to find
            query = _among(query, [anchors])
        else:
            limit = limit * self._documents // self._anchors
        while True:
            with translate_read_errors():
                hits = self._searcher.search(query, limit, count=False).hits
                numbers, is_complete = self._live_anchors(hits, count, replaced)
            if is_complete or len(hits) < limit:
                return numbers
            limit *= 4

    def _live_anchors(
        self, hits: Sequence[tuple[float, tantivy.DocAddress]], count: int, replaced: Set[int]
    ) -> tuple[list[int], bool]:
        """Return the `count` best anchors that are not replaced, and whether that needs no further hits."""
        numbers: list[int] = []
        scores: list[float] = []
        lowest = 0.0
        addresses = [address for _, address in hits]
        anchors = self._searcher.fast_field_values("anchor", addresses)
        for (score, _), anchor, number in zip(hits, anchors, self._numbers(addresses), strict=True):
            if len(numbers) >= count and (score < lowest or len(numbers) >= count + TIED_MAX):
                return _settle_ties(numbers, scores, count), True
            if anchor and number not in replaced:
                numbers.append(number)
                scores.append(score)
                if len(numbers) == count:
                    lowest = score * _TIE
        return _settle_ties(numbers, scores, count), False

    def _numbers(self, addresses: list[tantivy.DocAddress]) -> list[int]:
        """Return the numbers of documents; 0 for the row that holds the position."""
        return [int(number or 0) for number in self._searcher.fast_field_values("number", addresses)]

    def number(self, document_id: str) -> int | None:
        """Return the number of a document in the term store, if it was committed."""
        if not self._documents or replace_surrogates(document_id) != document_id:
            return None
        if not self._searcher.doc_freq("id", document_id):
            return None
        hits = self._searcher.search(self._term_query("id", document_id, "basic"), 1, count=False).hits
        return self._numbers([hits[0][1]])[0] if hits else None

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """Return the committed documents with these ids. Raises `Halted` (`damaged`) if one has changed."""
        documents: dict[str, Document] = {}
        queries = [
            self._term_query("id", document_id, "basic")
            for document_id in ids
            if replace_surrogates(document_id) == document_id
        ]
        for start in range(0, len(queries), _CHUNK):
            chunk = queries[start : start + _CHUNK]
            with translate_read_errors():
                for _, address in self._searcher.search(_any_of(chunk), len(chunk), count=False).hits:
                    document = read_document(self._searcher.doc(address))
                    documents[document.id] = document
        return documents


def _any_of(clauses: Sequence[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, clause) for clause in clauses])


def _among(query: tantivy.Query, conditions: Sequence[tantivy.Query]) -> tantivy.Query:
    """Return the query for documents that also meet all conditions, which do not count in the score."""
    without_score = [tantivy.Query.const_score_query(condition, 0.0) for condition in conditions]
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, clause) for clause in (query, *without_score)])


def _settle_ties(numbers: list[int], scores: list[float], count: int) -> list[int]:
    """Return the first `count`. If more tie with the last: all of them if the tie begins early, else the oldest."""
    if len(numbers) <= count:
        return numbers
    first_tied = next(at for at, score in enumerate(scores) if score * _TIE <= scores[count - 1])
    if first_tied < count // _EARLY:
        return numbers
    return numbers[:first_tied] + sorted(numbers[first_tied:])[: count - first_tied]
