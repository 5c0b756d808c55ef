"""Subscriptions: what is in force now, then every change of it, as one stream that can be taken up again.

Promise: a snapshot and what follows fit together without a gap: whoever puts what is active and drops
what is not has, at the end of the snapshot and whenever it has caught up, exactly the state of now. The
journal is read from the subscriber's own cursor when the subscriber asks, so a slow one costs the engine
nothing. A cursor is one number for each shard that tells changes. Scope changes are told once each, each
shard's in order; document changes say what holds now, may repeat, and the last one is true.

How snapshot and tail fit: the next keys are read as of some number of each shard; first the changes up to
these numbers are told, of keys that the snapshot has passed, and then these keys. Shards may move while
they are read: what does not fit together is read again. Cost: a step reads at most `EVENTS_AT_ONCE` events
a shard or `ITEMS_AT_ONCE` items, a few milliseconds or less.
"""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.changes import FrontierChange
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import scope_name
from stream_car.core.stored import Scope
from stream_car.core.timeline import scope_key, size
from stream_car.ports import AnchorIndex, Emission, KeyListing, RetainedChangeLog
from stream_car.processing.fold import CHANGES
from stream_car.queries.shards import Reached, ShardMoved, Shards
from stream_car.queries.snapshot import Snapshot
from stream_car.subscriptions.events import Filter, Notice, SnapshotBegin, SnapshotEnd
from stream_car.subscriptions.filters import FilterMatcher, read
from stream_car.subscriptions.lookup_cache import CachedLookup, LookupCache
from stream_car.subscriptions.rendering import Expansion, Renderer, decode_change, editions_of, members_of, runs_of

EVENTS_AT_ONCE = 32
ITEMS_AT_ONCE = 32
FEW_MAX = 1000  # items of a snapshot that are told at once

Cursor = tuple[int, ...]


async def at_rest() -> None:
    """Where the index goes on with the state there is nothing to wait for."""


class SubscriptionSources(Struct, frozen=True):
    """What a subscription reads. `settle` returns when the index has what the state had when it was called."""

    shards: Shards
    listing: KeyListing
    change_log: RetainedChangeLog
    index: AnchorIndex
    ruleset: Ruleset
    generation: str
    shards_with_changes: int = 1  # how many shards tell changes
    settle: Callable[[], Awaitable[None]] = at_rest
    lookups: LookupCache = msgspec.field(default_factory=LookupCache)
    items: int = ITEMS_AT_ONCE  # of a snapshot that are read at once; at most that


class Expired(Exception):
    """The changes after the cursor are no longer kept."""


class _Page(Struct, frozen=True):
    """Items of a snapshot as of these numbers, which are told when the changes up to there are; the last key."""

    notices: list[Notice]
    upto: Cursor
    boundary: bytes | None


class _Progress(Struct, frozen=True):
    """Where a subscriber is. `boundary` is the last key that its snapshot has told, if there is one.

    `facts`: what is told next was looked up after the fact of this number.
    """

    cursor: Cursor
    is_new: bool  # the snapshot is to begin
    boundary: bytes | None = None
    runs: tuple[Expansion, ...] = ()
    page: _Page | None = None
    facts: int = 0


