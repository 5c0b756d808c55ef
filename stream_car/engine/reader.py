"""Reads of a query: decoded values of one moment, in few rounds.

Promise: everything that one reader gives is as of one cut. If the shard moves between two rounds,
`Moved` is raised, and whoever asked begins again with a new reader. Cost: one `peek` a round.
"""

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

from stream_car.core.intake import Held, held_key
from stream_car.core.resolve import COUNTED_MAX, Values, Walk, Walked
from stream_car.core.rules import Ruleset
from stream_car.core.timeline import Absent, Scope, scope_key
from stream_car.engine.fold import HEADER, Header
from stream_car.engine.stored import decode_value
from stream_car.errors import Halted, StreamCarError
from stream_car.ports import AnchorIndex, Hit, Store

T = TypeVar("T")
UNKNOWN = -1  # the version of an index that was searched at several versions, or not at all


class Moved(StreamCarError):
    """The shard moved between two rounds of reads; begin again."""


class Reader:
    """Values of a shard as of one cut, read when they are first needed."""

    def __init__(self, store: Store, ruleset: Ruleset, *, shard: int = 0, as_of: int | None = None) -> None:
        self.store = store
        self.ruleset = ruleset
        self.shard = shard
        self.as_of = as_of
        self.values: Values = {}
        self.cut: int | None = None
        self.rounds = 0
        self.lookups = 0
        self.searches: dict[tuple[str, int], Sequence[Hit]] = {}
        self.version = UNKNOWN

    async def search(self, index: AnchorIndex, text: str, depth: int) -> Sequence[Hit]:
        """Stage 1, remembered with the version of the index that answered: whoever keeps answers compares it."""
        found = await index.search(text, depth)
        version = await index.version()
        self.version = version if not self.searches or version == self.version else UNKNOWN
        self.searches[text, depth] = found
        return found

    async def load(self, keys: Sequence[bytes]) -> None:
        """Read the keys that are not at hand, in one round. Raises `Moved`, `Halted`."""
        lacking = [key for key in dict.fromkeys(keys) if key not in self.values]
        if not lacking:
            return
        cut, found = await self.store.peek(self.shard, lacking)
        if self.cut is not None and cut != self.cut:
            raise Moved("the shard moved while it was read; ask again")
        self.cut = cut
        self.rounds += 1
        self.lookups += len(lacking)
        for key in lacking:
            raw = found.get(key)
            if raw is None and key[:1] == b"p":
                raise Halted("damaged", f"the page {key!r} is gone; rebuild the state from the log")
            self.values[key] = decode_value(key, raw)

    async def header(self) -> Header:
        """What the shard knows of itself."""
        await self.load([HEADER])
        found = self.values[HEADER]
        return found if isinstance(found, Header) else Header()

    async def held(self, name: str) -> Held | None:
        """What is known of an id, retracted and waiting ones included."""
        await self.load([held_key(name)])
        found = self.values[held_key(name)]
        return found if isinstance(found, Held) else None

    async def scope(self, name: str) -> Scope:
        """A scope's header; one that was never seen is empty."""
        await self.load([scope_key(name)])
        found = self.values[scope_key(name)]
        return found if isinstance(found, Scope) else Scope(name)

    async def walk(self, anchors: Sequence[str], *, named_max: int = COUNTED_MAX) -> list[Walked | None]:
        """Stage 2 for many anchors at once: each round of reads serves them all.

        A closure names at most `named_max` members of one scope; beyond, they are counted.
        """
        has_links = (await self.header()).links > 0
        results: list[Walked | None] = [None] * len(anchors)
        running: list[tuple[int, Generator[list[bytes], None, Walked | None]]] = [
            (
                at,
                Walk(name, self.values, self.ruleset, has_links=has_links, as_of=self.as_of, named_max=named_max).run(),
            )
            for at, name in enumerate(anchors)
        ]
        while running:
            wanted: list[bytes] = []
            still = []
            for at, steps in running:
                try:
                    wanted += next(steps)
                    still.append((at, steps))
                except StopIteration as stop:
                    results[at] = stop.value
            running = still
            await self.load(wanted)
        return results

    async def with_pages(self, ask: Callable[[], T]) -> T:
        """The answer of a pure function over the values; pages that it lacks are read first."""
        while True:
            try:
                return ask()
            except Absent as absent:
                lacking = absent.keys
            await self.load(lacking)
