"""The newest documents, searched in memory with the formula and the rounding that tantivy uses.

Promise: for equal statistics a document's score here equals its score on disk. Cost: adding or
removing a document O(its distinct terms); a search O(occurrences of its terms in the tail).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from math import log

K1, B = 1.2, 0.75


def _lengths() -> tuple[int, ...]:
    """The 256 lengths that one byte can tell apart: exact up to 40, then in steps of about an eighth."""
    lengths = list(range(41))
    step = 2
    while len(lengths) < 256:
        lengths += [lengths[-1] + step * (n + 1) for n in range(8)]
        step *= 2
    return tuple(lengths[:256])


LENGTHS = _lengths()


def kept_length(tokens: int) -> int:
    """A document's length as the index remembers it."""
    return LENGTHS[bisect_right(LENGTHS, tokens) - 1]


def idf(documents: int, having: int) -> float:
    """The weight of a term that `having` of all documents have."""
    return log(1 + (documents - having + 0.5) / (having + 0.5))


class Tail:
    """A small inverted index. Documents are replaced by removing them first."""

    def __init__(self) -> None:
        self._postings: dict[str, dict[str, int]] = {}
        self._terms: dict[str, tuple[str, ...]] = {}
        self._lengths: dict[str, int] = {}
        self._tokens = 0

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, name: str, tokens: Sequence[str]) -> None:
        """Take a document in, given its analysed words."""
        counted = Counter(tokens)
        for term, count in counted.items():
            self._postings.setdefault(term, {})[name] = count
        self._terms[name] = tuple(counted)
        self._lengths[name] = kept_length(len(tokens))
        self._tokens += len(tokens)

    def remove(self, name: str) -> None:
        """Forget a document; of an unknown one, nothing."""
        for term in self._terms.pop(name, ()):
            having = self._postings[term]
            self._tokens -= having.pop(name)
            if not having:
                del self._postings[term]
        self._lengths.pop(name, None)

    def having(self, term: str) -> int:
        """How many documents have the term."""
        return len(self._postings.get(term, ()))

    def average_length(self) -> float:
        """Tokens a document."""
        return self._tokens / len(self._terms) if self._terms else 0.0

    def scores(self, weights: Mapping[str, float], average_length: float) -> dict[str, float]:
        """The score of every document that has one of these terms."""
        found: dict[str, float] = {}
        unit = K1 * B / (average_length or 1.0)
        lengths = self._lengths
        for term, weight in weights.items():
            full = weight * (K1 + 1)
            for name, count in self._postings.get(term, {}).items():
                part = full * count / (count + K1 * (1 - B) + unit * lengths[name])
                found[name] = found.get(name, 0.0) + part
        return found
