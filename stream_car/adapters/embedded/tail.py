"""The newest documents, searched in memory for candidates much as tantivy does it on disk.

Promise: finds every document that has one of the terms. Cost: adding or removing a document O(its
distinct terms); a search O(occurrences of its terms in the tail).
"""

from collections import Counter
from collections.abc import Callable, Mapping

from stream_car.ranking.bm25 import Analysed

K1, B = 1.2, 0.75  # as tantivy has them


_NAMED = "="


class Tail:
    """A small inverted index. Documents are replaced by removing them first."""

    def __init__(self) -> None:
        self._postings: dict[str, dict[str, int]] = {}
        self._terms: dict[str, tuple[str, ...]] = {}
        self._lengths: dict[str, int] = {}
        self._tokens = 0

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, name: str, said: Analysed) -> None:
        """Take a document in."""
        counted = Counter(said.text.split())
        for term, count in counted.items():
            self._postings.setdefault(term, {})[name] = count
        named = [named_term(one) for one in said.names.split()]
        for term in named:
            self._postings.setdefault(term, {})[name] = 1
        self._terms[name] = (*counted, *named)
        self._lengths[name] = said.length
        self._tokens += said.length

    def remove(self, name: str) -> None:
        """Forget a document; of an unknown one, nothing."""
        for term in self._terms.pop(name, ()):
            having = self._postings[term]
            del having[name]
            if not having:
                del self._postings[term]
        self._tokens -= self._lengths.pop(name, 0)

    def having(self, term: str) -> int:
        """How many documents have the term."""
        return len(self._postings.get(term, ()))

    def tokens(self) -> int:
        """Terms of all documents, with repeats."""
        return self._tokens

    def best(
        self, weights: Mapping[str, float], average_length: float, count: int, is_one: Callable[[str], bool]
    ) -> list[str]:
        """The `count` documents of these that the terms speak for most, with all that tie with the last."""
        found: dict[str, float] = {}
        unit = K1 * B / (average_length or 1.0)
        lengths = self._lengths
        for term, weight in weights.items():
            is_name = term.startswith(_NAMED)
            for name, said in self._postings.get(term, {}).items():
                part = weight if is_name else weight * said / (said + K1 * (1 - B) + unit * lengths[name])
                found[name] = found.get(name, 0.0) + part
        found = {name: score for name, score in found.items() if is_one(name)}
        least = sorted(found.values(), reverse=True)[count - 1] if len(found) > count else 0.0
        return [name for name, score in found.items() if score >= least]


def named_term(name: str) -> str:
    """A name as a term of its own; no word of a text has this sign."""
    return _NAMED + name
