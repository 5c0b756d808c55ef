"""BM25 with its own parameters, over analysed texts.

Promise: the score depends only on the query, the document and the statistics of the collection. However long
a query is, at most `TERMS_MAX` of its terms and `NAMES_MAX` of its names count, the rarest ones. Cost: for up
to eight terms a scan of the document's analysed text for each, about half a microsecond per kilobyte; for
more, one pass over its terms, about seven microseconds per kilobyte.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import log

from msgspec import Struct

from stream_car.ranking.settings import Settings

TERMS_MAX = 64  # distinct terms of a query that count
NAMES_MAX = 32  # names in a query that count
COMMON = 10_000  # documents; to search those of a rarer term costs next to nothing

_FEW = 8  # up to this number, each term is counted by a scan of its own


class DocumentTerms(Struct, frozen=True, gc=False):
    """A document as it is scored. `joined` makes `text` and `names`; `length` is in terms."""

    text: str
    names: str
    length: int


class QueryWeights(Struct, frozen=True):
    """A query with the weight that each of its parts has in a collection, in the order of the query."""

    terms: tuple[tuple[str, str, float], ...]  # the term, the term as `joined` writes it, its weight
    pairs: tuple[tuple[str, str, str, float], ...]  # both terms, the pair as `joined` writes it, its weight
    names: tuple[tuple[str, float], ...]  # the name as `joined` writes it, its weight
    average_length: float  # of the collection's documents, in terms
    known: frozenset[str]  # the terms


def join_terms(terms: Collection[str]) -> str:
    """Return the terms in one string, each between spaces of its own, so that `str.count` can count each term."""
    return f" {'  '.join(terms)} " if terms else ""


def idf(documents: int, having: int) -> float:
    """Return the inverse document frequency of a term that `having` of all documents contain, in nats."""
    return log(1 + (documents - having + 0.5) / (having + 0.5))


def rarest_terms(having: Mapping[str, int], limit: int) -> dict[str, int]:
    """Return the terms that some document contains, in their order; if there are more than `limit`, the rarest.

    `having` has the document frequency of each term.
    """
    present = {term: frequency for term, frequency in having.items() if frequency}
    if len(present) <= limit:
        return present
    chosen = set(sorted(present, key=present.__getitem__)[:limit])  # stable: of equally rare ones the first
    return {term: frequency for term, frequency in present.items() if term in chosen}


def count_terms(query_terms: Iterable[str], known: Mapping[str, int]) -> dict[str, int]:
    """Return how often each known term occurs in a query."""
    counts = Counter(filter(known.__contains__, query_terms))
    return {term: counts[term] for term in known}


def terms_to_search(counts: Mapping[str, int], having: Mapping[str, int], documents: int) -> dict[str, int]:
    """Return the terms of a query by which candidates are searched; all of its terms count in the score.

    The most common terms are left out, as long as more than `COMMON` documents contain each of them and together they
    carry at most an eighth of the query's information: to search them costs most and contributes least. `having` has
    the document frequencies.
    """
    searched = dict(counts)
    if max(having.values(), default=0) <= COMMON:
        return searched
    information = {term: count * idf(documents, having[term]) for term, count in counts.items()}
    allowance = sum(information.values()) / 8
    for term in sorted(counts, key=having.__getitem__, reverse=True):
        allowance -= information[term]
        if allowance < 0 or having[term] <= COMMON:
            break
        del searched[term]
    return searched


def query_weights(
    query_terms: Sequence[str],
    terms: Mapping[str, int],
    names: Mapping[str, int],
    documents: int,
    average_length: float,
    settings: Settings,
) -> QueryWeights:
    """Return a query with weights; `terms` and `names` have the document frequency of each.

    A pair of neighbouring terms weighs as much as the rarer one, times `settings.pairs`.
    """
    full = {term: (settings.k1 + 1) * idf(documents, frequency) for term, frequency in terms.items()}
    neighbours = (pair for pair in pairwise(query_terms) if pair[0] in full and pair[1] in full)
    pairs = Counter(neighbours) if settings.pairs else {}
    return QueryWeights(
        tuple((term, f" {term} ", count * full[term]) for term, count in count_terms(query_terms, terms).items()),
        tuple(
            (first, second, f" {first}  {second} ", settings.pairs * count * max(full[first], full[second]))
            for (first, second), count in pairs.items()
        ),
        tuple((f" {name} ", settings.names * idf(documents, frequency)) for name, frequency in names.items()),
        average_length or 1.0,
        frozenset(full),
    )


def score(query: QueryWeights, document: DocumentTerms, settings: Settings) -> float:
    """Return the score of a document in nats: the sum over the terms, pairs and names of the query that it contains."""
    damping = settings.k1 * (1 - settings.b + settings.b * document.length / query.average_length)
    text, total = document.text, 0.0
    counts = _counts_in(query, text)
    for term, _, weight in query.terms:
        if term in counts:
            count = counts[term]
            total += weight * count / (count + damping)
    for first, second, pair, weight in query.pairs:
        if first in counts and second in counts and (count := text.count(pair)):
            total += weight * count / (count + damping)
    for name, weight in query.names:
        if name in document.names:
            total += weight
    return total


def _counts_in(query: QueryWeights, text: str) -> dict[str, int]:
    """Return how often a document contains each term of the query, without those that it does not contain."""
    if len(query.terms) <= _FEW:
        return {term: count for term, alone, _ in query.terms if (count := text.count(alone))}
    counts: dict[str, int] = {}
    for term in filter(query.known.__contains__, text.split()):
        counts[term] = counts.get(term, 0) + 1
    return counts
