"""What was found out about the documents of a change, for everybody who tells of it.

Promise: a fact was looked up after its change. Whoever tells facts in the order in which they were looked up,
and nothing that it has read itself before, ends with what is true: `number` says how old a fact is, and older
ones than it has told are looked up anew. Cost: the newest changes are remembered, up to `CHANGES_MAX` of them.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from msgspec import Struct

from stream_car.core.stored import StoredDocument
from stream_car.subscriptions.filters import Mention

CHANGES_MAX = 2000


class LookedUpDocument(Struct, frozen=True, gc=False):
    """A document that a change speaks of, and how it stands."""

    mention: Mention
    document: StoredDocument | None
    is_active: bool
    title: str = ""
    source: str = ""
    url: str = ""


class CachedLookup(Struct, frozen=True, gc=False):
    """The facts of one change, and which look-up it was."""

    number: int
    documents: Sequence[LookedUpDocument]


class LookupCache:
    """Of the changes that were looked up last. `turn` is held by whoever reads what it will tell."""

    def __init__(self, turn: "AbstractAsyncContextManager[object] | None" = None) -> None:
        self.turn: AbstractAsyncContextManager[object] = turn if turn is not None else nullcontext()
        self.number = 0
        self._known: dict[tuple[int, int], CachedLookup] = {}

    def get(self, shard: int, oseq: int, since: int) -> CachedLookup | None:
        """What is known of a change's documents, if it was looked up after the fact of this number."""
        found = self._known.get((shard, oseq))
        return found if found is not None and found.number > since else None

    def put(self, shard: int, oseq: int, facts: Sequence[LookedUpDocument]) -> CachedLookup:
        """Remember what was looked up just now."""
        self.number += 1
        self._known.pop((shard, oseq), None)
        looked = self._known[shard, oseq] = CachedLookup(self.number, facts)
        if len(self._known) > CHANGES_MAX:
            del self._known[next(iter(self._known))]
        return looked