class Subscription:
    """One subscriber's place in the stream: ask for a `step` until it `has_caught_up`, and again after a change."""

    def __init__(
        self, sources: SubscriptionSources, selection: Filter, *, cursor: Sequence[int], with_snapshot: bool
    ) -> None:
        self.sources = sources
        self.selection = read(selection, sources.ruleset)
        self._at_once = min(sources.items, ITEMS_AT_ONCE)
        self.has_moved = False  # whether the last step came further; if not, ask again after a moment
        self._teller = Renderer(FilterMatcher(self.selection, sources.ruleset), sources.index, sources.generation)
        self._at = _Progress(tuple(cursor), with_snapshot)

    @property
    def generation(self) -> str:
        """The generation that cursors belong to."""
        return self.sources.generation

    @property
    def cursor(self) -> Cursor:
        """For each shard the number of the last change told."""
        return self._at.cursor

    def position(self, cursor: Cursor) -> str:
        """A cursor as subscribers have it."""
        return f"{self.generation}:{'.'.join(map(str, cursor))}"

    @property
    def is_beginning(self) -> bool:
        """Whether the snapshot is not yet told to its end."""
        return self._at.is_new or self._at.boundary is not None

    async def step(self) -> list[Notice]:
        """The next notices. Raises `Expired` where changes that were not told yet are gone.

        Whatever it raises, nothing counts as told.
        """
        before = self._at
        try:
            told = await self._step()
        except ShardMoved:
            told, self._at = [], before
        except BaseException:
            self._at = before
            raise
        self.has_moved = self._at is not before
        return told

    async def _step(self) -> list[Notice]:
        at = self._at
        if at.is_new:
            self._at = _Progress(await self._last(), is_new=False, boundary=b"")
            return [Notice("snapshot-begin", SnapshotBegin(generation=self.generation, view=self.selection.view))]
        if at.runs:
            return self._within_snapshot(await self._expand(at.runs[0]))
        if at.boundary is None:
            return await self._tail(await self._last())
        if at.page is None:
            async with self.sources.lookups.turn:
                page = await self._page(at.boundary)
                at = self._at = replace(at, page=page, facts=self.sources.lookups.number)
        assert at.page is not None
        known = tuple(map(min, at.page.upto, await self._last()))
        told = self._within_snapshot(await self._tail(known))
        if self._at.runs or self._at.cursor != at.page.upto:  # going on behind it would miss the rest
            return told
        return told + self._turned(at.page)

    def _within_snapshot(self, notices: list[Notice]) -> list[Notice]:
        """Nobody can go on in the middle of a snapshot."""
        return notices if self._at.boundary is None else [Notice(one.event, one.data) for one in notices]

    def _turned(self, page: _Page) -> list[Notice]:
        """A page's items, and the end of the snapshot behind the last."""
        self._at = replace(self._at, boundary=page.boundary, page=None)
        if page.boundary is not None:
            return page.notices
        end = SnapshotEnd(generation=self.generation, cursor=self.position(self.cursor))
        return [*page.notices, Notice("snapshot-end", end, self.cursor)]

    async def has_caught_up(self) -> bool:
        """Whether everything up to now is told; if not, ask for another step, also after one that told nothing."""
        at = self._at
        is_telling = at.is_new or at.boundary is not None or at.runs
        return not is_telling and at.cursor == await self._last()

    async def _last(self) -> Cursor:
        """For each shard the last change; where a journal is read that lags behind the cursor, the cursor."""
        last = [await self.sources.change_log.last(shard) for shard in range(self.sources.shards_with_changes)]
        return tuple(map(max, last, self._at.cursor))

    def _reader(self) -> Snapshot:
        return Snapshot(self.sources.shards.source(), self.sources.ruleset)

    def _is_ahead(self, key: bytes) -> bool:
        """Whether the snapshot has yet to come to this key."""
        return self._at.boundary is not None and key > self._at.boundary

    # What changes

    async def _tail(self, upto: Cursor) -> list[Notice]:
        """The next changes, up to these numbers."""
        told: list[Notice] = []
        for shard, last in enumerate(upto):
            if self.cursor[shard] < last and not self._at.runs:
                told += await self._tail_of(shard, last)
        return told

    async def _tail_of(self, shard: int, last: int) -> list[Notice]:
        journal, after = self.sources.change_log, self.cursor[shard]
        events = await journal.read(shard, CHANGES, after=after, limit=EVENTS_AT_ONCE)
        if after < await journal.deleted_up_to(shard):  # asked after reading, for they may have gone just before it
            raise Expired
        known = [event for event in events if event.oseq <= last]
        is_all = len(events) < EVENTS_AT_ONCE or len(known) < len(events)
        if self.selection.view == "scope":
            told = [one for event in known for one in self._scope_change(shard, event)]
        else:
            told = await self._document_changes(shard, known)
        if is_all and not self._at.runs and (not known or self.cursor[shard] == known[-1].oseq):
            self._pass(shard, last)
        return told

    def _pass(self, shard: int, oseq: int) -> None:
        cursor = (*self.cursor[:shard], oseq, *self.cursor[shard + 1 :])
        self._at = replace(self._at, cursor=cursor)

    def _scope_change(self, shard: int, event: Emission) -> list[Notice]:
        self._pass(shard, event.oseq)
        return self._on_from_here(list(self._teller.scope_change(shard, event, self._is_ahead)))

    async def _document_changes(self, shard: int, events: Sequence[Emission]) -> list[Notice]:
        """What became of the documents, as far as the state that was read has come; the rest is told later."""
        told: list[Notice] = []
        for event, change, looked in await self._looked(shard, events):
            some = self._teller.document_changes(looked.documents, change, event.oseq, self._is_ahead)
            self._pass(shard, event.oseq)
            self._at = replace(self._at, facts=looked.number)
            if runs := runs_of(change, event.oseq):
                self._at = replace(self._at, runs=runs)
                return told + some
            told += self._on_from_here(some)
        return told

    async def _looked(
        self, shard: int, events: Sequence[Emission]
    ) -> list[tuple[Emission, FrontierChange, CachedLookup]]:
        """The changes with how their documents stand, which somebody else may have looked up before."""
        facts, since, found = self.sources.lookups, self._at.facts, []
        reader: Snapshot | None = None
        async with facts.turn:
            for event in events:
                change = decode_change(event.value)
                known = facts.get(shard, event.oseq, since)
                if known is None and reader is None:
                    await self.sources.settle()
                    reader = self._reader()
                    await reader.overview()
                if known is None and reader is not None:
                    if not self._has_applied(reader.source.reached, shard, event.oseq, change.cause.id, change.offset):
                        break
                    known = facts.put(shard, event.oseq, await self._teller.look_up(reader, change))
                assert known is not None
                since = known.number
                found.append((event, change, known))
        return found

    def _has_applied(self, reached: Reached | None, shard: int, oseq: int, cause: str, offset: int) -> bool:
        """Whether the state shows this change: one that was lost may be on its way back."""
        if reached is None:
            return True
        return reached.changes[shard] >= oseq and reached.applied[self.sources.shards.intake_of(cause)] > offset

    async def _expand(self, expansion: Expansion) -> list[Notice]:
        """The next members of a run, as they stand now; behind the last one of all one may go on."""
        async with self.sources.lookups.turn:
            reader = self._reader()
            await self._upto(reader)
            told, left = await self._teller.expand(reader, expansion, self._at_once, self._is_ahead)
            runs = ((left,) if left is not None else ()) + self._at.runs[1:]
            self._at = replace(self._at, runs=runs, facts=self.sources.lookups.number)
        return told if runs else self._on_from_here(told)

    def _on_from_here(self, notices: list[Notice]) -> list[Notice]:
        """Whoever has heard the last of these may go on behind it."""
        if not notices:
            return notices
        last = notices[-1]
        return [*notices[:-1], Notice(last.event, last.data, self.cursor)]

    # The snapshot

    async def _page(self, boundary: bytes) -> _Page:
        """The next items. Raises `ShardMoved` where they must be read again."""
        page = await self._few() if not boundary else None
        return page if page is not None else await self._next_page(boundary)

    async def _next_page(self, boundary: bytes) -> _Page:
        first, end = (b"s:", b"s;") if self.selection.view == "scope" else (b"d:", b"d;")

        async def listed() -> Sequence[bytes]:
            return await self.sources.listing.keys(max(boundary, first), end, self._at_once)

        keys = await listed()
        reader = self._reader()
        await reader.load(keys)
        await self._require_whole(reader, keys, listed)
        told = await self._items(reader, keys)
        return _Page(told, await self._upto(reader), keys[-1] if len(keys) == self._at_once else None)

    async def _few(self) -> _Page | None:
        """The whole snapshot at once, where the selection leads to few items without reading all."""
        chosen = self.selection
        reader = self._reader()
        if chosen.view == "document" and chosen.ids:
            await self.sources.settle()
            names = {*chosen.ids, *[one for name in chosen.ids for one in await editions_of(reader, name)]}
            if len(names) > FEW_MAX:
                return None
            told = await self._teller.active_documents(reader, sorted(names))
            return _Page(told, await self._upto(reader), None)
        if not chosen.parts:
            return None

        async def listed() -> Sequence[bytes]:
            found = await self.sources.index.scopes(sorted(chosen.parts), FEW_MAX)
            return [scope_key(name) for name in sorted({scope_name(sorted(chosen.parts)), *found})]

        keys = await listed()
        if len(keys) >= FEW_MAX:
            return None
        await reader.load(keys)
        await self._require_whole(reader, keys, listed)
        scopes = [scope for key in keys if isinstance(scope := reader.values[key], Scope)]
        if sum(size(scope) for scope in scopes) >= FEW_MAX:
            return None
        if chosen.view == "scope":
            told = await self._items(reader, keys)
        else:
            ids = {entry.id for scope in scopes for entry in await members_of(reader, scope)}
            told = await self._teller.active_documents(reader, sorted(ids))
        return _Page(told, await self._upto(reader), None)

    async def _require_whole(
        self, reader: Snapshot, keys: Sequence[bytes], listed: Callable[[], Awaitable[Sequence[bytes]]]
    ) -> None:
        """Raises `ShardMoved` where the state that was read has more keys than were listed."""
        await reader.overview()
        await self.sources.settle()
        if keys != await listed():
            raise ShardMoved("keys came while they were read; ask again")

    async def _upto(self, reader: Snapshot) -> Cursor:
        """The numbers that the values read first are as of. Raises `ShardMoved` where the cursor is beyond them."""
        await reader.overview()
        reached = reader.source.reached
        upto = reached.changes if reached is not None else await self._last()
        if any(map(int.__lt__, upto, self.cursor)):
            raise ShardMoved("the state that was read is older than what was told; ask again")
        return upto

    async def _items(self, reader: Snapshot, keys: Sequence[bytes]) -> list[Notice]:
        if self.selection.view == "document":
            return await self._teller.active_documents(reader, [key[2:].decode() for key in keys])
        scopes = [scope for key in keys if isinstance(scope := reader.values[key], Scope)]
        return [notice for scope in scopes for notice in await self._teller.scope_state(reader, scope)]
