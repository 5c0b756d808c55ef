"""Subscriptions: what is in force now, then every change of it, as one stream that can be taken up again.

Promise: a snapshot and what follows fit together without a gap: whoever puts what is active and drops
what is not has, at the end of the snapshot and whenever it has caught up, exactly the state of now. The
journal is read from the subscriber's own cursor when the subscriber asks, so a slow one costs the engine
nothing. Scope changes are told once each, in order; document changes say what holds now, may repeat, and
the last one is true.

How snapshot and tail fit: each step first tells the changes up to now, of keys that the snapshot has
passed, and then reads the next keys as of the same now. Cost: a step reads at most `EVENTS_AT_ONCE`
events or `ITEMS_AT_ONCE` items, a few milliseconds.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import Struct

from stream_car.core.changes import FrontierChange, Member, Run
from stream_car.core.intake import Held
from stream_car.core.resolve import pages_of
from stream_car.core.rules import AMENDED, LINK, RECORD, Ruleset, keys_of, record_scope, scope_name, scope_parts
from stream_car.core.timeline import Entry, Place, Scope, everyone, page_of, sheets_between, size
from stream_car.engine.answers import Told
from stream_car.engine.fold import CHANGES
from stream_car.engine.notices import (
    ActiveDocument,
    Begin,
    DocumentChange,
    End,
    Notice,
    ScopeState,
    Selection,
)
from stream_car.engine.reader import Reader
from stream_car.engine.scopes import holding
from stream_car.engine.sources import Shards
from stream_car.engine.stored import decode_value
from stream_car.ports import AnchorIndex, Listing, Retained

EVENTS_AT_ONCE = 128
ITEMS_AT_ONCE = 128
FEW_MAX = 1000  # items of a snapshot that are told at once

_changes = msgspec.json.Decoder(FrontierChange)


class Sources(Struct, frozen=True):
    """What a subscription reads."""

    shards: Shards
    listing: Listing
    journal: Retained
    index: AnchorIndex
    ruleset: Ruleset
    generation: str
    shard: int = 0


class Expired(Exception):
    """The changes after the cursor are no longer kept."""


class _Mention(Struct, frozen=True, gc=False):
    """A document that a change speaks of."""

    id: str
    why: str
    rule: str
    types: tuple[str, ...] = ()
    revision: int = 0
    time: int = 0
    order: int = 0


class _Expansion(Struct):
    """A run of members that is told piece by piece; `after` is the last one told."""

    change: FrontierChange
    run: Run
    oseq: int
    after: Place | None = None


class Subscription:
    """One subscriber's place in the stream: ask for a `step` until it `has_caught_up`, and again after a change."""

    def __init__(self, sources: Sources, selection: Selection, *, cursor: int, with_snapshot: bool) -> None:
        self.sources = sources
        self.selection = selection
        self.cursor = cursor
        self._boundary: bytes | None = None
        self._with_snapshot = with_snapshot
        self._runs: list[_Expansion] = []

    @property
    def generation(self) -> str:
        """The generation that cursors belong to."""
        return self.sources.generation

    def position(self, oseq: int) -> str:
        """The cursor behind an event."""
        return f"{self.generation}:{oseq}"

    async def step(self) -> list[Notice]:
        """The next notices, all as of one moment. Raises `Expired` where changes that were not told yet are gone."""
        if self._with_snapshot:
            self._with_snapshot = False
            self._boundary = b""
            self.cursor = await self.sources.journal.last(self.sources.shard)
            return [Notice("snapshot-begin", Begin(generation=self.generation, view=self.selection.view))]
        notices = await self._tail()
        if self._boundary is None:
            return notices
        page = [] if self._runs or not await self._is_at_end() else await self._page()
        return [Notice(one.event, one.data) for one in notices] + page  # going on behind one would miss the rest

    async def has_caught_up(self) -> bool:
        """Whether everything up to now is told; if not, ask for another step, also after one that told nothing."""
        return self._boundary is None and not self._with_snapshot and not self._runs and await self._is_at_end()

    async def _is_at_end(self) -> bool:
        return self.cursor >= await self.sources.journal.last(self.sources.shard)

    def _reader(self) -> Reader:
        return Reader(self.sources.shards.source(), self.sources.ruleset)

    async def _tail(self) -> list[Notice]:
        if self._runs:
            return await self._expand(self._runs[0])
        shard, journal = self.sources.shard, self.sources.journal
        last = await journal.last(shard)
        if self.cursor >= last:
            return []
        if self.cursor < await journal.forgotten(shard):
            raise Expired
        events = await journal.read(shard, CHANGES, after=self.cursor, limit=EVENTS_AT_ONCE)
        told: list[Notice] = []
        reader = self._reader()
        for event in events:
            if self.selection.view == "scope":
                told += self._scope_change(event.oseq, event.key, event.value)
            else:
                told += await self._document_changes(reader, event.oseq, _changes.decode(event.value))
            self.cursor = event.oseq
            if self._runs:
                return told
        if len(events) < EVENTS_AT_ONCE:
            self.cursor = last
        return told

    def _is_ahead(self, key: bytes) -> bool:
        """Whether the snapshot has yet to come to this key."""
        return self._boundary is not None and key > self._boundary

    # Scopes

    def _scope_change(self, oseq: int, key: bytes, value: bytes) -> Iterator[Notice]:
        name = key.decode()
        if self._is_ahead(b"s:" + key) or not _has_parts(name, self.selection.parts):
            return
        change = _changes.decode(value)
        members = ((one.id, one.type) for one in (*change.entered, *change.left))
        runs = (("", run.type) for run in (*change.entered_runs, *change.left_runs))
        if not self._touches((*members, *runs)):
            return
        position = f"{self.generation}/{self.sources.shard}/{oseq}"
        yield Notice("change", Told(position=position, oseq=oseq, change=change), oseq)

    def _touches(self, members: Iterable[tuple[str, str]]) -> bool:
        chosen = self.selection
        if not (chosen.ids or chosen.types or chosen.domains):
            return True
        return any(
            (not chosen.ids or name in chosen.ids) and (not kind or self._is_chosen_type(kind))
            for name, kind in members
        )

    def _is_chosen_type(self, kind: str) -> bool:
        chosen = self.selection
        if chosen.types and kind not in chosen.types:
            return False
        domain = self.sources.ruleset.domain_of.get(kind)
        return not chosen.domains or (domain is not None and domain.name in chosen.domains)

    # The snapshot

    async def _page(self) -> list[Notice]:
        """The next items of the snapshot, and its end behind the last."""
        assert self._boundary is not None
        reader = self._reader()
        told = await self._few(reader) if not self._boundary else None
        if told is None:
            first, end = (b"s:", b"s;") if self.selection.view == "scope" else (b"d:", b"d;")
            start = max(self._boundary, first)
            rows = await self.sources.listing.scan(self.sources.shard, start, end, ITEMS_AT_ONCE)
            told = await self._items(reader, [decode_value(key, value) for key, value in rows])
            if len(rows) == ITEMS_AT_ONCE:
                self._boundary = rows[-1][0]
                return told
        self._boundary = None
        end_of_it = End(generation=self.generation, cursor=self.position(self.cursor))
        return [*told, Notice("snapshot-end", end_of_it, self.cursor)]

    async def _few(self, reader: Reader) -> list[Notice] | None:
        """The whole snapshot at once, where the selection leads to few items without reading all."""
        chosen = self.selection
        if chosen.view == "document" and chosen.ids:
            names = {*chosen.ids, *[one for name in chosen.ids for one in await self._editions(reader, name)]}
            return await self._items(reader, [await reader.held(name) for name in sorted(names)[:FEW_MAX]])
        if not chosen.parts:
            return None
        exact = scope_name(sorted(chosen.parts))
        found = await self.sources.index.scopes(sorted(chosen.parts), FEW_MAX)
        scopes = [await reader.scope(name) for name in sorted({exact, *found})]
        if len(scopes) >= FEW_MAX or sum(size(scope) for scope in scopes) >= FEW_MAX:
            return None
        if chosen.view == "scope":
            return await self._items(reader, scopes)
        names = {entry.id for scope in scopes for entry in await self._members(reader, scope)}
        return await self._items(reader, [await reader.held(name) for name in sorted(names)])

    async def _items(self, reader: Reader, values: Sequence[object]) -> list[Notice]:
        scopes = [value for value in values if isinstance(value, Scope)]
        documents = [value for value in values if isinstance(value, Held) and self._matches(value)]
        told = [notice for scope in scopes for notice in await self._scope_state(reader, scope)]
        return told + await self._active_documents(reader, [held.entry.id for held in documents])

    async def _scope_state(self, reader: Reader, scope: Scope) -> list[Notice]:
        if not _has_parts(scope.name, self.selection.parts):
            return []
        if keys_of(scope.name) == AMENDED:
            return []  # nothing is void through it, and no change tells of it
        if keys_of(scope.name) == LINK:
            [(_, target)] = scope_parts(scope.name)
            if not size(scope) or not self._touches([(target, "")]):
                return []
            return [Notice("snapshot", ScopeState(scope=scope.name, seq=scope.seq, void=target))]
        entries = await reader.with_pages(lambda: holding(scope, reader))
        if not entries or not self._touches((entry.id, entry.type) for entry in entries):
            return []
        members = tuple(
            Member(
                id=entry.id,
                revision=entry.revision,
                type=entry.type,
                time=entry.time,
                order=entry.order,
                elsewhere=entry.elsewhere,
            )
            for entry in entries
        )
        return [Notice("snapshot", ScopeState(scope=scope.name, seq=scope.seq, members=members))]

    async def _active_documents(self, reader: Reader, names: Sequence[str]) -> list[Notice]:
        looked = zip(names, await reader.standing(names), strict=True)
        active = {name: found[0] for name, found in looked if found is not None and found[1]}
        bodies = await self.sources.index.documents(list(active))
        told = []
        for name, held in active.items():
            body = bodies.get(name)
            told.append(
                Notice(
                    "snapshot",
                    ActiveDocument(
                        id=name,
                        revision=held.revision,
                        type=held.type,
                        time=held.time,
                        order=held.order,
                        title=body.title if body is not None else "",
                        source=body.source if body is not None else "",
                        url=body.url if body is not None else "",
                        scopes=held.scopes,
                    ),
                )
            )
        return told

    # Documents

    def _matches(self, held: Held) -> bool:
        """Whether a document is what the subscriber asked for: those without a scope cannot be followed."""
        return held.is_present and bool(held.scopes) and self._is_asked_for(held)

    def _is_asked_for(self, held: Held) -> bool:
        chosen, name = self.selection, held.entry.id
        if chosen.ids and name not in chosen.ids and chosen.ids.isdisjoint(held.records):
            return False
        if not self._is_chosen_type(held.type):
            return False
        return not chosen.parts or any(_has_parts(scope, chosen.parts) for scope in held.scopes)

    async def _document_changes(self, reader: Reader, oseq: int, change: FrontierChange) -> list[Notice]:
        mentions = _mentions(change)
        if keys_of(change.scope) == LINK:
            for target in list(mentions):
                editions = await self._editions(reader, target)
                mentions.update((name, _Mention(name, mentions[target].why, "link")) for name in editions)
                if await reader.held(target) is None:
                    del mentions[target]  # the name of a record, or of nothing that is here
        runs = (*change.left_runs, *change.entered_runs)
        self._runs += [_Expansion(change, run, oseq) for run in runs]
        return await self._tell(reader, list(mentions.values()), change, oseq, is_all=not runs)

    async def _editions(self, reader: Reader, name: str) -> list[str]:
        return [entry.id for entry in await self._members(reader, await reader.scope(record_scope(name)))]

    async def _members(self, reader: Reader, scope: Scope) -> list[Entry]:
        return await reader.with_pages(lambda: list(everyone(scope, pages_of(reader.values))))

    async def _expand(self, expansion: _Expansion) -> list[Notice]:
        """The next members of a run, as they stand now."""
        reader = self._reader()
        scope = await reader.scope(expansion.change.scope)
        some = await reader.with_pages(lambda: list(islice(_beyond(scope, reader, expansion), ITEMS_AT_ONCE)))
        run = expansion.run
        mentions = [_Mention(e.id, run.why, run.rule, (e.type,), e.revision, e.time, e.order) for e in some]
        is_last = len(some) < ITEMS_AT_ONCE
        if is_last:
            self._runs.pop(0)
        else:
            expansion.after = (some[-1].time, some[-1].order, some[-1].id)
        return await self._tell(reader, mentions, expansion.change, expansion.oseq, is_all=is_last and not self._runs)

    async def _tell(
        self, reader: Reader, mentions: Sequence[_Mention], change: FrontierChange, oseq: int, *, is_all: bool
    ) -> list[Notice]:
        """What holds now of the documents that a change speaks of; the last notice of all carries the cursor."""
        mentions = [one for one in mentions if not self._is_ahead(b"d:" + one.id.encode())]
        looked = await reader.standing([one.id for one in mentions])
        chosen: list[tuple[_Mention, Held | None, bool]] = []
        for one, found in zip(mentions, looked, strict=True):
            held = found[0] if found is not None else None
            if (held is not None and self._is_asked_for(held)) or self._was_wanted(one, change.scope):
                chosen.append((one, held, found is not None and found[1]))
        bodies = await self.sources.index.documents([one.id for one, _, _ in chosen])
        told = []
        for at, (one, held, is_active) in enumerate(chosen, 1):
            body = bodies.get(one.id)
            data = DocumentChange(
                id=one.id,
                active=is_active,
                revision=held.revision if held is not None else one.revision,
                type=held.type if held is not None else one.types[-1] if one.types else "",
                selected=held is not None and self._matches(held),
                time=held.time if held is not None else one.time,
                order=held.order if held is not None else one.order,
                title=body.title if body is not None else "",
                source=body.source if body is not None else "",
                url=body.url if body is not None else "",
                why=one.why,
                rule=one.rule,
                scope=change.scope,
                cause=change.cause,
                oseq=oseq,
            )
            told.append(Notice("change", data, oseq if is_all and at == len(chosen) else None))
        return told

    def _was_wanted(self, one: _Mention, scope: str) -> bool:
        """Whether the subscriber may know a document that is gone, or is no longer what it asked for."""
        chosen, parts = self.selection, scope_parts(scope)
        is_named = not chosen.ids or one.id in chosen.ids or (parts[0][0] == RECORD and parts[0][1] in chosen.ids)
        if not is_named or not chosen.parts <= set(parts):
            return False
        types = [kind for kind in one.types if kind]
        return any(self._is_chosen_type(kind) for kind in types) if types else bool(chosen.ids)


