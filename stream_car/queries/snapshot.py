"""Reads of a query: decoded values of one moment, in few rounds.

Promise: everything that one reader gives is as of the cut of its source, if that is exact in the end.
If a shard moves between two rounds, `Moved` is raised, and whoever asked begins again with a new
reader. Cost: one exchange a round.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TypeVar

from stream_car.core.amendments import Amenders, amenders
from stream_car.core.documents import Document
from stream_car.core.revisions import held_key
from stream_car.core.rules import Ruleset
from stream_car.core.stored import Held, Scope
from stream_car.core.timeline import Absent, scope_key
from stream_car.core.walk import COUNTED_MAX, Bars, Values, Walk, Walked
from stream_car.ports import AnchorIndex, GiveWay
from stream_car.queries.read_options import Timed, unwatched
from stream_car.queries.shards import Moved, Overview, Source
from stream_car.ranking.anchor_order import Hit

T = TypeVar("T")
R = TypeVar("R")
AT_ONCE = 64  # keys or bodies read before others may go first
UNKNOWN = -1  # the version of an index that was searched at several versions, or not at all


class Reader:
    """Values as of one cut, read when they are first needed."""

    def __init__(
        self,
        source: Source,
        ruleset: Ruleset,
        *,
        as_of: int | None = None,
        give_way: Callable[[], Awaitable[bool]] | None = None,
        timed: Timed = unwatched,
    ) -> None:
        self.source = source
        self.ruleset = ruleset
        self.as_of = as_of
        self._give_way = give_way
        self._timed = timed
        self.values: Values = {}
        self.bars: Bars = {}
        self.rounds = 0
        self.lookups = 0
        self.searches: dict[tuple[str, int], Sequence[Hit]] = {}
        self.version = UNKNOWN

    @property
    def cut(self) -> tuple[int, ...]:
        """For each intake shard the input before which everything was seen."""
        return self.source.cut

    async def search(self, index: AnchorIndex, text: str, depth: int) -> Sequence[Hit]:
        """Stage 1, remembered with the version of the index that answered: whoever keeps answers compares it."""
        if self._give_way is not None:
            await self.overview()  # from then on there is a moment that the search is of
        with self._timed("search"):
            found = await index.search(text, depth, self.gently)
        version = await index.version()
        self.version = version if not self.searches or version == self.version else UNKNOWN
        self.searches[text, depth] = found
        await self.give_way()
        return found

    @property
    def gently(self) -> GiveWay | None:
        """How to let others go first between pieces of a search, if this question is to."""
        return self.give_way if self._give_way is not None else None

    async def load(self, keys: Sequence[bytes]) -> None:
        """Read the keys that are not at hand, in one round. Raises `Moved`, `Halted`."""
        lacking = [key for key in dict.fromkeys(keys) if key not in self.values]
        if not lacking:
            return
        step = AT_ONCE if self._give_way is not None else len(lacking)
        for at in range(0, len(lacking), step):
            self.values.update(await self.source.read(lacking[at : at + step]))
            await self.give_way()
        self.rounds += 1
        self.lookups += len(lacking)

    async def give_way(self) -> None:
        """Let others go first where this question has taken long. Raises `Moved` where that made it begin again.

        Before the first read there is no moment yet that what is at hand could be of.
        """
        if self._give_way is not None and self.source.cut and await self._give_way():
            await self.source.read([])

    async def bodies(self, index: AnchorIndex, names: Sequence[str]) -> Mapping[str, Document]:
        """What the index has of these documents."""
        with self._timed("documents"):
            if self._give_way is None:
                return await index.documents(names)
            found: dict[str, Document] = {}
            for at in range(0, len(names), AT_ONCE):
                found |= await index.documents(names[at : at + AT_ONCE])
                await self.give_way()
            return found

    async def overview(self) -> Overview:
        """What the shards know of themselves; free after the first round."""
        return await self.source.overview()

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
        with self._timed("walk"):
            walks = await self._walks(anchors, named_max)
            return await self._together([walk.run() for walk in walks])

    async def standing(self, names: Sequence[str]) -> list[tuple[Held, bool] | None]:
        """What is known of each id that is part of the corpus, and whether it is active."""
        walks = await self._walks(names, COUNTED_MAX)
        return await self._together([walk.standing() for walk in walks])

    async def _walks(self, anchors: Sequence[str], named_max: int) -> list[Walk]:
        await self.load([held_key(name) for name in anchors])
        has_links = (await self.overview()).has_links
        return [
            Walk(
                name,
                self.values,
                self.ruleset,
                has_links=has_links,
                as_of=self.as_of,
                named_max=named_max,
                bars=self.bars,
            )
            for name in anchors
        ]

    async def amenders(self, names: Sequence[str]) -> list[Amenders]:
        """What amends each of these directly, by rule or by name."""
        has_links = (await self.overview()).has_links
        return await self._together(
            [amenders(name, self.values, self.ruleset, has_links=has_links, as_of=self.as_of) for name in names]
        )

    async def _together(self, every: Sequence[Generator[list[bytes], None, R]]) -> list[R]:
        """The results of all; what they lack in one round is read at once."""
        results: dict[int, R] = {}
        running = list(enumerate(every))
        while running:
            wanted: list[bytes] = []
            still = []
            for at, one in running:
                try:
                    wanted += next(one)
                    still.append((at, one))
                except StopIteration as stop:
                    results[at] = stop.value
                await self.give_way()
            running = still
            await self.load(wanted)
        return [results[at] for at in range(len(every))]

    async def with_pages(self, ask: Callable[[], T]) -> T:
        """The answer of a pure function over the values; pages that it lacks are read first."""
        while True:
            await self.give_way()
            try:
                return ask()
            except Absent as absent:
                lacking = absent.keys
            await self.load(lacking)


__all__ = ["UNKNOWN", "Moved", "Reader"]
