"""The paper's lexical rankers, over whole texts: BM25 (k1 = 1.5, b = 0.75) and TF-IDF with cosine.

Promise: pure; neither stems nor stop words, titles left out, equal scores in the order of the
documents: what the paper compares with, not what the engine does. Cost: a question adds up the
postings of its words.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest
from math import log, sqrt

from stream_car.ranking.analysis import words

K1 = 1.5
B = 0.75
Postings = Mapping[str, Sequence[tuple[int, float]]]


class LexicalRanker:
    """Documents by the words of their texts: a word's weight in each, and in the question."""

    def __init__(self, ids: Sequence[str], postings: Postings, asked: Callable[[str], float]) -> None:
        self.ids = ids
        self._places = {name: place for place, name in enumerate(ids)}
        self._postings = postings
        self._asked = asked

    def scores(self, text: str) -> list[float]:
        """The score of every document, in their order."""
        found = [0.0] * len(self.ids)
        for word, count in Counter(words(text)).items():
            weight = count * self._asked(word)
            for place, share in self._postings.get(word, ()):
                found[place] += weight * share
        return found

    def rank(self, text: str, limit: int | None = None) -> list[str]:
        """The best documents, or all of them, best first; those without a word of the question last."""
        found = self.scores(text)
        places: Iterable[int] = range(len(found))
        if limit is None:
            best = sorted(places, key=lambda place: -found[place])
        else:
            best = nlargest(limit, places, key=lambda place: (found[place], -place))
        return [self.ids[place] for place in best]

    def best(self, scores: Sequence[float], names: Iterable[str]) -> float:
        """The best of these scores that one of these documents has."""
        return max((scores[self._places[name]] for name in names if name in self._places), default=0.0)


def bm25(texts: Mapping[str, str], *, k1: float = K1, b: float = B) -> LexicalRanker:
    """Robertson's BM25; the weight of a word never falls below zero."""
    counts = [Counter(words(text)) for text in texts.values()]
    lengths = [sum(one.values()) for one in counts]
    average = sum(lengths) / len(lengths) if lengths else 1.0
    having = Counter(word for one in counts for word in one)
    total = len(counts)

    def weight(count: int, length: int) -> float:
        return count * (k1 + 1) / (count + k1 * (1 - b + b * length / (average or 1.0)))

    def asked(word: str) -> float:
        return log(1 + (total - having[word] + 0.5) / (having[word] + 0.5))

    return LexicalRanker(
        list(texts), _postings([{w: weight(n, sum(one.values())) for w, n in one.items()} for one in counts]), asked
    )


def tfidf(texts: Mapping[str, str]) -> LexicalRanker:
    """Cosine of counts times smoothed idf, `1 + log((1 + N) / (1 + n))`; the question's length changes no order."""
    counts = [Counter(words(text)) for text in texts.values()]
    having = Counter(word for one in counts for word in one)
    total = len(counts)

    def idf(word: str) -> float:
        return 1 + log((1 + total) / (1 + having[word]))

    vectors = [{word: count * idf(word) for word, count in one.items()} for one in counts]
    return LexicalRanker(list(texts), _postings([_unit(one) for one in vectors]), idf)


def _unit(vector: Mapping[str, float]) -> dict[str, float]:
    length = sqrt(sum(value * value for value in vector.values())) or 1.0
    return {word: value / length for word, value in vector.items()}


def _postings(vectors: Sequence[Mapping[str, float]]) -> dict[str, list[tuple[int, float]]]:
    found: dict[str, list[tuple[int, float]]] = {}
    for place, vector in enumerate(vectors):
        for word, value in vector.items():
            found.setdefault(word, []).append((place, value))
    return found
