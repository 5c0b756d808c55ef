"""What was applied to the text index and is not found on disk yet: the latest change of each id.

Promise: until `forget_sealed`, everything that was put in is found by id and in the tail. Sealed documents are
forgotten together, except ids that changed again since. Cost: a microsecond per document; `forget_sealed` costs next to
nothing, because the memory is given back in small pieces later.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from stream_car.adapters.search.memory import Tail, TermCounts
from stream_car.core.documents import Document
from stream_car.core.scope_names import scope_parts
from stream_car.ports import IndexedDocument, Pairs
from stream_car.ranking.bm25 import DocumentTerms

_FREED_PER_PUT = 2  # documents of an earlier commit whose memory is given back
_FREED_PER_SEARCH = 50


def has_pairs(scopes: Iterable[str], pairs: Pairs) -> bool:
    """Return whether each of these pairs is in one of the scopes."""
    return not pairs or set(pairs) <= {pair for scope in scopes for pair in scope_parts(scope)}


class UncommittedDocument(Struct, frozen=True, gc=False):
    """A document as it was applied, its number in the term store, and its terms."""

    indexed: IndexedDocument
    number: int
    terms: DocumentTerms


class UncommittedDocuments:
    """Two parts: the sealed changes, which are being committed, and the open ones, which came since.

    `None` is stored for an id that was dropped.
    """

    def __init__(self) -> None:
        self.tail = Tail()
        self.ghosts = TermCounts()  # documents on disk that are replaced, by number: they count there, and must not
        self.replaced: list[int] = []  # numbers that nothing refers to once all of this is committed
        self.characters = 0  # of the open documents
        self._examined = 0  # how many of `replaced` `new_ghosts` has returned or left out
        self._open: dict[str, UncommittedDocument | None] = {}
        self._sealed: dict[str, UncommittedDocument | None] = {}
        self._open_outside_tail: dict[str, DocumentTerms] = {}
        self._sealed_outside_tail: dict[str, DocumentTerms] = {}
        self._sealed_replaced = 0  # how many of `replaced` belong to the sealed part
        self._freed: dict[str, UncommittedDocument | None] = {}  # committed; to be given back in small pieces

    def __len__(self) -> int:
        return len(self._open) + len(self._sealed)

    def __contains__(self, document_id: str) -> bool:
        return document_id in self._open or document_id in self._sealed

    @property
    def outside_tail(self) -> int:
        """The number of documents that the tail lacks."""
        return len(self._open_outside_tail) + len(self._sealed_outside_tail)

    def _get(self, document_id: str) -> UncommittedDocument | None:
        """Return the document of an id that is in here; `None` if it was dropped."""
        return self._open[document_id] if document_id in self._open else self._sealed[document_id]

    def _number(self, document_id: str) -> int | None:
        document = self._get(document_id)
        return document.number if document is not None else None

    def _is_anchor(self, document_id: str, within: Pairs) -> bool:
        document = self._get(document_id)
        return document is not None and document.indexed.anchor and has_pairs(document.indexed.scopes, within)

    def anchors_within(self, pairs: Pairs) -> Iterator[str]:
        """Yield the ids of the anchors in here that have these pairs."""
        return (document_id for document_id in (*self._open, *self._sealed) if self._is_anchor(document_id, pairs))

    def documents(self, ids: Iterable[str]) -> dict[str, Document]:
        """Return the documents with these ids that are in here and were not dropped."""
        known = ((document_id, self._get(document_id)) for document_id in ids if document_id in self)
        return {document_id: document.indexed.document for document_id, document in known if document is not None}

    def best(self, weights: Mapping[str, float], average_length: float, count: int, within: Pairs) -> list[int]:
        """Return the numbers of the anchors with these pairs in the tail that score highest by these terms."""
        best = self.tail.best(weights, average_length, count, lambda name: self._is_anchor(name, within))
        return [number for document_id in best if (number := self._number(document_id)) is not None]

    def put(
        self, document_id: str, document: UncommittedDocument | None, number_on_disk: Callable[[str], int | None]
    ) -> int | None:
        """Set the latest change of an id (`None`: dropped). Return the number of what it replaces, here or on disk."""
        is_new = document_id not in self
        number = number_on_disk(document_id) if is_new else self._number(document_id)
        if number is not None:
            self.replaced.append(number)
        if not is_new:
            self.tail.remove(document_id)
            self._open_outside_tail.pop(document_id, None)
            self._sealed_outside_tail.pop(document_id, None)
        self._open[document_id] = document
        if document is not None:
            self._open_outside_tail[document_id] = document.terms
            self.characters += len(document.terms.text)
        self._free(_FREED_PER_PUT)
        return number

    def _free(self, limit: int) -> None:
        for _ in range(min(limit, len(self._freed))):
            self._freed.popitem()

    def new_ghosts(self, last_on_disk: int) -> list[int]:
        """Return the numbers of documents on disk, up to `last_on_disk`, that were replaced since the last call."""
        new, self._examined = self.replaced[self._examined :], len(self.replaced)
        return [number for number in new if number <= last_on_disk]

    def fill_tail(self) -> None:
        """Add the documents to the tail that it lacks."""
        for document_id, terms in self._sealed_outside_tail.items():
            self.tail.add_sealed(document_id, terms)
        for document_id, terms in self._open_outside_tail.items():
            self.tail.add(document_id, terms)
        self._sealed_outside_tail, self._open_outside_tail = {}, {}
        self._free(_FREED_PER_SEARCH)

    def seal(self) -> None:
        """Seal everything: a commit of it begins. What a failed commit did not bring to disk is part of it."""
        self._sealed = {**self._sealed, **self._open} if self._sealed else self._open
        self._sealed_outside_tail = {**self._sealed_outside_tail, **self._open_outside_tail}
        self._open, self._open_outside_tail = {}, {}
        self._sealed_replaced = len(self.replaced)
        self.tail.seal()
        self.characters = 0

    def forget_sealed(self) -> list[int]:
        """Forget the sealed part, which is on disk now. Returns the numbers that nothing refers to any more."""
        self._freed, self._sealed, self._sealed_outside_tail = self._sealed, {}, {}
        self.tail.forget_sealed()
        self.ghosts, self._examined = TermCounts(), 0
        unused, self.replaced = self.replaced[: self._sealed_replaced], self.replaced[self._sealed_replaced :]
        self._sealed_replaced = 0
        return unused