def _mentions(change: FrontierChange) -> dict[str, _Mention]:
    """The members that a change lists; of one that left and entered, both types and what it is now."""
    found: dict[str, _Mention] = {}
    for one in (*change.left, *change.entered):
        before = found.get(one.id)
        types = (*(before.types if before is not None else ()), one.type)
        found[one.id] = _Mention(one.id, one.why, one.rule, types, one.revision, one.time, one.order)
    return found


def _beyond(scope: Scope, reader: Reader, expansion: _Expansion) -> Iterator[Entry]:
    """The members of a run behind the last one told, in order. Raises `Absent` for the next page only."""
    run, after = expansion.run, expansion.after
    if scope.sheets:
        pages = pages_of(reader.values)
        sheets = sheets_between(scope, pages, run.type, run.start, run.end)
        left = [sheet for sheet in sheets if after is None or sheet.last > after]
        entries = (entry for sheet in left for entry in page_of(scope, pages, sheet))
    else:
        entries = (entry for entry in scope.entries if entry.type == run.type)
    for entry in entries:
        if run.start <= entry.pair < run.end and (after is None or (entry.time, entry.order, entry.id) > after):
            yield entry


def _has_parts(scope: str, parts: frozenset[tuple[str, str]]) -> bool:
    return not parts or parts <= set(scope_parts(scope))
