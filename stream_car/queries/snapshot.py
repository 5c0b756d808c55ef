"""The decoded values that one attempt at a question reads, all as of one cut, in few rounds.

Promise: everything that a `Snapshot` gives is as of the cut of its source, provided that the source is still exact
at the end. Before other work runs, the source is pinned. If a shard that cannot be pinned moves between two rounds,
`ShardMoved` is raised; the caller starts again with a new `Snapshot`. Cost: one exchange per round.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from stream_car.core.amendments import Amenders, amenders
from stream_car.core.documents import Document
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.stored import Scope, StoredDocument
from stream_car.core.timeline import MissingPages, scope_key
from stream_car.core.walk import COUNTED_MAX, Thresholds, Values, Walk, WalkBudget, WalkResult
from stream_car.ports import AnchorIndex, Pairs, YieldControl
from stream_car.queries.answers import Step
from stream_car.queries.outcomes import reasons_of
from stream_car.queries.read_options import Pace, StageTimer, no_timer
from stream_car.queries.shards import Overview, PinnedState, ValueSource
from stream_car.ranking.anchor_order import Hit

T = TypeVar("T")
BATCH = 16  # bodies that are read before other work may run: of wide documents, 5 ms
VISITS_MAX = 20_000  # documents that the walks of one question visit
LEVELS_MAX = 500  # levels of documents that they visit, and so about as many rounds of reads
LEVELS_PER_ANCHOR = 8  # more levels for each of them


class ActiveStatus(Struct, frozen=True, gc=False):
    """Whether a document with these scopes is active; if not, the steps to what supersedes it, the first one first.

    `since` is when the first one took effect, `None` if that is a successor that is not in the corpus.
    """

    scopes: Sequence[str]
    reasons: tuple[Step, ...] = ()
    since: int | None = None

    @property
    def is_active(self) -> bool:
        """Whether nothing supersedes the document."""
        return not self.reasons


class Snapshot:
    """Values as of one cut, each read when it is first needed."""

    def __init__(
        self,
        source: ValueSource,
        ruleset: Ruleset,
        *,
        as_of: int | None = None,
        pace: Pace | None = None,
        timer: StageTimer = no_timer,
        attributes: bool = False,
    ) -> None:
        self.source = source
        self.ruleset = ruleset
        self.as_of = as_of
        self._pace = pace
        self._timer = timer
        self.attributes = attributes  # whether answers show them
        self.values: Values = {}
        self.thresholds: Thresholds = {}
        self.budget = WalkBudget(VISITS_MAX, LEVELS_MAX)
        self._statuses: dict[str, ActiveStatus | None] = {}
        self.rounds = 0
        self.lookups = 0
        self.searches: dict[tuple[str, int, Pairs], Sequence[Hit]] = {}
        self.index_versions: set[int] = set()  # at which hits and texts were read
        self.index_differs = False  # whether the index had other revisions of what was read from it

    @property
    def cut(self) -> tuple[int, ...]:
        """For each intake shard, the offset before which all input was seen."""
        return self.source.cut

    @property
    def is_exact(self) -> bool:
        """Whether all that was read is of the cut: values, and the documents that the index has."""
        return self.source.is_exact and not self.index_differs

    async def search(self, index: AnchorIndex, text: str, depth: int, within: Pairs = ()) -> Sequence[Hit]:
        """Run Stage 1. Keep the hits and the version of the index: the answer cache compares both.

        Hits of a search before the first read are of the moment of the cut, later ones may be newer. Whatever is
        reported of a document is as of the cut in any case.
        """
        if (text, depth, within) in self.searches:
            return self.searches[text, depth, within]
        with self._timer("search"):
            hits = await index.search(text, depth, self.yield_hook, within=within)
        self.index_versions.add(await index.version())
        self.searches[text, depth, within] = hits
        return hits

    @property
    def yield_hook(self) -> YieldControl | None:
        """`yield_control`, to be called between pieces of long work; `None` if this question never yields."""
        return self.yield_control if self._pace is not None else None

    async def load(self, keys: Sequence[bytes]) -> None:
        """Read the keys that were not read before, in one round. Raises `ShardMoved`, `Halted`."""
        missing = [key for key in dict.fromkeys(keys) if key not in self.values]
        if not missing:
            return
        step = self.source.keys_at_once if self._pace is not None else len(missing)
        for at in range(0, len(missing), step):
            self.values.update(await self.source.read(missing[at : at + step], self.yield_hook))
            if self._pace is not None:
                await self.yield_control()
        self.rounds += 1
        self.lookups += len(missing)

    def forget_pages(self) -> None:
        """Drop the pages of scopes that were read. They are read again if they are needed."""
        for key in [key for key in self.values if key[:1] == b"p"]:
            del self.values[key]

    async def yield_control(self) -> None:
        """Let other work run if this question has taken long.

        The source is pinned first. Before the first read there is nothing to pin, since no value is in memory.
        """
        if self._pace is not None and self._pace.is_due:
            if self.source.cut:
                self.source.pin()
            await self._pace.rest()

    async def bodies(self, index: AnchorIndex, names: Sequence[str]) -> Mapping[str, Document]:
        """What the index has of these documents, by id."""
        with self._timer("documents"):
            bodies: dict[str, Document] = {}
            step = BATCH if self._pace is not None else len(names) or 1
            for at in range(0, len(names), step):
                batch = names[at : at + step]
                bodies |= await index.documents(batch)
                if self.source.pinned is not None:
                    bodies |= await self._earlier_bodies(self.source.pinned, batch, bodies)
                if self._pace is not None:
                    await self.yield_control()
            self.index_versions.add(await index.version())
            return bodies

    async def current_bodies(self, index: AnchorIndex, names: Sequence[str]) -> Mapping[str, Document]:
        """What the index has of these documents, without those that it has in another revision than the snapshot.

        An index beside many shards may lag behind them, or be ahead of what was read: the answer is then not exact.
        """
        bodies = await self.bodies(index, names)
        if self.source.reached is None:  # state and index advance together
            return bodies
        await self.load([document_key(name) for name in bodies])
        current = {}
        for name, body in bodies.items():
            stored = await self.document(name)
            if stored is not None and body.revision == stored.revision:
                current[name] = body
            else:
                self.index_differs = True
        return current

    async def _earlier_bodies(
        self, pinned: PinnedState, names: Sequence[str], bodies: Mapping[str, Document]
    ) -> dict[str, Document]:
        """The documents of which the index has another revision by now than the snapshot."""
        await self.load([document_key(name) for name in names])
        earlier = {}
        for name in names:
            stored, body = await self.document(name), bodies.get(name)
            if stored is not None and (body is None or body.revision != stored.revision):
                document = await pinned.document(stored.offset)
                if document is not None:
                    earlier[name] = document
        return earlier

    async def overview(self) -> Overview:
        """What the shards report about themselves. Costs nothing after the first round."""
        return await self.source.overview()

    async def document(self, name: str) -> StoredDocument | None:
        """What is known of an id, also if the document is retracted or pending."""
        await self.load([document_key(name)])
        value = self.values[document_key(name)]
        return value if isinstance(value, StoredDocument) else None

    async def scope(self, name: str) -> Scope:
        """The header of a scope. A scope that was never seen is empty."""
        await self.load([scope_key(name)])
        value = self.values[scope_key(name)]
        return value if isinstance(value, Scope) else Scope(name)

    async def walk(self, anchors: Sequence[str], *, named_max: int = COUNTED_MAX) -> list[WalkResult | None]:
        """Run Stage 2 for many anchors at once: each round of reads serves them all.

        A closure names at most `named_max` members of one scope. If there are more, they are only counted.
        """
        self.budget.levels += LEVELS_PER_ANCHOR * len(anchors)
        self.budget.visits += LEVELS_PER_ANCHOR * len(anchors)
        with self._timer("walk"):
            walks = await self._walks(anchors, named_max)
            return await self._run_all(walk.run() for walk in walks)

    async def anchor_statuses(self, names: Sequence[str]) -> list[tuple[StoredDocument, bool] | None]:
        """For each id the stored document and whether it is active; `None` if it is not part of the corpus."""
        walks = await self._walks(names, COUNTED_MAX)
        return await self._run_all(walk.anchor_status() for walk in walks)

    async def statuses(self, names: Sequence[str]) -> Mapping[str, "ActiveStatus"]:
        """For each id that is part of the corpus, whether it is active and if not, why. Each is found out once."""
        unknown = [name for name in names if name not in self._statuses]
        stored = dict(zip(unknown, await self.anchor_statuses(unknown), strict=True))
        superseded = [name for name, known in stored.items() if known is not None and not known[1]]
        walks = await self._walks(superseded, 0, lambda: WalkBudget(levels=1))
        results = dict(zip(superseded, await self._run_all(walk.run() for walk in walks), strict=True))
        for name, known in stored.items():
            self._statuses[name] = _status(known[0], results.get(name)) if known is not None else None
        return {name: status for name in names if (status := self._statuses[name]) is not None}

    async def _walks(
        self, anchors: Sequence[str], named_max: int, budget: Callable[[], WalkBudget] | None = None
    ) -> Iterator[Walk]:
        await self.load([document_key(name) for name in anchors])
        has_links = (await self.overview()).has_links
        return (
            Walk(
                name,
                self.values,
                self.ruleset,
                has_links=has_links,
                as_of=self.as_of,
                named_max=named_max,
                thresholds=self.thresholds,
                budget=budget() if budget is not None else self.budget,
            )
            for name in anchors
        )

    async def amenders(self, names: Sequence[str]) -> list[Amenders]:
        """What amends each of these documents directly, by rule or by link."""
        has_links = (await self.overview()).has_links
        return await self._run_all(
            amenders(name, self.values, self.ruleset, has_links=has_links, as_of=self.as_of) for name in names
        )

    async def _run_all(self, generators: Iterable[Generator[list[bytes], None, T]]) -> list[T]:
        """Run all generators and return their results in order. The keys that they yield are read once per round."""
        results: dict[int, T] = {}
        running = dict(enumerate(generators))
        while running:
            wanted: list[bytes] = []
            for at, generator in list(running.items()):
                try:
                    wanted += next(generator)
                except StopIteration as stop:
                    results[at] = stop.value
                    del running[at]
                if self._pace is not None:
                    await self.yield_control()
            await self.load(wanted)
        return [results[at] for at in range(len(results))]

    async def with_pages(self, function: Callable[[], T]) -> T:
        """Call a pure function over `values`; whenever it raises `MissingPages`, read the pages and call it again."""
        while True:
            if self._pace is not None:
                await self.yield_control()
            try:
                return function()
            except MissingPages as error:
                missing = error.keys
            await self.load(missing)


def _status(document: StoredDocument, walk: WalkResult | None) -> ActiveStatus:
    """The status that follows from the first level of a walk; without one, the document is active."""
    if walk is None:
        return ActiveStatus(document.scopes)
    names = [name for name, _, _ in walk.superseded_by[:1]]
    since = next((walk.nodes[name].entry.time for name in names), None)
    return ActiveStatus(document.scopes, reasons_of(walk), since)
