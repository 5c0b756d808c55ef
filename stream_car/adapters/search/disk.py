"""What one commit brought to disk: candidates for a question by tantivy's own score, and documents by id.

Promise: the best anchors are proposed. Where many tie with the last of them, the oldest are, or all, as far
as `TIED_MAX`, if the tie begins among the first quarter. A rare name proposes whoever has it, even if no word of
theirs fits. Cost: about half a millisecond for eight words at 10^5 documents; a document by id, ten
microseconds.
"""

from collections.abc import Mapping, Sequence, Set

import tantivy

from stream_car.adapters.search.schema import Statistics, readable, stored
from stream_car.adapters.search.writer import reading
from stream_car.core.documents import Document

TIED_MAX = 1000  # candidates beyond the wanted ones

_SLACK = 16  # hits asked for beyond the wanted, for ties
_TIE = 1 - 1e-5  # what lies beyond five digits depends on the order in which terms were added up
_EARLY = 4  # ties that begin in the first of so many parts are all scored
_RARE = 4  # where fewer than one document in so many is an anchor, tantivy is told to look for anchors only
_AT_ONCE = 256  # ids in one search


class Committed:
    """A searcher of tantivy's, and what is known of all that it sees."""

    def __init__(self, fields: tantivy.Schema, searcher: tantivy.Searcher, statistics: Statistics) -> None:
        self._fields = fields
        self._searcher = searcher
        self._documents = statistics.documents
        self._anchors = statistics.anchors

    def having(self, field: str, term: str) -> int:
        """How many documents have a term, replaced ones that are not merged away yet included."""
        return self._searcher.doc_freq(field, term)

    def candidates(
        self, words: Mapping[str, int], names: Mapping[str, int], count: int, gone: Set[int]
    ) -> Sequence[int]:
        """Numbers of the `count` best anchors by words, and of as many by names that so few have; none of the `gone`.

        `terms` says how often each is asked for, `names` how many documents have each. A name that many
        have adds to scores, and proposes nothing.
        """
        if not self._anchors:
            return ()
        found = self._first([self._said(word, times) for word, times in words.items()], count, gone)
        rare = [self._term("names", name, "basic") for name, having in names.items() if having <= count]
        return list(dict.fromkeys([*found, *self._first(rare, count, gone)]))

    def _said(self, word: str, times: int) -> tantivy.Query:
        """Without weights of its own tantivy skips what cannot be among the best."""
        clause = self._term("words", word, "freq")
        return clause if times == 1 else tantivy.Query.boost_query(clause, float(times))

    def _term(self, field: str, value: str, index_option: str) -> tantivy.Query:
        return tantivy.Query.term_query(self._fields, field, value, index_option)

    def _first(self, clauses: Sequence[tantivy.Query], count: int, gone: Set[int]) -> list[int]:
        if not clauses:
            return []
        query = clauses[0] if len(clauses) == 1 else _any(clauses)
        limit = count + _SLACK
        if self._anchors * _RARE < self._documents:
            query = self._among_anchors(query)
        else:
            limit = limit * self._documents // self._anchors
        while True:
            with reading():
                found = self._searcher.search(query, limit, count=False).hits
                numbers, complete = self._live(found, count, gone)
            if complete or len(found) < limit:
                return numbers
            limit *= 4

    def _among_anchors(self, query: tantivy.Query) -> tantivy.Query:
        anchors = tantivy.Query.const_score_query(
            tantivy.Query.term_query(self._fields, "anchor", True, "basic"),  # noqa: FBT003  the value looked for
            0.0,
        )
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, anchors)])

    def _live(
        self, found: Sequence[tuple[float, tantivy.DocAddress]], count: int, gone: Set[int]
    ) -> tuple[list[int], bool]:
        """The `count` best anchors that are not gone, ties settled; whether no more hits are needed for that."""
        numbers: list[int] = []
        scores: list[float] = []
        least = 0.0
        addresses = [address for _, address in found]
        anchors = self._searcher.fast_field_values("anchor", addresses)
        for (score, _), anchor, number in zip(found, anchors, self._numbers_at(addresses), strict=True):
            if len(numbers) >= count and (score < least or len(numbers) >= count + TIED_MAX):
                return _settled(numbers, scores, count), True
            if anchor and number not in gone:
                numbers.append(number)
                scores.append(score)
                if len(numbers) == count:
                    least = score * _TIE
        return _settled(numbers, scores, count), False

    def _numbers_at(self, addresses: list[tantivy.DocAddress]) -> list[int]:
        """The numbers of documents; of the row that holds the position, 0."""
        return [int(number or 0) for number in self._searcher.fast_field_values("number", addresses)]

    def number(self, name: str) -> int | None:
        """The number under which a document is kept; `None` if it is not."""
        if not self._documents or readable(name) != name or not self.having("id", name):
            return None
        hits = self._searcher.search(self._term("id", name, "basic"), 1, count=False).hits
        return self._numbers_at([hits[0][1]])[0] if hits else None

    def documents(self, ids: Sequence[str]) -> dict[str, Document]:
        """The documents kept under these ids. Raises `Halted` where one is damaged."""
        found: dict[str, Document] = {}
        wanted = [self._term("id", name, "basic") for name in ids if readable(name) == name]
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            with reading():
                for _, address in self._searcher.search(_any(some), len(some), count=False).hits:
                    document = stored(self._searcher.doc(address))
                    found[document.id] = document
        return found


def _any(clauses: Sequence[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, clause) for clause in clauses])


def _settled(numbers: list[int], scores: list[float], count: int) -> list[int]:
    """The first `count`; where those that tie with the last are many, all if they begin early, else the oldest."""
    if len(numbers) <= count:
        return numbers
    first = next(at for at, score in enumerate(scores) if score * _TIE <= scores[count - 1])
    if first < count // _EARLY:
        return numbers
    return numbers[:first] + sorted(numbers[first:])[: count - first]
