"""What was found out about the documents of a change, for everybody who tells of it.

Promise: a fact was looked up after its change. Whoever tells facts in the order in which they were looked up,
and nothing that it has read itself before, ends with what is true: `number` says how old a fact is, and older
ones than it has told are looked up anew. Cost: the newest changes are remembered, up to `MOST` of them.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext

from msgspec import Struct

from stream_car.core.stored import Held
from stream_car.subscriptions.filters import Mention

MOST = 2000


class Fact(Struct, frozen=True, gc=False):
    """A document that a change speaks of, and how it stands."""

    mention: Mention
    held: Held | None
    is_active: bool
    title: str = ""
    source: str = ""
    url: str = ""


class Looked(Struct, frozen=True, gc=False):
    """The facts of one change, and which look-up it was."""

    number: int
    facts: Sequence[Fact]


class Facts:
    """Of the changes that were looked up last. `turn` is held by whoever reads what it will tell."""

    def __init__(self, turn: "AbstractAsyncContextManager[object] | None" = None) -> None:
        self.turn: AbstractAsyncContextManager[object] = turn if turn is not None else nullcontext()
        self.number = 0
        self._known: dict[tuple[int, int], Looked] = {}

    def get(self, shard: int, oseq: int, since: int) -> Looked | None:
        """What is known of a change's documents, if it was looked up after the fact of this number."""
        found = self._known.get((shard, oseq))
        return found if found is not None and found.number > since else None

    def put(self, shard: int, oseq: int, facts: Sequence[Fact]) -> Looked:
        """Remember what was looked up just now."""
        self.number += 1
        self._known.pop((shard, oseq), None)
        looked = self._known[shard, oseq] = Looked(self.number, facts)
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]
        return looked
