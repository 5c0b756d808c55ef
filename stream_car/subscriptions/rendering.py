"""From the state and the changes of it to what a subscriber is told.

Promise: scope changes are told as they are; document changes and snapshots say what holds as of the
reader's values. A run of very many members is told piece by piece, each as it stands then.
Cost: one round of reads for all documents of a change, and one search for their titles.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec
from msgspec import Struct

from stream_car.core.changes import FrontierChange, Run
from stream_car.core.frontier import as_member
from stream_car.core.scope_names import LINK, keys_of, record_scope, scope_parts
from stream_car.core.stored import Entry, Scope, SortKey
from stream_car.core.timeline import all_members, page_entries_between, page_of, size
from stream_car.core.walk import pages_of
from stream_car.ports import AnchorIndex, Emission
from stream_car.queries.answers import Told
from stream_car.queries.scopes import holding
from stream_car.queries.snapshot import Snapshot
from stream_car.subscriptions.events import ActiveDocument, DocumentChange, Notice, ScopeState
from stream_car.subscriptions.filters import FilterMatcher, Mention, has_parts
from stream_car.subscriptions.lookup_cache import LookedUpDocument

IsAhead = Callable[[bytes], bool]  # whether a snapshot has yet to come to a key

decode_change = msgspec.json.Decoder(FrontierChange).decode


class Expansion(Struct, frozen=True):
    """A run of members that is told piece by piece; `min_revisions` is the last one told."""

    change: FrontierChange
    run: Run
    oseq: int
    after: SortKey | None = None


class Renderer:
    """Puts into words what one subscriber asked for."""

    def __init__(self, chooser: FilterMatcher, index: AnchorIndex, generation: str) -> None:
        self.matcher = chooser
        self.index = index
        self.generation = generation

    # Scopes

    def scope_change(self, shard: int, event: Emission, is_ahead: IsAhead) -> Iterator[Notice]:
        """A change of a scope that is asked for, as it is."""
        name = event.key.decode()
        if is_ahead(b"s:" + event.key) or not has_parts(name, self.matcher.filter.parts):
            return
        change = decode_change(event.value)
        members = ((one.id, one.type) for one in (*change.entered, *change.left))
        runs = (("", run.type) for run in (*change.entered_runs, *change.left_runs))
        if self.matcher.matches_any((*members, *runs)):
            position = f"{self.generation}/{shard}/{event.oseq}"
            yield Notice("change", Told(position=position, oseq=event.oseq, change=change))

    async def scope_state(self, reader: Snapshot, scope: Scope) -> list[Notice]:
        """The members that a scope does not void; nothing where nothing is asked for."""
        if not has_parts(scope.name, self.matcher.filter.parts):
            return []
        if keys_of(scope.name) == LINK:
            [(_, target)] = scope_parts(scope.name)
            if not size(scope) or not self.matcher.matches_any([(target, "")]):
                return []
            return [Notice("snapshot", ScopeState(scope=scope.name, seq=scope.seq, void=target))]
        entries = await reader.with_pages(lambda: holding(scope, reader))
        if not entries or not self.matcher.matches_any((entry.id, entry.type) for entry in entries):
            return []
        return [Notice("snapshot", ScopeState(scope=scope.name, seq=scope.seq, members=tuple(map(as_member, entries))))]

    # Documents

    async def active_documents(self, reader: Snapshot, names: Sequence[str]) -> list[Notice]:
        """Those of these documents that are asked for and in force."""
        known = [held for name in names if (held := await reader.document(name)) is not None]
        chosen = [held.entry.id for held in known if self.matcher.matches(held)]
        looked = zip(chosen, await reader.anchor_statuses(chosen), strict=True)
        active = {name: found[0] for name, found in looked if found is not None and found[1]}
        bodies = await self.index.documents(list(active))
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

    async def look_up(self, reader: Snapshot, change: FrontierChange) -> list[LookedUpDocument]:
        """How the documents stand that a change names one by one."""
        mentions = _mentions(change)
        if keys_of(change.scope) == LINK:
            for target in list(mentions):
                editions = await editions_of(reader, target)
                mentions.update((name, Mention(name, mentions[target].why, "link")) for name in editions)
                if await reader.document(target) is None:
                    del mentions[target]  # the name of a record, or of nothing that is here
        return await self._facts(reader, list(mentions.values()))

    async def expand(
        self, reader: Snapshot, expansion: Expansion, most: int, is_ahead: IsAhead
    ) -> tuple[list[Notice], Expansion | None]:
        """The next members of a run, as they stand now, and what is left of it."""
        change, run = expansion.change, expansion.run
        scope = await reader.scope(change.scope)
        found = await reader.with_pages(lambda: list(islice(_beyond(scope, reader, expansion), most + 1)))
        some = found[:most]
        mentions = [Mention(e.id, run.why, run.rule, (e.type,), e.revision, e.time, e.order) for e in some]
        told = self.document_changes(await self._facts(reader, mentions), change, expansion.oseq, is_ahead)
        if len(found) <= most:
            return told, None
        last = some[-1]
        return told, Expansion(change, run, expansion.oseq, (last.time, last.order, last.id))

    async def _facts(self, reader: Snapshot, mentions: Sequence[Mention]) -> list[LookedUpDocument]:
        looked = await reader.anchor_statuses([one.id for one in mentions])
        bodies = await self.index.documents([one.id for one in mentions])
        facts = []
        for one, found in zip(mentions, looked, strict=True):
            held, body = found[0] if found is not None else None, bodies.get(one.id)
            is_active = found is not None and found[1]
            words = (body.title, body.source, body.url) if body is not None else ()
            facts.append(LookedUpDocument(one, held, is_active, *words))
        return facts

    def document_changes(
        self, facts: Sequence[LookedUpDocument], change: FrontierChange, oseq: int, is_ahead: IsAhead
    ) -> list[Notice]:
        """What became of those documents that are asked for."""
        told = []
        for fact in facts:
            one, held = fact.mention, fact.document
            is_asked_for = held is not None and self.matcher.is_selected(held)
            if is_ahead(b"d:" + one.id.encode()):
                continue
            if not is_asked_for and not self.matcher.was_selected(one, change.scope):
                continue
            data = DocumentChange(
                id=one.id,
                active=fact.is_active,
                revision=held.revision if held is not None else one.revision,
                type=held.type if held is not None else one.types[-1] if one.types else "",
                selected=held is not None and self.matcher.matches(held),
                time=held.time if held is not None else one.time,
                order=held.order if held is not None else one.order,
                title=fact.title,
                source=fact.source,
                url=fact.url,
                why=one.why,
                rule=one.rule,
                scope=change.scope,
                cause=change.cause,
                oseq=oseq,
            )
            told.append(Notice("change", data))
        return told


def runs_of(change: FrontierChange, oseq: int) -> tuple[Expansion, ...]:
    """The runs that are to be told after the documents that a change names."""
    return tuple(Expansion(change, run, oseq) for run in (*change.left_runs, *change.entered_runs))


async def editions_of(reader: Snapshot, name: str) -> list[str]:
    """The documents that are editions of a record."""
    return [entry.id for entry in await members_of(reader, await reader.scope(record_scope(name)))]


async def members_of(reader: Snapshot, scope: Scope) -> list[Entry]:
    """All members of a scope, void ones too."""
    return await reader.with_pages(lambda: list(all_members(scope, pages_of(reader.values))))


def _mentions(change: FrontierChange) -> dict[str, Mention]:
    """The members that a change lists; of one that left and entered, both types and what it is now."""
    found: dict[str, Mention] = {}
    for one in (*change.left, *change.entered):
        before = found.get(one.id)
        types = (*(before.types if before is not None else ()), one.type)
        found[one.id] = Mention(one.id, one.why, one.rule, types, one.revision, one.time, one.order)
    return found


def _beyond(scope: Scope, reader: Snapshot, expansion: Expansion) -> Iterator[Entry]:
    """The members of a run behind the last one told, in order. Raises `MissingPages` for the next page only."""
    run, after = expansion.run, expansion.after
    if scope.directory:
        pages = pages_of(reader.values)
        sheets = page_entries_between(scope, pages, run.type, run.start, run.end)
        left = [sheet for sheet in sheets if after is None or sheet.last > after]
        entries = (entry for sheet in left for entry in page_of(scope, pages, sheet))
    else:
        entries = (entry for entry in scope.entries if entry.type == run.type)
    for entry in entries:
        if run.start <= entry.precedence < run.end and (after is None or (entry.time, entry.order, entry.id) > after):
            yield entry
