"""A query as an index reads it: first its words and names, then how candidates are found and weighed.

Promise: a plan depends only on the query, on the frequencies and on the statistics of the collection. Of a longer query
the rarest `TERMS_MAX` words and the rarest `NAMES_MAX` names count.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from stream_car.ranking.analysis import possible_names, terms
from stream_car.ranking.bm25 import (
    NAMES_MAX,
    TERMS_MAX,
    DocumentTerms,
    QueryWeights,
    count_terms,
    query_weights,
    rarest_terms,
    score,
    terms_to_search,
)
from stream_car.ranking.settings import Settings


class QueryTerms(Struct, frozen=True, gc=False):
    """The terms of a query in order, with repeats, and every name that it could mention."""

    words: Sequence[str]
    names: Sequence[str]

    @property
    def may_be_cut(self) -> bool:
        """Whether the query has more words than count."""
        return len(set(self.words)) > TERMS_MAX


class QueryPlan(Struct, frozen=True):
    """How a collection is searched for a query."""

    terms_to_search: Mapping[str, int]  # the terms that propose candidates, with their count in the query
    names: Mapping[str, int]  # the names that propose candidates, with their document frequency
    weights: QueryWeights
    ignored: int  # terms that some document has, but that do not count

    def scores(self, documents: Iterable[DocumentTerms], settings: Settings) -> list[float]:
        """Return the score of each document, to five digits: further ones depend on the order of addition."""
        return [float(f"{score(self.weights, document, settings):.5g}") for document in documents]


def read_query(text: str, settings: Settings) -> QueryTerms:
    """Return the words and names of a query, read as those of a document are."""
    return QueryTerms(terms(text, stems=settings.stems), possible_names(text) if settings.names else ())


def plan_query(
    query: QueryTerms,
    words: Mapping[str, int],
    names: Mapping[str, int],
    *,
    documents: int,
    average_length: float,
    settings: Settings,
) -> QueryPlan:
    """Return how to search a collection of `documents`.

    Args:
        words: the document frequency of each word of the query.
        names: the document frequency of each name in the query.
        documents: how many documents the collection has.
        average_length: of a document, in terms.
        settings: the parameters of the ranking.
    """
    counting, mentioned = rarest_terms(words, TERMS_MAX), rarest_terms(names, NAMES_MAX)
    return QueryPlan(
        terms_to_search=terms_to_search(count_terms(query.words, counting), counting, documents),
        names=mentioned,
        weights=query_weights(query.words, counting, mentioned, documents, average_length, settings),
        ignored=sum(map(bool, words.values())) - len(counting),
    )
