"""BM25 with its own parameters, over analysed texts.

Promise: the score depends on the question, the document and the collection's statistics alone.
Cost: a scan of the document's analysed text for each word of the question, about a quarter of a
microsecond a kilobyte.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import log

from msgspec import Struct

from stream_car.ranking.settings import Settings

TERMS_MAX = 256  # distinct terms of a question that count, the first ones


class Analysed(Struct, frozen=True, gc=False):
    """A document as it is scored. `text` and `names` are made by `joined`."""

    text: str
    names: str
    length: int


class Weighed(Struct, frozen=True):
    """A question whose parts carry the weights that they have in a collection."""

    terms: tuple[tuple[str, float], ...]
    pairs: tuple[tuple[str, str, float], ...]  # with the first of the two terms
    names: tuple[tuple[str, float], ...]
    average_length: float


def joined(terms: Sequence[str]) -> str:
    """Terms in one string in which each stands between spaces of its own, so that it can be counted."""
    return f" {'  '.join(terms)} " if terms else ""


def idf(documents: int, having: int) -> float:
    """The weight of a term that `having` of all documents have."""
    return log(1 + (documents - having + 0.5) / (having + 0.5))


def counted(terms: Sequence[str]) -> dict[str, int]:
    """How often a question says each of its terms."""
    counts: dict[str, int] = {}
    for term in terms:
        if term in counts or len(counts) < TERMS_MAX:
            counts[term] = counts.get(term, 0) + 1
    return counts


def weighed(
    terms: Sequence[str],
    names: Sequence[str],
    weight: Callable[[str], float],
    name_weight: Callable[[str], float],
    average_length: float,
    settings: Settings,
) -> Weighed:
    """A question with weights. Two neighbouring words weigh as much as the rarer of them, times `pairs`."""
    counts = counted(terms)
    full = {term: (settings.k1 + 1) * weight(term) for term in counts}
    pairs = Counter(pair for pair in pairwise(terms) if pair[0] in full and pair[1] in full) if settings.pairs else {}
    return Weighed(
        tuple((f" {term} ", count * full[term]) for term, count in counts.items()),
        tuple(
            (f" {first}  {second} ", f" {first} ", settings.pairs * count * max(full[first], full[second]))
            for (first, second), count in pairs.items()
        ),
        tuple((f" {one} ", settings.names * name_weight(one)) for one in names) if settings.names else (),
        average_length or 1.0,
    )


def score(question: Weighed, document: Analysed, settings: Settings) -> float:
    """How much a document's words, word pairs and names speak for it, in nats."""
    damping = settings.k1 * (1 - settings.b + settings.b * document.length / question.average_length)
    text, total = document.text, 0.0
    said = set()
    for term, weight in question.terms:
        if count := text.count(term):
            said.add(term)
            total += weight * count / (count + damping)
    for pair, first, weight in question.pairs:
        if first in said and (count := text.count(pair)):
            total += weight * count / (count + damping)
    for name, weight in question.names:
        if name in document.names:
            total += weight
    return total
