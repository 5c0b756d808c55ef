"""The newest documents, searched in memory for candidates much as tantivy does it on disk.

Promise: finds every document that has one of the terms. Cost: ten microseconds to add a document of
1 KB; a search half a microsecond a document, and as much for every term that one has; forgetting
what was sealed, next to nothing.
"""

from collections.abc import Callable, Iterator, Mapping

from stream_car.ranking.bm25 import DocumentTerms

K1, B = 1.2, 0.75  # as tantivy has them

_NAMED = "="


class _Part:
    """Some documents, by the set of their terms."""

    def __init__(self) -> None:
        self.said: dict[str, DocumentTerms] = {}
        self.terms: dict[str, set[str]] = {}
        self.having: dict[str, int] = {}
        self.tokens = 0

    def add(self, name: str, said: DocumentTerms) -> None:
        terms = set(said.text.split())
        terms.update(map(named_term, said.names.split()))
        having = self.having
        for term in terms:
            having[term] = having.get(term, 0) + 1
        self.said[name], self.terms[name] = said, terms
        self.tokens += said.length

    def remove(self, name: str) -> None:
        for term in self.terms.pop(name):
            self.having[term] -= 1
        self.tokens -= self.said.pop(name).length


class Tail:
    """Two parts: what is being committed, and what came since. Documents are replaced by removing them first."""

    def __init__(self) -> None:
        self._sealed = _Part()
        self._open = _Part()

    def __len__(self) -> int:
        return len(self._sealed.said) + len(self._open.said)

    def add(self, name: str, said: DocumentTerms) -> None:
        """Take a document in."""
        self._open.add(name, said)

    def add_sealed(self, name: str, said: DocumentTerms) -> None:
        """Take a document in that belongs to what was sealed."""
        self._sealed.add(name, said)

    def remove(self, name: str) -> None:
        """Forget a document; of an unknown one, nothing."""
        for part in (self._open, self._sealed):
            if name in part.said:
                part.remove(name)

    def seal(self) -> None:
        """What is here will be forgotten together."""
        for name, said in self._sealed.said.items():
            self._open.add(name, said)
        self._sealed, self._open = self._open, _Part()

    def forget_sealed(self) -> None:
        """Forget what was here at the last `seal`."""
        self._sealed = _Part()

    def having(self, term: str) -> int:
        """How many documents have the term."""
        return self._sealed.having.get(term, 0) + self._open.having.get(term, 0)

    def tokens(self) -> int:
        """Terms of all documents, with repeats."""
        return self._sealed.tokens + self._open.tokens

    def best(
        self, weights: Mapping[str, float], average_length: float, count: int, is_one: Callable[[str], bool]
    ) -> list[str]:
        """The `count` documents of these that the terms speak for most, with all that tie with the last."""
        unit = K1 * B / (average_length or 1.0)
        found: dict[str, float] = {}
        for name, said, terms in self._all():
            common = weights.keys() & terms
            if common and is_one(name):
                damping = K1 * (1 - B) + unit * said.length
                found[name] = sum(_part(term, weights[term], said, damping) for term in sorted(common))
        least = sorted(found.values(), reverse=True)[count - 1] if len(found) > count else 0.0
        return [name for name, score in found.items() if score >= least]

    def _all(self) -> Iterator[tuple[str, DocumentTerms, set[str]]]:
        for part in (self._sealed, self._open):
            yield from ((name, said, part.terms[name]) for name, said in part.said.items())


def _part(term: str, weight: float, said: DocumentTerms, damping: float) -> float:
    if term.startswith(_NAMED):
        return weight
    count = said.text.count(f" {term} ")
    return weight * count / (count + damping)


def named_term(name: str) -> str:
    """A name as a term of its own; no word of a text has this sign."""
    return _NAMED + name
