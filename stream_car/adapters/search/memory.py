"""The newest documents, searched in memory for candidates much as tantivy does it on disk.

Promise: every document that has one of the terms is found. Cost: ten microseconds to add a document of 1 KB. A search
takes half a microsecond per document, and as much again for every term that a document has. Forgetting the sealed
documents costs next to nothing.
"""

from collections.abc import Callable, Iterator, Mapping

from stream_car.ranking.bm25 import DocumentTerms

K1, B = 1.2, 0.75  # tantivy's own values

_NAME_PREFIX = "="


class TermCounts:
    """Documents by id, with the set of their terms."""

    def __init__(self) -> None:
        self.documents: dict[str, DocumentTerms] = {}
        self.terms: dict[str, set[str]] = {}
        self.frequencies: dict[str, int] = {}

    def add(self, document_id: str, document: DocumentTerms) -> None:
        terms = set(document.text.split())
        terms.update(map(name_term, document.names.split()))
        frequencies = self.frequencies
        for term in terms:
            frequencies[term] = frequencies.get(term, 0) + 1
        self.documents[document_id], self.terms[document_id] = document, terms

    def remove(self, document_id: str) -> None:
        for term in self.terms.pop(document_id):
            self.frequencies[term] -= 1
        del self.documents[document_id]


class Tail:
    """Two parts: the sealed documents, which are being committed, and the open ones, which came since.

    To replace a document, remove it and add it again.
    """

    def __init__(self) -> None:
        self._sealed = TermCounts()
        self._open = TermCounts()

    def __len__(self) -> int:
        return len(self._sealed.documents) + len(self._open.documents)

    def add(self, document_id: str, document: DocumentTerms) -> None:
        """Add an open document."""
        self._open.add(document_id, document)

    def add_sealed(self, document_id: str, document: DocumentTerms) -> None:
        """Add a document that was sealed before it was added."""
        self._sealed.add(document_id, document)

    def remove(self, document_id: str) -> None:
        """Remove a document. An unknown id is ignored."""
        for part in (self._open, self._sealed):
            if document_id in part.documents:
                part.remove(document_id)

    def seal(self) -> None:
        """Seal all documents, so that they can be forgotten together."""
        for document_id, document in self._sealed.documents.items():
            self._open.add(document_id, document)
        self._sealed, self._open = self._open, TermCounts()

    def forget_sealed(self) -> None:
        """Remove the sealed documents."""
        self._sealed = TermCounts()

    def document_frequency(self, term: str) -> int:
        """Return the number of documents that have the term."""
        return self._sealed.frequencies.get(term, 0) + self._open.frequencies.get(term, 0)

    def best(
        self, weights: Mapping[str, float], average_length: float, count: int, is_anchor: Callable[[str], bool]
    ) -> list[str]:
        """Return the `count` anchors with the highest scores, and all that tie with the last of them.

        `weights` has the weight of each term of the query.
        """
        unit = K1 * B / (average_length or 1.0)
        scores: dict[str, float] = {}
        for document_id, document, terms in self._all():
            common = weights.keys() & terms
            if common and is_anchor(document_id):
                damping = K1 * (1 - B) + unit * document.length
                scores[document_id] = sum(
                    _term_score(term, weights[term], document, damping) for term in sorted(common)
                )
        lowest = sorted(scores.values(), reverse=True)[count - 1] if len(scores) > count else 0.0
        return [document_id for document_id, score in scores.items() if score >= lowest]

    def _all(self) -> Iterator[tuple[str, DocumentTerms, set[str]]]:
        for part in (self._sealed, self._open):
            yield from (
                (document_id, document, part.terms[document_id]) for document_id, document in part.documents.items()
            )


def _term_score(term: str, weight: float, document: DocumentTerms, damping: float) -> float:
    if term.startswith(_NAME_PREFIX):
        return weight
    count = document.text.count(f" {term} ")
    return weight * count / (count + damping)


def name_term(name: str) -> str:
    """Return a name as a term. The prefix sets it apart: no word of a text has this character."""
    return _NAME_PREFIX + name
