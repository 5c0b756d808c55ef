"""Reads of a query: decoded values of one moment, in few rounds.

Promise: everything that one reader gives is as of the cut of its source, if that is exact in the end.
If a shard moves between two rounds, `ShardMoved` is raised, and whoever asked begins again with a new
reader. Cost: one exchange a round.
"""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import TypeVar

from stream_car.core.amendments import Amenders, amenders
from stream_car.core.documents import Document
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.stored import Scope, StoredDocument
from stream_car.core.timeline import MissingPages, scope_key
from stream_car.core.walk import COUNTED_MAX, Thresholds, Values, Walk, WalkResult
from stream_car.ports import AnchorIndex, YieldControl
from stream_car.queries.read_options import StageTimer, untimed
from stream_car.queries.shards import Overview, ValueSource
from stream_car.ranking.anchor_order import Hit

T = TypeVar("T")
R = TypeVar("R")
BATCH = 64  # keys or bodies read before others may go first
UNKNOWN = -1  # the version of an index that was searched at several versions, or not at all


class Snapshot:
    """Values as of one cut, read when they are first needed."""

    def __init__(
        self,
        source: ValueSource,
        ruleset: Ruleset,
        *,
        as_of: int | None = None,
        yield_control: Callable[[], Awaitable[bool]] | None = None,
        timer: StageTimer = untimed,
    ) -> None:
        self.source = source
        self.ruleset = ruleset
        self.as_of = as_of
        self._give_way = yield_control
        self._timed = timer
        self.values: Values = {}
        self.bars: Thresholds = {}
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
        await self.yield_control()
        return found

    @property
    def gently(self) -> YieldControl | None:
        """How to let others go first between pieces of a search, if this question is to."""
        return self.yield_control if self._give_way is not None else None

    async def load(self, keys: Sequence[bytes]) -> None:
        """Read the keys that are not at hand, in one round. Raises `ShardMoved`, `Halted`."""
        lacking = [key for key in dict.fromkeys(keys) if key not in self.values]
        if not lacking:
            return
        step = BATCH if self._give_way is not None else len(lacking)
        for at in range(0, len(lacking), step):
            self.values.update(await self.source.read(lacking[at : at + step]))
            await self.yield_control()
        self.rounds += 1
        self.lookups += len(lacking)

    async def yield_control(self) -> None:
        """Let others go first where this question has taken long. Raises `ShardMoved` where that made it begin again.

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
            for at in range(0, len(names), BATCH):
                found |= await index.documents(names[at : at + BATCH])
                await self.yield_control()
            return found

    async def overview(self) -> Overview:
        """What the shards know of themselves; free after the first round."""
        return await self.source.overview()

    async def document(self, name: str) -> StoredDocument | None:
        """What is known of an id, retracted and waiting ones included."""
        await self.load([document_key(name)])
        found = self.values[document_key(name)]
        return found if isinstance(found, StoredDocument) else None

    async def scope(self, name: str) -> Scope:
        """A scope's header; one that was never seen is empty."""
        await self.load([scope_key(name)])
        found = self.values[scope_key(name)]
        return found if isinstance(found, Scope) else Scope(name)

    async def walk(self, anchors: Sequence[str], *, named_max: int = COUNTED_MAX) -> list[WalkResult | None]:
        """Stage 2 for many anchors at once: each round of reads serves them all.

        A closure names at most `named_max` members of one scope; beyond, they are counted.
        """
        with self._timed("walk"):
            walks = await self._walks(anchors, named_max)
            return await self._run_walks([walk.run() for walk in walks])

    async def anchor_statuses(self, names: Sequence[str]) -> list[tuple[StoredDocument, bool] | None]:
        """What is known of each id that is part of the corpus, and whether it is active."""
        walks = await self._walks(names, COUNTED_MAX)
        return await self._run_walks([walk.anchor_status() for walk in walks])

    async def _walks(self, anchors: Sequence[str], named_max: int) -> list[Walk]:
        await self.load([document_key(name) for name in anchors])
        has_links = (await self.overview()).has_links
        return [
            Walk(
                name,
                self.values,
                self.ruleset,
                has_links=has_links,
                as_of=self.as_of,
                named_max=named_max,
                thresholds=self.bars,
            )
            for name in anchors
        ]

    async def amenders(self, names: Sequence[str]) -> list[Amenders]:
        """What amends each of these directly, by rule or by name."""
        has_links = (await self.overview()).has_links
        return await self._run_walks(
            [amenders(name, self.values, self.ruleset, has_links=has_links, as_of=self.as_of) for name in names]
        )

    async def _run_walks(self, every: Sequence[Generator[list[bytes], None, R]]) -> list[R]:
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
                await self.yield_control()
            running = still
            await self.load(wanted)
        return [results[at] for at in range(len(every))]

    async def with_pages(self, ask: Callable[[], T]) -> T:
        """The answer of a pure function over the values; pages that it lacks are read first."""
        while True:
            await self.yield_control()
            try:
                return ask()
            except MissingPages as absent:
                lacking = absent.keys
            await self.load(lacking)
