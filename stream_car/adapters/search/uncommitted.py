"""What the text index was given and does not find on disk yet: the last word on each id.

Promise: until `let_go` everything that was put here is found, by id and in the tail; what was sealed is let go of
together, but for what took its place meanwhile. Cost: a microsecond a document; `let_go`, next to nothing.
"""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from stream_car.adapters.search.memory import Tail
from stream_car.core.documents import Document
from stream_car.ports import IndexedDocument
from stream_car.ranking.bm25 import DocumentTerms

_FREED = 2  # documents of a commit that has ended: their memory is given back with every one that comes
_FREED_BY_A_SEARCH = 50


class Kept(Struct, frozen=True, gc=False):
    """A document as it was given, the number under which its words are kept, and these."""

    posting: IndexedDocument
    number: int
    said: DocumentTerms


class Pending:
    """Two parts: what is being committed, and what came since. `None` is kept of what was dropped."""

    def __init__(self) -> None:
        self.tail = Tail()
        self.replaced: list[int] = []  # numbers that nothing will refer to once all this is committed
        self.characters = 0  # of the words of what came since the last commit was begun
        self._open: dict[str, Kept | None] = {}
        self._sealed: dict[str, Kept | None] = {}
        self._unread: dict[str, DocumentTerms] = {}  # of the open part, not in the tail yet
        self._sealed_unread: dict[str, DocumentTerms] = {}
        self._sealed_replaced = 0
        self._freed: dict[str, Kept | None] = {}

    def __len__(self) -> int:
        return len(self._open) + len(self._sealed)

    def __contains__(self, name: str) -> bool:
        return name in self._open or name in self._sealed

    @property
    def unread(self) -> int:
        """How many documents the tail lacks."""
        return len(self._unread) + len(self._sealed_unread)

    def kept(self, name: str) -> Kept | None:
        """What is known of an id that is in here; `None` where it was dropped."""
        return self._open[name] if name in self._open else self._sealed[name]

    def documents(self, names: Iterable[str]) -> dict[str, Document]:
        """The documents of those of these ids that are in here and were not dropped."""
        found = ((name, self.kept(name)) for name in names if name in self)
        return {name: kept.posting.document for name, kept in found if kept is not None}

    def best(self, weights: Mapping[str, float], average_length: float, count: int) -> list[int]:
        """The numbers of the anchors in the tail that come first by these terms."""
        best = self.tail.best(weights, average_length, count, self._is_anchor)
        return [number for name in best if (number := self._number(name)) is not None]

    def _is_anchor(self, name: str) -> bool:
        kept = self.kept(name)
        return kept is not None and kept.posting.anchor

    def put(self, name: str, kept: Kept | None, on_disk: Callable[[str], int | None]) -> bool:
        """The last word on an id from now on; whether another document had its place, here or `on_disk`."""
        is_new = name not in self
        number = on_disk(name) if is_new else self._number(name)
        if number is not None:
            self.replaced.append(number)
        if not is_new:
            self.tail.remove(name)
            self._unread.pop(name, None)
            self._sealed_unread.pop(name, None)
        self._open[name] = kept
        if kept is not None:
            self._unread[name] = kept.said
            self.characters += len(kept.said.text)
        self._free(_FREED)
        return number is not None

    def _free(self, most: int) -> None:
        for _ in range(min(most, len(self._freed))):
            self._freed.popitem()

    def _number(self, name: str) -> int | None:
        kept = self.kept(name)
        return kept.number if kept is not None else None

    def read(self) -> None:
        """Put into the tail what it lacks."""
        for name, said in self._sealed_unread.items():
            self.tail.add_sealed(name, said)
        for name, said in self._unread.items():
            self.tail.add(name, said)
        self._sealed_unread, self._unread = {}, {}
        self._free(_FREED_BY_A_SEARCH)

    def seal(self) -> None:
        """A commit of all this begins. What an earlier one failed to bring to disk belongs to it."""
        self._sealed = {**self._sealed, **self._open} if self._sealed else self._open
        self._sealed_unread = {**self._sealed_unread, **self._unread}
        self._open, self._unread = {}, {}
        self._sealed_replaced = len(self.replaced)
        self.tail.seal()
        self.characters = 0

    def let_go(self) -> list[int]:
        """What was sealed is found on disk; the numbers that nothing refers to any more."""
        self._freed, self._sealed, self._sealed_unread = self._sealed, {}, {}
        self.tail.forget_sealed()
        gone, self.replaced = self.replaced[: self._sealed_replaced], self.replaced[self._sealed_replaced :]
        self._sealed_replaced = 0
        return gone
