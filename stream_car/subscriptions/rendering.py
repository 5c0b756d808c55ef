"""Turn the state and its changes into the notices of one subscription.

Promise: scope changes are emitted as the log has them, with what became of their members. Document changes and
snapshots report what holds as of the values read. A run of very many members is emitted in pieces, each member with its
status at that time.
Cost: one round of reads for all documents of a change, and one search for their titles.

In this package `state` is a `queries.snapshot.Snapshot`; "snapshot" alone is the first part of a subscription.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from itertools import islice

from msgspec import Struct

from stream_car.codec.changes import decode_change
from stream_car.codec.times import from_micros
from stream_car.core.changes import FrontierChange, Run
from stream_car.core.scope_names import LINK, keys_of, record_scope, scope_parts
from stream_car.core.stored import Entry, Scope, SortKey, StoredDocument
from stream_car.core.timeline import all_members, page_entries_between, page_of, size, sort_key
from stream_car.core.walk import pages_of
from stream_car.ports import AnchorIndex, Emission
from stream_car.queries.answers import DocumentStatus, Step
from stream_car.queries.changes import (
    Positions,
    decisive_documents,
    listed_cause,
    listed_change,
    listed_entry,
    of_fates,
    time_of,
)
from stream_car.queries.outcomes import Fate, Fates, reasons_of
from stream_car.queries.scope_members import latest_members
from stream_car.queries.scope_values import has_parts
from stream_car.queries.shards import Shards
from stream_car.queries.snapshot import Snapshot
from stream_car.subscriptions.events import DocumentChange, Notice, ScopeChange, SnapshotDocument, SnapshotScope
from stream_car.subscriptions.lookup_cache import LookedUpChange, LookedUpDocument
from stream_car.subscriptions.selection import Mention, SelectionMatcher

IsAhead = Callable[[bytes], bool]  # whether the snapshot has not reached this key yet


class Expansion(Struct, frozen=True):
    """A run whose members are emitted in pieces; `after` is the last member emitted."""

    change: FrontierChange
    run: Run
    position: str
    after: SortKey | None = None


class Renderer:
    """Renders notices of what one subscription selects."""

    def __init__(self, matcher: SelectionMatcher, index: AnchorIndex, positions: Positions, shards: Shards) -> None:
        self.matcher = matcher
        self.index = index
        self.positions = positions
        self.shards = shards

    # Scopes

    async def scope_change(
        self, state: Snapshot, shard: int, event: Emission, is_ahead: IsAhead
    ) -> AsyncIterator[Notice]:
        """The change of a scope, with what became of its members, if the scope and one of its members are selected."""
        name = event.key.decode()
        if is_ahead(b"s:" + event.key) or not has_parts(name, self.matcher.values):
            return
        change = decode_change(event.key, event.value)
        members = ((member.id, member.type) for member in (*change.entered, *change.left))
        runs = (("", run.type) for run in (*change.entered_runs, *change.left_runs))
        if self.matcher.matches_any((*members, *runs)):
            fates = await self._fates_of(state, decisive_documents(state.ruleset, [change]))
            listed = listed_change(self.positions.of(shard, event.oseq, change.offset), change, fates)
            if of_fates(listed, self.matcher.kinds, state.ruleset) is not None:
                yield Notice(ScopeChange(change=listed), offset=change.offset)

    async def scope_state(
        self, state: Snapshot, scope: Scope, after: SortKey | None, limit: int
    ) -> tuple[SnapshotScope | None, SortKey | None]:
        """The next members that a scope does not void, and the member to continue after if there are more.

        There are at most `limit`. There is no event if no more are in force, or no member of the scope is selected.
        """
        if not has_parts(scope.name, self.matcher.values):
            return None, None
        if keys_of(scope.name) == LINK:
            [(_, target)] = scope_parts(scope.name)
            if not size(scope) or not self.matcher.matches_any([(target, "")]):
                return None, None
            return SnapshotScope(scope=scope.name, seq=scope.seq, superseded=target, pairs={LINK: target}), None
        if after is None and not await self._selects_scope(state, scope, limit):
            return None, None
        members, rest = await _next_members(state, scope, after, limit)
        if not members:
            return None, None
        fates = await self._fates_of(state, [entry.id for entry in members if entry.type in state.ruleset.states])
        event = SnapshotScope(
            scope=scope.name,
            seq=scope.seq,
            continued=after is not None,
            members=tuple(listed_entry(entry, fates) for entry in members),
            pairs=dict(scope_parts(scope.name)),
        )
        return event, rest

    async def _selects_scope(self, state: Snapshot, scope: Scope, limit: int) -> bool:
        """Whether a member that the scope does not void is selected. Keeps at most `limit` members in memory."""
        rest: SortKey | None = None
        while True:
            members, rest = await _next_members(state, scope, rest, limit)
            if self.matcher.matches_any((entry.id, entry.type) for entry in members):
                return True
            if rest is None:
                return False

    async def _fates_of(self, state: Snapshot, names: Sequence[str]) -> Fates:
        return Fates(state.ruleset, await self.index.documents(names) if names else {})

    # Documents

    async def snapshot_items(self, state: Snapshot, names: Sequence[str]) -> list[Notice]:
        """Those of these documents that are selected and active."""
        known = [stored for name in names if (stored := await state.document(name)) is not None]
        selected = [stored.entry.id for stored in known if self.matcher.matches(stored)]
        statuses = zip(selected, await state.anchor_statuses(selected), strict=True)
        active = {name: status[0] for name, status in statuses if status is not None and status[1]}
        bodies = await self.index.documents(list(active))
        fates = Fates(state.ruleset, bodies)
        notices = []
        for name, stored in active.items():
            body, fate = bodies.get(name), fates.of(name, stored.type)
            notices.append(
                Notice(
                    SnapshotDocument(
                        id=name,
                        revision=stored.revision,
                        type=stored.type,
                        time=from_micros(stored.time),
                        order=stored.order,
                        title=body.title if body is not None else "",
                        source=body.source if body is not None else "",
                        url=body.url if body is not None else "",
                        scopes=stored.scopes,
                        scope=body.scope if body is not None else (),
                        attributes=body.attributes if body is not None and self.matcher.selection.attributes else {},
                        state=fate.state,
                        state_text=fate.state_text,
                        state_since=fate.state_since,
                        outcome=fate.outcome,
                        outcome_text=fate.outcome_text,
                    ),
                )
            )
        return notices

    async def look_up(self, state: Snapshot, change: FrontierChange) -> LookedUpChange:
        """The present status of what a change names one by one."""
        mentions = mentions_of(change)
        if keys_of(change.scope) == LINK:
            for target in list(mentions):
                editions = await editions_of(state, target)
                mentions.update((name, Mention(name, mentions[target].why, "link")) for name in editions)
                if await state.document(target) is None:
                    del mentions[target]  # a record's name, or a document that was never published
        return await self._look_up(state, list(mentions.values()), change)

    async def expand(
        self, state: Snapshot, expansion: Expansion, limit: int, is_ahead: IsAhead
    ) -> tuple[list[Notice], Expansion | None]:
        """The next `limit` members of a run with their present status, and the rest of the run."""
        change, run = expansion.change, expansion.run
        scope = await state.scope(change.scope)
        entries = await state.with_pages(lambda: list(islice(_run_members(scope, state, expansion), limit + 1)))
        batch = entries[:limit]
        mentions = [Mention(e.id, run.why, run.rule, (e.type,), e.revision, e.time, e.order) for e in batch]
        lookup = await self._look_up(state, mentions, change)
        notices = self.changes(lookup, change, expansion.position, is_ahead)
        if len(entries) <= limit:
            return notices, None
        last = batch[-1]
        return notices, Expansion(change, run, expansion.position, (last.time, last.order, last.id))

    async def _look_up(self, state: Snapshot, mentions: Sequence[Mention], change: FrontierChange) -> LookedUpChange:
        names = [mention.id for mention in mentions]
        statuses = await state.anchor_statuses(names)
        reasons = await _reasons(state, mentions, statuses, change)
        by = dict.fromkeys(step.id for steps in reasons.values() for step in steps)
        bodies = await self.index.documents(list(dict.fromkeys((*names, *by))))
        fates = Fates(state.ruleset, bodies)
        documents = []
        for mention, status in zip(mentions, statuses, strict=True):
            body = bodies.get(mention.id)
            texts = (body.title, body.source, body.url, body.scope, body.attributes) if body is not None else ()
            if status is not None:
                stored, is_active = status
                now: DocumentStatus = "in_force" if is_active else "superseded"
                fate = fates.of(mention.id, stored.type, reasons.get(mention.id, ()))
                documents.append(LookedUpDocument(mention, stored, now, fate, *texts))
            else:
                now = _absent_status(await state.document(mention.id))
                documents.append(LookedUpDocument(mention, None, now, Fate(), *texts))
        return LookedUpChange(documents=documents, time=await time_of(change, state))

    def changes(self, lookup: LookedUpChange, change: FrontierChange, position: str, is_ahead: IsAhead) -> list[Notice]:
        """What became of those of these documents that are or were selected."""
        notices = []
        for document in lookup.documents:
            mention, stored = document.mention, document.document
            time = stored.time if stored is not None else mention.time
            if is_ahead(b"d:" + mention.id.encode()) or not self.matcher.selects_outcome(document.fate.outcome):
                continue
            is_selected = stored is not None and self.matcher.is_selected(stored)
            if not is_selected and not self.matcher.was_selected(mention, change.scope):
                continue
            data = DocumentChange(
                id=mention.id,
                status=document.status,
                revision=stored.revision if stored is not None else mention.revision,
                type=stored.type if stored is not None else mention.types[-1] if mention.types else "",
                selected=stored is not None and self.matcher.matches(stored),
                time=from_micros(time) if stored is not None or mention.revision else None,
                order=stored.order if stored is not None else mention.order,
                title=document.title,
                source=document.source,
                url=document.url,
                why=mention.why,
                rule=mention.rule,
                scope=change.scope,
                cause=listed_cause(change.cause, lookup.time),
                position=position,
                pairs=dict(scope_parts(change.scope)),
                document_scope=document.scope,
                attributes=document.attributes if self.matcher.selection.attributes else {},
                state=document.fate.state,
                state_text=document.fate.state_text,
                state_since=document.fate.state_since,
                outcome=document.fate.outcome,
                outcome_text=document.fate.outcome_text,
            )
            notices.append(Notice(data, offset=change.offset))
        return notices


def runs_of(change: FrontierChange, position: str) -> tuple[Expansion, ...]:
    """The runs to emit after the documents that a change names one by one."""
    return tuple(Expansion(change, run, position) for run in (*change.left_runs, *change.entered_runs))


async def _next_members(
    state: Snapshot, scope: Scope, after: SortKey | None, limit: int
) -> tuple[list[Entry], SortKey | None]:
    """The next members before `after` that a scope does not void, latest first, and where to go on if there are more.

    Looks at `limit` members at a time, and returns those of the first time that has any.
    """
    while True:
        state.forget_pages()
        latest = await state.with_pages(partial(latest_members, scope, state, after, limit + 1))
        after = sort_key(latest[limit - 1][0]) if len(latest) > limit else None
        members = [entry for entry, does_hold in latest[:limit] if does_hold]
        if members or after is None:
            return members, after


async def editions_of(state: Snapshot, name: str) -> list[str]:
    """The ids of the editions of a record."""
    return [entry.id for entry in await members_of(state, await state.scope(record_scope(name)))]


async def members_of(state: Snapshot, scope: Scope) -> list[Entry]:
    """All members of a scope, void ones included."""
    return await state.with_pages(lambda: list(all_members(scope, pages_of(state.values))))


async def _reasons(
    state: Snapshot,
    mentions: Sequence[Mention],
    statuses: Sequence[tuple[StoredDocument, bool] | None],
    change: FrontierChange,
) -> dict[str, Sequence[Step]]:
    """Why those of these documents that are superseded are so: by the cause of the change, or if not, as walks tell."""
    superseded = {m.id: m for m, status in zip(mentions, statuses, strict=True) if status is not None and not status[1]}
    reasons: dict[str, Sequence[Step]] = {
        name: [Step(id=change.cause.id, rule=mention.rule, scope=change.scope)]
        for name, mention in superseded.items()
        if mention.why in ("voided", "link") and name != change.cause.id
    }
    walks = await state.walk([name for name in superseded if name not in reasons])
    return reasons | {walk.anchor: reasons_of(walk) for walk in walks if walk is not None}


def mentions_of(change: FrontierChange) -> dict[str, Mention]:
    """The members that a change lists, by id. A member that left and entered has both types and its new values."""
    mentions: dict[str, Mention] = {}
    for member in (*change.left, *change.entered):
        earlier = mentions.get(member.id)
        types = (*(earlier.types if earlier is not None else ()), member.type)
        mentions[member.id] = Mention(
            member.id, member.why, member.rule, types, member.revision, member.time, member.order
        )
    return mentions


def _run_members(scope: Scope, state: Snapshot, expansion: Expansion) -> Iterator[Entry]:
    """The members of a run after the last one emitted, in order. Raises `MissingPages` for the next page only."""
    run, after = expansion.run, expansion.after
    if scope.directory:
        pages = pages_of(state.values)
        page_entries = page_entries_between(scope, pages, run.type, run.start, run.end)
        unread = [page_entry for page_entry in page_entries if after is None or page_entry.last > after]
        entries = (entry for page_entry in unread for entry in page_of(scope, pages, page_entry))
    else:
        entries = (entry for entry in scope.entries if entry.type == run.type)
    for entry in entries:
        if run.start <= entry.precedence < run.end and (after is None or (entry.time, entry.order, entry.id) > after):
            yield entry


def _absent_status(stored: StoredDocument | None) -> DocumentStatus:
    """The status of a document that is not part of the corpus now."""
    if stored is None:
        return "unknown"
    return "retracted" if stored.retracted else "pending"
