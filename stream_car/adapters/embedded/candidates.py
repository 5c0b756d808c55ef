"""Candidates on disk: the anchors that tantivy's own score puts first, by words and by rare names.

Promise: of the question's words all of the best are found, with those that tie with the last as far as
`TIED_MAX`; beyond, tantivy's order decides. A rare name proposes whoever has it, even if no word of
theirs fits. Cost: about half a millisecond for eight words at 10^5 documents; a hit 100 ns.
"""

from collections.abc import Mapping, Sequence, Set

import tantivy

from stream_car.adapters.embedded.rows import Statistics, rounded
from stream_car.adapters.embedded.writer import reading

TIED_MAX = 1000  # candidates beyond the wanted ones

_SLACK = 16  # hits asked for beyond the wanted, for ties
_RARE = 4  # where fewer than one document in so many is an anchor, tantivy is told to look for anchors only


class Candidates:
    """What one commit holds."""

    def __init__(self, fields: tantivy.Schema, searcher: tantivy.Searcher, statistics: Statistics) -> None:
        self._fields = fields
        self._searcher = searcher
        self._documents = statistics.documents
        self._anchors = statistics.anchors

    def best(self, terms: Mapping[str, int], names: Mapping[str, int], count: int, gone: Set[int]) -> Sequence[int]:
        """Numbers of the `count` best anchors by words, and of as many by names that so few have; none of the `gone`.

        `terms` says how often each is asked for, `names` how many documents have each. A name that many have
        adds to scores, and proposes nothing.
        """
        if not self._anchors:
            return ()
        found = self._first([self._said(term, times) for term, times in terms.items()], count, gone)
        rare = [self._term("names", name, "basic") for name, having in names.items() if having <= count]
        return list(dict.fromkeys([*found, *self._first(rare, count, gone)]))

    def _said(self, term: str, times: int) -> tantivy.Query:
        """Without weights of its own tantivy skips what cannot be among the best."""
        clause = self._term("words", term, "freq")
        return clause if times == 1 else tantivy.Query.boost_query(clause, float(times))

    def _term(self, field: str, value: str, index_option: str) -> tantivy.Query:
        return tantivy.Query.term_query(self._fields, field, value, index_option)

    def _first(self, clauses: Sequence[tantivy.Query], count: int, gone: Set[int]) -> list[int]:
        if not clauses:
            return []
        query = tantivy.Query.boolean_query([(tantivy.Occur.Should, clause) for clause in clauses])
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
        """The anchors that are not gone, with all that tie with the last; whether it is all of these, or enough."""
        numbers: list[int] = []
        least = 0.0
        addresses = [address for _, address in found]
        anchors = self._searcher.fast_field_values("anchor", addresses)
        for (raw, _), anchor, number in zip(found, anchors, self.numbers_at(addresses), strict=True):
            value = rounded(raw)
            if (len(numbers) >= count and value < least) or len(numbers) >= count + TIED_MAX:
                return numbers, True
            if anchor and number not in gone:
                numbers.append(number)
                if len(numbers) <= count:
                    least = value
        return numbers, False

    def numbers_at(self, addresses: list[tantivy.DocAddress]) -> list[int]:
        """The numbers of documents; of the row that holds the position, 0."""
        return [int(number or 0) for number in self._searcher.fast_field_values("number", addresses)]
