"""Subscriptions: what is in force now, then every change of it, as one stream that can be resumed.

Promise: snapshot and changes fit together without a gap. A subscriber that keeps what is active and drops what is not
has exactly the current state at the end of the snapshot, and whenever it has caught up. The change log is read from
the subscription's own cursor when the subscriber wants more, so a slow subscriber costs the engine nothing. A cursor
is one number per shard that emits changes. Scope changes are emitted once each, in the order of their shard. Document
changes report what holds now; they may repeat, and the last one is right.
Cost: a step reads at most `EVENTS_AT_ONCE` events per shard or `ITEMS_AT_ONCE` items: a few milliseconds or less.
Only a small snapshot is read in one step, up to `FEW_MAX` items. Of scopes, a step reads at most `MEMBERS_AT_ONCE`
members: one with more is emitted in several events, between which its changes are emitted.

A snapshot is read page by page, in the order of keys. A page is as of some number `up_to` of each shard. First the
changes up to these numbers are emitted for the keys that earlier pages have passed, then the page. Shards may move
while they are read; what does not fit together is read again.

A subscription is a state machine over the phases below; "state" alone means the state of the engine.

| phase     | a step                                                     | next phase                               |
| --------- | ---------------------------------------------------------- | ---------------------------------------- |
| STARTING  | emits `snapshot-begin`; the cursor becomes the last change | READING                                  |
| READING   | reads the next page, then continues as ALIGNING            | ALIGNING                                 |
| ALIGNING  | emits changes of passed keys, up to the page's `up_to`     | EXPANDING if a change has runs           |
|           | and, once there, emits the page                            | READING if it was not the last page      |
|           | and, after the last page, `snapshot-end`                   | FOLLOWING if it was the last page        |
| EXPANDING | emits the next members of a run, with their status now     | after the last run ALIGNING or FOLLOWING |
| FOLLOWING | emits the next changes that the state shows                | EXPANDING if a change has runs           |

If no condition for a next phase holds, the phase stays the same. A subscription begins as STARTING with a snapshot, and
as FOLLOWING without one. Only the document view has runs. The last notice of a change carries the cursor to resume
from, except within a snapshot, which cannot be resumed.
"""

from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, auto
from math import prod

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.codec.changes import decode_change
from stream_car.core.changes import FrontierChange
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import scope_name
from stream_car.core.stored import Scope, SortKey
from stream_car.core.timeline import scope_key, size
from stream_car.ports import AnchorIndex, ChangeLogReader, Emission, KeyListing, MarkedLog
from stream_car.processing.fold import CHANGES
from stream_car.queries.changes import Positions, are_since
from stream_car.queries.scope_values import combinations
from stream_car.queries.shards import Reached, ShardMoved, Shards
from stream_car.queries.snapshot import Snapshot
from stream_car.subscriptions.events import Notice, Selection, SnapshotBegin, SnapshotEnd
from stream_car.subscriptions.lookup_cache import CachedLookup, LookupCache
from stream_car.subscriptions.records import RecordRenderer, RecordRepeats
from stream_car.subscriptions.rendering import Expansion, Renderer, editions_of, members_of, runs_of
from stream_car.subscriptions.selection import SelectionMatcher, normalize

EVENTS_AT_ONCE = 32
ITEMS_AT_ONCE = 32
COMBINATIONS_MAX = 100  # of a value for each key, that are looked up in the index one by one
MEMBERS_AT_ONCE = 1000  # of scopes
FEW_MAX = 1000  # a snapshot of fewer items is read as one page, if they can be listed without reading all

Numbers = tuple[int, ...]


async def _already_settled() -> None:
    """The default of `settle`: the index advances together with the state, so there is nothing to wait for."""


