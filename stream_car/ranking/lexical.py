"""The paper's lexical baseline, over whole texts: BM25 (k1 = 1.5, b = 0.75).

Promise: pure. No stemming, no stop words, no titles; equal scores keep the order of the documents. This is what
the paper compares with, not what the engine uses. Cost: a query adds up the postings of its words.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest
from math import log

from stream_car.ranking.analysis import words

K1 = 1.5
B = 0.75


class LexicalRanker:
    """Ranks documents by the words of their texts: a word has a weight in each document and one in the query."""

    def __init__(
        self, ids: Sequence[str], vectors: Iterable[Mapping[str, float]], query_weight: Callable[[str], float]
    ) -> None:
        """Prepare a ranking. `vectors` are the weights of the words of each document."""
        self.ids = ids
        self._indexes = {name: index for index, name in enumerate(ids)}
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for index, vector in enumerate(vectors):
            for word, weight in vector.items():
                self._postings.setdefault(word, []).append((index, weight))
        self._query_weight = query_weight

    def scores(self, text: str) -> list[float]:
        """Return the score of every document for a query, in the order of the documents."""
        scores = [0.0] * len(self.ids)
        for word, count in Counter(words(text)).items():
            in_query = count * self._query_weight(word)
            for index, in_document in self._postings.get(word, ()):
                scores[index] += in_query * in_document
        return scores

    def rank(self, text: str, limit: int | None = None) -> list[str]:
        """Return the best `limit` documents, or all; those without a word of the query come last."""
        scores = self.scores(text)
        indexes: Iterable[int] = range(len(scores))
        if limit is None:
            best = sorted(indexes, key=lambda index: -scores[index])
        else:
            best = nlargest(limit, indexes, key=lambda index: (scores[index], -index))
        return [self.ids[index] for index in best]

    def best(self, scores: Sequence[float], names: Iterable[str]) -> float:
        """Return the best score of these documents."""
        return max((scores[self._indexes[name]] for name in names if name in self._indexes), default=0.0)


def bm25(texts: Mapping[str, str], *, k1: float = K1, b: float = B) -> LexicalRanker:
    """Return a ranker by Robertson's BM25; the weight of a word is never negative."""
    counts = [Counter(words(text)) for text in texts.values()]
    lengths = [count.total() for count in counts]
    average = (sum(lengths) / len(lengths) if lengths else 1.0) or 1.0
    frequencies = Counter(word for count in counts for word in count)

    def weight(count: int, length: int) -> float:
        return count * (k1 + 1) / (count + k1 * (1 - b + b * length / average))

    def idf(word: str) -> float:
        return log(1 + (len(counts) - frequencies[word] + 0.5) / (frequencies[word] + 0.5))

    vectors = [
        {word: weight(count, length) for word, count in words_of_text.items()}
        for words_of_text, length in zip(counts, lengths, strict=True)
    ]
    return LexicalRanker(list(texts), vectors, idf)
