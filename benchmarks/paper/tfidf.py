"""The paper's TF-IDF baseline with cosine, over whole texts. Words are those of BM25: no stemming, no stop words."""

from collections import Counter
from collections.abc import Mapping
from math import log, sqrt

from stream_car.ranking.analysis import words
from stream_car.ranking.lexical import LexicalRanker


def tfidf(texts: Mapping[str, str]) -> LexicalRanker:
    """Return a ranker by the cosine of counts times smoothed idf, `1 + log((1 + N) / (1 + n))`.

    The length of the query's vector is left out, because it does not change the order.
    """
    counts = [Counter(words(text)) for text in texts.values()]
    frequencies = Counter(word for count in counts for word in count)

    def idf(word: str) -> float:
        return 1 + log((1 + len(counts)) / (1 + frequencies[word]))

    vectors = [{word: count * idf(word) for word, count in words_of_text.items()} for words_of_text in counts]
    return LexicalRanker(list(texts), map(_unit, vectors), idf)


def _unit(vector: Mapping[str, float]) -> dict[str, float]:
    length = sqrt(sum(value * value for value in vector.values())) or 1.0
    return {word: value / length for word, value in vector.items()}