class SubscriptionSources(Struct, frozen=True):
    """What a subscription reads. `settle` returns when the index has everything that the state had at the call."""

    shards: Shards
    listing: KeyListing
    change_log: ChangeLogReader
    index: AnchorIndex
    ruleset: Ruleset
    generation: str
    marks: MarkedLog | None = None  # what tells the log from others, if anything does
    shards_with_changes: int = 1  # how many shards emit changes
    settle: Callable[[], Awaitable[None]] = _already_settled
    lookups: LookupCache = msgspec.field(default_factory=LookupCache)  # of documents
    record_lookups: LookupCache = msgspec.field(default_factory=LookupCache)
    items_per_step: int = ITEMS_AT_ONCE  # items of a snapshot that a step reads; at most `ITEMS_AT_ONCE`


class Expired(Exception):
    """The changes after the cursor have been deleted."""


class Phase(Enum):
    """The states of a subscription; the module docstring has the table."""

    STARTING = auto()
    READING = auto()
    ALIGNING = auto()
    EXPANDING = auto()
    FOLLOWING = auto()


class _Page(Struct, frozen=True):
    """Items of a snapshot as of `up_to`. `boundary` is the last key of the page; `None` if it is the last page.

    `member`: the last member on the page, if the scope at `boundary` has more.
    """

    notices: list[Notice]
    up_to: Numbers
    boundary: bytes | None
    member: SortKey | None = None


class _Items(Struct, frozen=True):
    """What was rendered of some keys. If there was no room for all, `boundary` and `member` are as in `_Page`."""

    notices: list[Notice]
    boundary: bytes | None = None
    member: SortKey | None = None


class _Progress(Struct, frozen=True):
    """How far a subscription is.

    `cursor`: for each shard, the last change that counts as emitted.
    `boundary`: the last key that the snapshot has emitted, or `b""`; `None` outside of a snapshot.
    `member`: the last member that it has emitted of the scope at `boundary`, if that has more.
    `runs`: runs of the last change that are still to be emitted.
    `page`: a page that was read and not emitted yet.
    `last_lookup`: whatever is emitted next must be looked up after the lookup of this number.
    """

    cursor: Numbers
    is_new: bool  # the snapshot has not begun
    boundary: bytes | None = None
    member: SortKey | None = None
    runs: tuple[Expansion, ...] = ()
    page: _Page | None = None
    last_lookup: int = 0

    @property
    def phase(self) -> Phase:
        if self.is_new:
            return Phase.STARTING
        if self.runs:
            return Phase.EXPANDING
        if self.boundary is None:
            return Phase.FOLLOWING
        return Phase.READING if self.page is None else Phase.ALIGNING


