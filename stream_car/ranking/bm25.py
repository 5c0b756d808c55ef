"""BM25 with its own parameters, over analysed texts.

Promise: the score depends on the question, the document and the collection's statistics alone. However
long a question is, at most `TERMS_MAX` of its words and `NAMES_MAX` of its names count, the rarest ones.
Cost: for up to eight words a scan of the document's analysed text for each, about half a microsecond a
kilobyte; for more, one pass over its words, about seven microseconds a kilobyte.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import log

from msgspec import Struct

from stream_car.ranking.settings import Settings

TERMS_MAX = 64  # distinct terms of a question that count
NAMES_MAX = 32  # names in a question that count
COMMON = 10_000  # documents; a word that fewer have is looked through in no time

_FEW = 8  # so many terms are looked for one by one


class DocumentTerms(Struct, frozen=True, gc=False):
    """A document as it is scored. `text` and `names` are made by `joined`."""

    text: str
    names: str
    length: int


class QueryWeights(Struct, frozen=True):
    """A question whose parts carry the weights that they have in a collection, in the question's order."""

    terms: tuple[tuple[str, str, float], ...]  # as it is, and as it stands in a document
    pairs: tuple[tuple[str, str, str, float], ...]  # both terms, and as they stand in a document
    names: tuple[tuple[str, float], ...]
    average_length: float
    known: frozenset[str]  # the terms


def joined(terms: Collection[str]) -> str:
    """Terms in one string in which each stands between spaces of its own, so that it can be counted."""
    return f" {'  '.join(terms)} " if terms else ""


def idf(documents: int, having: int) -> float:
    """The weight of a term that `having` of all documents have."""
    return log(1 + (documents - having + 0.5) / (having + 0.5))


def rarest(having: Mapping[str, int], most: int) -> dict[str, int]:
    """Those that some document has, in their order; of more than `most` the ones that the fewest have."""
    found = {one: count for one, count in having.items() if count}
    if len(found) <= most:
        return found
    kept = set(sorted(found, key=found.__getitem__)[:most])  # stable: of equals the first
    return {one: count for one, count in found.items() if one in kept}


def counted(said: Iterable[str], known: Mapping[str, int]) -> dict[str, int]:
    """How often a question says each of these terms."""
    counts = Counter(filter(known.__contains__, said))
    return {term: counts[term] for term in known}


def proposing(counts: Mapping[str, int], having: Mapping[str, int], documents: int) -> dict[str, int]:
    """Of a question's words those that candidates are looked for by; all of them count in the score.

    Left out are the commonest, as far as more than `COMMON` documents have each, and together they carry
    at most an eighth of the question's information: looking through them costs most and tells least.
    """
    kept = dict(counts)
    if max(having.values(), default=0) <= COMMON:
        return kept
    weights = {term: count * idf(documents, having[term]) for term, count in counts.items()}
    rest = sum(weights.values()) / 8
    for term in sorted(counts, key=having.__getitem__, reverse=True):
        rest -= weights[term]
        if rest < 0 or having[term] <= COMMON:
            break
        del kept[term]
    return kept


def query_weights(
    said: Sequence[str],
    terms: Mapping[str, int],
    names: Mapping[str, int],
    documents: int,
    average_length: float,
    settings: Settings,
) -> QueryWeights:
    """A question with weights, from how many of all documents have each of its terms and names.

    Two neighbouring words weigh as much as the rarer of them, times `pairs`.
    """
    full = {term: (settings.k1 + 1) * idf(documents, having) for term, having in terms.items()}
    pairs = Counter(pair for pair in pairwise(said) if pair[0] in full and pair[1] in full) if settings.pairs else {}
    return QueryWeights(
        tuple((term, f" {term} ", count * full[term]) for term, count in counted(said, terms).items()),
        tuple(
            (first, second, f" {first}  {second} ", settings.pairs * count * max(full[first], full[second]))
            for (first, second), count in pairs.items()
        ),
        tuple((f" {one} ", settings.names * idf(documents, having)) for one, having in names.items()),
        average_length or 1.0,
        frozenset(full),
    )


def score(question: QueryWeights, document: DocumentTerms, settings: Settings) -> float:
    """How much a document's words, word pairs and names speak for it, in nats."""
    damping = settings.k1 * (1 - settings.b + settings.b * document.length / question.average_length)
    text, total = document.text, 0.0
    counts = _counts(question, text)
    for term, _, weight in question.terms:
        if term in counts:
            count = counts[term]
            total += weight * count / (count + damping)
    for first, second, pair, weight in question.pairs:
        if first in counts and second in counts and (count := text.count(pair)):
            total += weight * count / (count + damping)
    for name, weight in question.names:
        if name in document.names:
            total += weight
    return total


def _counts(question: QueryWeights, text: str) -> dict[str, int]:
    """How often a document says each term of the question that it says at all."""
    if len(question.terms) <= _FEW:
        return {term: count for term, alone, _ in question.terms if (count := text.count(alone))}
    counts: dict[str, int] = {}
    for term in filter(question.known.__contains__, text.split()):
        counts[term] = counts.get(term, 0) + 1
    return counts