class SubscriptionReader:
    """One subscriber's place in the stream. Call `step` until it `has_caught_up`, and again after the next change."""

    def __init__(
        self, sources: SubscriptionSources, selection: Selection, *, cursor: Sequence[int], with_snapshot: bool
    ) -> None:
        self.sources = sources
        self.selection = normalize(selection, sources.ruleset)
        self.made_progress = False  # whether the last step made progress; if not, wait a moment before the next step
        self._items_max = min(sources.items_per_step, ITEMS_AT_ONCE)
        self._matcher = SelectionMatcher(self.selection, sources.ruleset)
        is_of_records = self.selection.view == "record"
        self._lookups = sources.record_lookups if is_of_records else sources.lookups
        renderer = RecordRenderer if is_of_records else Renderer
        self._positions = Positions(sources.generation, sources.marks)
        self._renderer = renderer(self._matcher, sources.index, self._positions, sources.shards)
        self._repeats = RecordRepeats()
        self._progress = _Progress(tuple(cursor), with_snapshot)

    @property
    def generation(self) -> str:
        """The generation that cursors belong to."""
        return self.sources.generation

    @property
    def cursor(self) -> Numbers:
        """For each shard the number of the last change emitted."""
        return self._progress.cursor

    @property
    def is_beginning(self) -> bool:
        """Whether the snapshot is not complete yet."""
        return self._progress.is_new or self._progress.boundary is not None

    async def step(self) -> list[Notice]:
        """The next notices. A step that raises emits nothing and changes nothing.

        Raises `Expired` if changes that were not emitted yet have been deleted: start again with a snapshot.
        """
        before = self._progress
        try:
            notices = await self._step()
        except ShardMoved:
            notices, self._progress = [], before  # the next step reads again
        except BaseException:
            self._progress = before
            raise
        self.made_progress = self._progress is not before
        return self._repeats.without_repeats(notices)

    async def _step(self) -> list[Notice]:
        progress = self._progress
        match progress.phase:
            case Phase.STARTING:
                self._progress = _Progress(await self._last(), is_new=False, boundary=b"")
                return [Notice(SnapshotBegin(generation=self.generation, view=self.selection.view))]
            case Phase.FOLLOWING:
                return await self._changes(await self._last())
            case Phase.EXPANDING:
                return self._without_cursors(await self._expand(progress.runs[0]))
            case Phase.READING:
                await self._read_page()  # continues as ALIGNING
        return await self._align()

    async def _align(self) -> list[Notice]:
        """Emit the changes up to the page's numbers; once they are reached, emit the page."""
        page = self._progress.page
        assert page is not None
        readable = tuple(map(min, page.up_to, await self._last()))  # the change log may lag behind the state
        notices = self._without_cursors(await self._changes(readable))
        if self._progress.runs or self._progress.cursor != page.up_to:  # emitting the page now would skip changes
            return notices
        self._progress = replace(self._progress, boundary=page.boundary, member=page.member, page=None)
        notices += page.notices
        if page.boundary is None:
            notices.append(Notice(SnapshotEnd(generation=self.generation), self.cursor))
        return notices

    def _without_cursors(self, notices: list[Notice]) -> list[Notice]:
        """The same notices; within a snapshot without cursors, because it cannot be resumed there."""
        if self._progress.boundary is None:
            return notices
        return [notice._replace(cursor=None) for notice in notices]

    def _with_cursor(self, notices: list[Notice]) -> list[Notice]:
        """The same notices; the last one gets the cursor from which a subscriber that has received it can resume."""
        if notices:
            notices[-1] = notices[-1]._replace(cursor=self.cursor)
        return notices

    async def has_caught_up(self) -> bool:
        """Whether everything up to now is emitted. If not, take another step, even after a step without notices."""
        return self._progress.phase is Phase.FOLLOWING and self.cursor == await self._last()

    async def _last(self) -> Numbers:
        """For each shard the last change in the log; or the cursor, if the log read here lags behind the cursor."""
        last = [await self.sources.change_log.last(shard) for shard in range(self.sources.shards_with_changes)]
        return tuple(map(max, last, self.cursor))

    def _state(self) -> Snapshot:
        return Snapshot(self.sources.shards.source(), self.sources.ruleset)

    def _is_ahead(self, key: bytes) -> bool:
        """Whether the snapshot has not reached this key yet; a later page will show it with all its changes."""
        return self._progress.boundary is not None and key > self._progress.boundary

    # Changes

    async def _changes(self, up_to: Numbers) -> list[Notice]:
        """The next changes up to these numbers. Stops after a change with runs."""
        notices: list[Notice] = []
        for shard, last in enumerate(up_to):
            if self.cursor[shard] < last and not self._progress.runs:
                notices += await self._changes_of(shard, last)
        return notices

    async def _changes_of(self, shard: int, last: int) -> list[Notice]:
        change_log, after = self.sources.change_log, self.cursor[shard]
        read = await change_log.read(shard, CHANGES, after=after, limit=EVENTS_AT_ONCE)
        if after < await change_log.deleted_up_to(shard):  # checked after the read: they may be deleted just before it
            raise Expired
        events = [event for event in read if event.oseq <= last]
        is_all = len(read) < EVENTS_AT_ONCE or len(events) < len(read)
        since = await self._since(events)
        if self.selection.view == "scope":
            notices = await self._scope_changes(shard, since)
        else:
            notices = await self._document_changes(shard, since)
        if not self._progress.runs and (not since or self.cursor[shard] == since[-1].oseq) and (is_all or events):
            self._advance(shard, last if is_all else events[-1].oseq)
        return notices

    async def _since(self, events: Sequence[Emission]) -> Sequence[Emission]:
        """Those of these changes that took effect when the selection begins, or later."""
        since = self.selection.since
        if since is None:
            return events
        are = await are_since(since, [decode_change(event.key, event.value) for event in events], self._state())
        return [event for event, is_since in zip(events, are, strict=True) if is_since]

    def _advance(self, shard: int, oseq: int) -> None:
        cursor = (*self.cursor[:shard], oseq, *self.cursor[shard + 1 :])
        self._progress = replace(self._progress, cursor=cursor)

    async def _scope_changes(self, shard: int, events: Sequence[Emission]) -> list[Notice]:
        notices: list[Notice] = []
        if events:
            await self.sources.settle()
        state = self._state()
        for event in events:
            self._advance(shard, event.oseq)
            rendered = self._renderer.scope_change(state, shard, event, self._is_ahead)
            notices += self._with_cursor([notice async for notice in rendered])
        return notices

    async def _document_changes(self, shard: int, events: Sequence[Emission]) -> list[Notice]:
        """What became of the documents of these changes, as far as the state shows them; the others come later."""
        notices: list[Notice] = []
        for event, change, lookup in await self._look_up(shard, events):
            position = str(self._positions.of(shard, event.oseq, change.offset))
            changes = self._renderer.changes(lookup.change, change, position, self._is_ahead)
            runs = runs_of(change, position)
            self._advance(shard, event.oseq)
            self._progress = replace(self._progress, last_lookup=lookup.number, runs=runs)
            if runs:
                return notices + changes
            notices += self._with_cursor(changes)
        return notices

    async def _look_up(
        self, shard: int, events: Sequence[Emission]
    ) -> list[tuple[Emission, FrontierChange, CachedLookup]]:
        """The changes with the status of their documents, which another subscription may have looked up already.

        Stops before the first change that the state does not show.
        """
        lookups, last_lookup, results = self._lookups, self._progress.last_lookup, []
        state: Snapshot | None = None  # read only if a lookup is missing
        async with lookups.lock:
            for event in events:
                change = decode_change(event.key, event.value)
                lookup = lookups.get(shard, event.oseq, last_lookup)
                if lookup is None:
                    if state is None:
                        await self.sources.settle()
                        state = self._state()
                        await state.overview()
                    if not self._shows(state.source.reached, shard, event.oseq, change):
                        break
                    lookup = lookups.put(shard, event.oseq, await self._renderer.look_up(state, change))
                last_lookup = lookup.number
                results.append((event, change, lookup))
        return results

    def _shows(self, reached: Reached | None, shard: int, oseq: int, change: FrontierChange) -> bool:
        """Whether the state shows a change; not so while a state that was lost is being rebuilt."""
        intake = self.sources.shards.intake_of(change.cause.id)
        return reached is None or (reached.changes[shard] >= oseq and reached.applied[intake] > change.offset)

    async def _expand(self, expansion: Expansion) -> list[Notice]:
        """The next members of a run with their status now. The last member of the last run gets the cursor."""
        async with self._lookups.lock:
            state = self._state()
            await self._up_to(state)  # raises `ShardMoved` if the state is too old
            notices, rest = await self._renderer.expand(state, expansion, self._items_max, self._is_ahead)
            runs = ((rest,) if rest is not None else ()) + self._progress.runs[1:]
            self._progress = replace(self._progress, runs=runs, last_lookup=self._lookups.number)
        return notices if runs else self._with_cursor(notices)

    # Snapshot

    async def _read_page(self) -> None:
        """Read the next page of the snapshot. Raises `ShardMoved` if it must be read again."""
        boundary, member, lookups = self._progress.boundary, self._progress.member, self._lookups
        assert boundary is not None
        async with lookups.lock:
            page = None if boundary else await self._small_snapshot()
            if member is not None:
                page = await self._rest_of_scope(boundary, member)
            page = page or await self._next_page(boundary)
            self._progress = replace(self._progress, page=page, last_lookup=lookups.number)

    async def _next_page(self, boundary: bytes) -> _Page:
        first, end = (b"s:", b"s;") if self.selection.view == "scope" else (b"d:", b"d;")

        async def list_keys() -> Sequence[bytes]:
            return await self.sources.listing.keys(max(boundary, first), end, self._items_max)

        keys = await list_keys()
        state = self._state()
        await state.load(keys)
        await self._require_all_listed(state, keys, list_keys)
        items = await self._items(state, keys)
        last = keys[-1] if len(keys) == self._items_max else None
        return _Page(items.notices, await self._up_to(state), items.boundary or last, items.member)

    async def _rest_of_scope(self, key: bytes, member: SortKey) -> _Page:
        """The next members of a scope, after those that were emitted."""
        state = self._state()
        await state.load([key])
        items = await self._items(state, [key], member)
        return _Page(items.notices, await self._up_to(state), key, items.member)

    async def _small_snapshot(self) -> _Page | None:
        """The whole snapshot as one page, if the selection leads to few items without reading all; else `None`."""
        selection = self.selection
        state = self._state()
        if selection.view != "scope" and selection.ids:
            await self.sources.settle()
            names = {*selection.ids, *[edition for name in selection.ids for edition in await editions_of(state, name)]}
            if len(names) > FEW_MAX:
                return None
            notices = await self._renderer.snapshot_items(state, sorted(names))
            return _Page(notices, await self._up_to(state), None)
        if not selection.scope or selection.view == "record":  # a record also counts by keys that no scope has
            return None

        wanted = self._matcher.values
        if prod(map(len, wanted.values())) > COMBINATIONS_MAX:
            return None

        async def list_keys() -> Sequence[bytes]:
            names: set[str] = set()
            for parts in combinations(wanted):
                names |= {scope_name(parts), *await self.sources.index.scopes(parts, FEW_MAX)}
            return [scope_key(name) for name in sorted(names)]

        keys = await list_keys()
        if len(keys) >= FEW_MAX:
            return None
        await state.load(keys)
        await self._require_all_listed(state, keys, list_keys)
        scopes = [scope for key in keys if isinstance(scope := state.values[key], Scope)]
        if sum(size(scope) for scope in scopes) >= FEW_MAX:
            return None
        if selection.view == "scope":
            items = await self._items(state, keys)
        else:
            ids = {entry.id for scope in scopes for entry in await members_of(state, scope)}
            items = _Items(await self._renderer.snapshot_items(state, sorted(ids)))
        return _Page(items.notices, await self._up_to(state), items.boundary, items.member)

    async def _require_all_listed(
        self, state: Snapshot, keys: Sequence[bytes], list_keys: Callable[[], Awaitable[Sequence[bytes]]]
    ) -> None:
        """Raise `ShardMoved` if the state has keys that were not listed before it was read."""
        await state.overview()
        await self.sources.settle()
        if keys != await list_keys():
            raise ShardMoved("Keys were added while they were read. Try again.")

    async def _up_to(self, state: Snapshot) -> Numbers:
        """For each shard the last change that the values show. Raises `ShardMoved` if the cursor is beyond it."""
        await state.overview()
        reached = state.source.reached
        up_to = reached.changes if reached is not None else await self._last()
        if any(map(int.__lt__, up_to, self.cursor)):
            raise ShardMoved("The state is older than the changes already emitted. Try again.")
        return up_to

    async def _items(self, state: Snapshot, keys: Sequence[bytes], member: SortKey | None = None) -> _Items:
        """Render these keys, the first one after a member of its scope, until there is no room for more members."""
        if self.selection.view != "scope":
            return _Items(await self._renderer.snapshot_items(state, [key[2:].decode() for key in keys]))
        room, notices = MEMBERS_AT_ONCE, list[Notice]()
        for key in keys:
            scope, after, member = state.values[key], member, None
            if isinstance(scope, Scope):
                event, member = await self._renderer.scope_state(state, scope, after, room)
                notices += [Notice(event)] if event is not None else []
                room -= len(event.members) if event is not None else 0
            if member is not None or room <= 0:
                return _Items(notices, key, member)
        return _Items(notices)
