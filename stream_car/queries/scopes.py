"""Questions about scopes and single documents: frontier, history, changes, explanation.

Promise: they see the same state as queries. Cost: that of one page, see `paging`; what came before is not read again.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from math import prod

import msgspec
from msgspec.structs import replace

from stream_car.codec.changes import decode_change, encode_change
from stream_car.codec.times import from_micros
from stream_car.core.changes import FrontierChange, Rejection
from stream_car.core.revisions import entry_of
from stream_car.core.scope_names import RESERVED_KEYS, is_scope_name, scope_name, scope_parts
from stream_car.core.stored import Entry, Scope, SortKey
from stream_car.core.timeline import size, sort_key
from stream_car.core.walk import WalkResult
from stream_car.errors import InvalidRequest
from stream_car.ports import ChangeLogReader, Emission, Log, MarkedLog, Record
from stream_car.processing.fold import CHANGES, REJECTED
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import PENDING
from stream_car.queries.answers import (
    Blocked,
    Change,
    Ending,
    Evidence,
    Explanation,
    Frontier,
    History,
    Lookup,
    Membership,
    PendingDocument,
    Rejected,
    Step,
    TimelineMember,
    text_or_base64,
)
from stream_car.queries.assembly import evidence_of, groups_of, read_fates, with_limited_list
from stream_car.queries.changes import (
    Position,
    Positions,
    are_since,
    decisive_documents,
    listed_change,
    of_fates,
    of_types,
)
from stream_car.queries.listed_kinds import ALL_KINDS, ListedKinds
from stream_car.queries.originals import look_up
from stream_car.queries.outcomes import RECORD_NAMES, Fates, status_of_name
from stream_car.queries.paging import PageRoom, ScopePosition, batches, page_of_scopes
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import DEFAULT_OPTIONS, ReadOptions, rest_if_due
from stream_car.queries.scope_members import ALL, earliest_members, latest_members, voiders_of
from stream_car.queries.scope_values import Pair, ValuesByKey, combinations, values_by_key
from stream_car.queries.snapshot import Snapshot

SCOPES_MAX = 10_000
VOIDERS_MAX = 5
CHANGES_AT_ONCE = 200  # read of the change log
LISTED_AT_ONCE = 16  # of them, whose documents are read before other work may run

ONE_SHARD = Partitions()


class ScopeQueries:
    """What scopes hold now, what they held before, how they changed, and why a document is or is not active."""

    def __init__(
        self,
        queries: Queries,
        *,
        change_log: ChangeLogReader,
        log: Log,
        marks: MarkedLog | None = None,
        partitions: Partitions = ONE_SHARD,
    ) -> None:
        self.queries = queries
        self.change_log = change_log
        self.log = log
        self.partitions = partitions
        self.positions = Positions(queries.generation, marks)

    async def scope_names(self, scope: Mapping[str, str]) -> list[str]:
        """The names of the scopes that have all these pairs, in order.

        Raises `InvalidRequest` (`scope`) if too many scopes match.
        """
        names = await self._scope_names(scope, "")
        if len(names) > SCOPES_MAX:
            exact = scope_name(self.queries.ruleset.normalize_part(key, value) for key, value in scope.items())
            raise InvalidRequest("scope", f"More than {SCOPES_MAX} scopes have {exact}. Add another KEY=VALUE.")
        return names

    async def _scope_names(self, scope: Mapping[str, str], start: str) -> list[str]:
        """The first `SCOPES_MAX` of these names from `start` on, and one more. Of link scopes, the exact name only."""
        pairs = [self.queries.ruleset.normalize_part(key, value) for key, value in scope.items()]
        exact = scope_name(pairs)
        if pairs[0][0] in RESERVED_KEYS:
            return [exact] if exact >= start else []
        names = await self.queries.index.scopes(pairs, SCOPES_MAX + 1, start)
        return sorted({*([exact] if is_scope_name(exact) and exact >= start else []), *names})[: SCOPES_MAX + 1]

    async def frontier(
        self,
        scope: Mapping[str, str],
        *,
        as_of: int | None = None,
        after: str = "",
        limit: int = ALL,
        kinds: ListedKinds = ALL_KINDS,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> tuple[Frontier, ...]:
        """The frontier of every scope that has these pairs; members that are void elsewhere are listed separately.

        Only members of these kinds are listed, but a page reads `limit` members of these types at most.

        Raises `InvalidRequest` (`scope`, `after`).
        """
        start, names, has_more = await self._rest_of_scopes(scope, after)

        async def read(snapshot: Snapshot) -> tuple[Frontier, ...]:
            room = PageRoom.of(limit)
            return await page_of_scopes(
                names, room, lambda name: self._frontier(snapshot, name, start, room, kinds), start, has_more=has_more
            )

        return await self.queries.read_consistently(as_of, read, options)

    async def _rest_of_scopes(self, scope: Mapping[str, str], after: str) -> tuple[ScopePosition, list[str], bool]:
        """The position after which a listing of scopes continues, the names that follow, and whether there are more."""
        start = ScopePosition.parse(after)
        names = await self._scope_names(scope, start.scope)
        has_more = len(names) > SCOPES_MAX
        names = names[1:] if start.member is None and names[:1] == [start.scope] else names
        return start, names[:SCOPES_MAX], has_more

    async def _frontier(
        self, snapshot: Snapshot, name: str, start: ScopePosition, room: PageRoom, kinds: ListedKinds
    ) -> Frontier:
        scope, after = await snapshot.scope(name), start.within(name)
        members = await snapshot.with_pages(partial(latest_members, scope, snapshot, after, room.members + 1, kinds))
        in_force: list[Evidence] = []
        blocked: list[Blocked] = []
        taken = 0
        for batch in batches(members[: room.members]):
            statuses = await snapshot.statuses([entry.id for entry, does_hold in batch if does_hold])
            reasons = [status.reasons for status in statuses.values()]
            fates = await read_fates(snapshot, self.queries.index, statuses, reasons)
            for entry, does_hold in batch:
                if room.is_full:
                    break
                taken += 1
                status, body = statuses.get(entry.id), fates.bodies.get(entry.id)
                if does_hold and status is not None:
                    room.take(scopes=len(status.scopes), size=len(body.text) if body is not None else 0)
                    evidence = evidence_of(entry, fates, active=status.is_active, reasons=status.reasons)
                    if not kinds.has_state(
                        state=evidence.state, outcome=evidence.outcome, is_superseded=not status.is_active
                    ):
                        continue
                    if status.is_active:
                        in_force.append(evidence)
                    else:
                        cause = status.reasons[0]
                        blocked.append(Blocked(document=evidence, scope=cause.scope, by=cause.id, rule=cause.rule))
        is_complete = taken == len(members)
        return Frontier(
            scope=name,
            in_force=tuple(in_force),
            blocked=tuple(blocked),
            members=size(scope),
            seq=scope.seq,
            complete=is_complete,
            reasons=() if is_complete else ("limit",),
            next="" if is_complete else str(ScopePosition(name, sort_key(members[taken - 1][0]))),
            pairs=dict(scope_parts(name)),
        )

    async def history(
        self,
        scope: Mapping[str, str],
        *,
        after: str = "",
        limit: int = ALL,
        kinds: ListedKinds = ALL_KINDS,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> tuple[History, ...]:
        """The timeline of every scope that has these pairs: when each member took effect, and what ended it.

        `kinds` and `limit` are as in `frontier`. Scopes without such members are left out.

        Raises `InvalidRequest` (`scope`, `after`).
        """
        start, names, has_more = await self._rest_of_scopes(scope, after)

        async def read(snapshot: Snapshot) -> tuple[History, ...]:
            room = PageRoom.of(limit)
            return await page_of_scopes(
                names, room, lambda name: self._history(snapshot, name, start, room, kinds), start, has_more=has_more
            )

        return await self.queries.read_consistently(None, read, options)

    async def _history(
        self, snapshot: Snapshot, name: str, start: ScopePosition, room: PageRoom, kinds: ListedKinds
    ) -> History:
        scope, after = await snapshot.scope(name), start.within(name)
        entries = await snapshot.with_pages(partial(earliest_members, scope, snapshot, after, room.members + 1, kinds))
        members: list[TimelineMember] = []
        taken = 0
        for batch in batches(entries[: room.members]):
            endings = await self._endings(snapshot, scope, batch, room)
            names, reasons = [entry.id for entry in batch], [steps for _, steps in endings]
            fates = await read_fates(snapshot, self.queries.index, names, reasons)
            for entry, ending in zip(batch, endings, strict=True):
                if room.is_full and taken:
                    break
                taken += 1
                room.take()
                member = _timeline_member(entry, ending, fates)
                is_superseded = member.ended is not None
                if kinds.has_state(state=member.state, outcome=member.outcome, is_superseded=is_superseded):
                    members.append(member)
        is_complete = taken == len(entries)
        return History(
            scope=name,
            members=tuple(members),
            complete=is_complete,
            reasons=() if is_complete else ("limit",),
            next="" if is_complete else str(ScopePosition(name, sort_key(entries[taken - 1]))),
            pairs=dict(scope_parts(name)),
        )

    async def _endings(
        self, snapshot: Snapshot, scope: Scope, entries: Sequence[Entry], room: PageRoom
    ) -> list[tuple[int, tuple[Step, ...]]]:
        """When and by what each member was voided first, in this scope or else elsewhere; by nothing if active."""
        voiders = [
            await snapshot.with_pages(partial(voiders_of, scope, entry, snapshot, VOIDERS_MAX)) for entry in entries
        ]
        others = [entry.id for entry, by_scope in zip(entries, voiders, strict=True) if not by_scope]
        statuses = await snapshot.statuses(others)
        room.take(members=0, scopes=sum(len(status.scopes) for status in statuses.values()))
        endings: list[tuple[int, tuple[Step, ...]]] = []
        for entry, by_scope in zip(entries, voiders, strict=True):
            if by_scope:
                first = by_scope[0][1]
                at_first = [(rule, later.id) for rule, later in by_scope if later.precedence == first.precedence]
                steps = (Step(id=name, rule=rule, scope=scope.name) for rule, name in at_first)
                endings.append((first.time, tuple(steps)))
                continue
            status = statuses.get(entry.id)
            since = status.since if status is not None and status.since is not None else entry.time
            endings.append((since, status.reasons if status is not None else ()))
        return endings

    async def changes(
        self,
        scope: Collection[Pair] = (),
        *,
        after: str = "",
        since: int | None = None,
        limit: int = ALL,
        kinds: ListedKinds = ALL_KINDS,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> tuple[Change, ...]:
        """The log of frontier changes, oldest first: of all scopes, or of those that have these pairs.

        Only what took effect at `since` or later, and of that the members that `kinds` selects. With several shards,
        one shard follows the other. Raises `InvalidRequest` (`after`, `scope`).
        """
        first = self.positions.parse(after) if after else Position(self.queries.generation, 0, 0)
        keys: dict[int, list[bytes | None]] = {shard: [None] for shard in range(self.partitions.frontiers)}
        if scope:
            keys = {}
            for name in await self._names_of_any(values_by_key(scope)):
                keys.setdefault(self.partitions.of_scope(name), []).append(name)
        changes: list[Change] = []
        batch: list[tuple[Position, FrontierChange, int]] = []
        room, snapshot = PageRoom.of(limit), self.queries.snapshot()
        for shard in sorted(shard for shard in keys if shard >= first.shard):
            number = first.number if shard == first.shard else 0
            async for event, change in self._changes_since(since, shard, keys[shard], number, limit, options):
                listed = of_types(change, kinds)
                if listed is None:
                    continue
                batch.append((self.positions.of(shard, event.oseq, change.offset), listed, len(encode_change(change))))
                if len(batch) == min(LISTED_AT_ONCE, room.members):
                    changes += await self._listed(batch, kinds, room, snapshot)
                    batch = []
                    await rest_if_due(options)
                    if room.is_full:
                        return tuple(changes)
        return (*changes, *await self._listed(batch, kinds, room, snapshot))

    async def _listed(
        self,
        changes: Sequence[tuple[Position, FrontierChange, int]],
        kinds: ListedKinds,
        room: PageRoom,
        snapshot: Snapshot,
    ) -> list[Change]:
        """Those of these changes that are listed and find room, with the states and outcomes of their members."""
        names = decisive_documents(snapshot.ruleset, (change for _, change, _ in changes))
        fates = await read_fates(snapshot, self.queries.index, names)
        listed: list[Change] = []
        for position, change, length in changes:
            selected = of_fates(listed_change(position, change, fates), kinds, snapshot.ruleset)
            if selected is not None and not room.is_full:
                room.take(size=length)
                listed.append(selected)
        return listed

    async def _names_of_any(self, wanted: ValuesByKey) -> list[bytes]:
        """The names of the scopes that have one of the values of each key. Raises `InvalidRequest` (`scope`)."""
        count = prod(map(len, wanted.values()))
        if count > SCOPES_MAX:
            raise InvalidRequest("scope", f"{count:,} combinations of values are too many. Give fewer values.")
        names: set[str] = set()
        for pairs in combinations(wanted):
            names.update(await self.scope_names(dict(pairs)))
        return sorted(map(str.encode, names))

    async def _changes_since(
        self,
        since: int | None,
        shard: int,
        keys: Sequence[bytes | None],
        after: int,
        limit: int,
        options: ReadOptions,
    ) -> AsyncIterator[tuple[Emission, FrontierChange]]:
        """The changes as `_changes_of` yields them, without those that took effect before a time."""
        batch: list[tuple[Emission, FrontierChange]] = []
        async for event in self._changes_of(shard, keys, after, limit, options):
            batch.append((event, decode_change(event.key, event.value)))
            if since is None or len(batch) == CHANGES_AT_ONCE:
                for each in await self._of_batch_since(since, batch):
                    yield each
                batch = []
        for each in await self._of_batch_since(since, batch):
            yield each

    async def _of_batch_since(
        self, since: int | None, batch: list[tuple[Emission, FrontierChange]]
    ) -> list[tuple[Emission, FrontierChange]]:
        if since is None:
            return batch
        are = await are_since(since, [change for _, change in batch], self.queries.snapshot())
        return [each for each, is_since in zip(batch, are, strict=True) if is_since]

    async def _changes_of(
        self, shard: int, keys: Sequence[bytes | None], after: int, limit: int, options: ReadOptions
    ) -> AsyncIterator[Emission]:
        """The changes of these scopes in one shard, in order. Of each scope, a few are read at a time."""
        count = min(limit, max(1, CHANGES_AT_ONCE // len(keys)))
        next_of: list[tuple[int, int, Sequence[Emission]]] = []  # the next change, the key, and what was read of it
        for at, key in enumerate(keys):
            if events := await self.change_log.read(shard, CHANGES, after=after, limit=count, key=key):
                heappush(next_of, (events[0].oseq, at, events))
            await rest_if_due(options)
        while next_of:
            oseq, at, events = heappop(next_of)
            yield events[0]
            events = events[1:] or await self.change_log.read(shard, CHANGES, after=oseq, limit=count, key=keys[at])
            if events:
                heappush(next_of, (events[0].oseq, at, events))
            await rest_if_due(options)

    async def documents(self, names: Sequence[str], *, options: ReadOptions = DEFAULT_OPTIONS) -> tuple[Lookup, ...]:
        """The documents that these names refer to, as they were published."""
        return await self.queries.read_consistently(
            None,
            lambda snapshot: look_up(snapshot, names, self.queries, self._record),
            replace(options, attributes=True),
        )

    async def _record(self, name: str, offset: int) -> Record | None:
        """The record of the log at an offset of the partition of an id."""
        records = await self.log.fetch(self.queries.shards.intake_of(name), offset, 1)
        return records[0] if records else None

    async def rejected(
        self, *, after: int = 0, limit: int = 100, options: ReadOptions = DEFAULT_OPTIONS
    ) -> tuple[Rejected, ...]:
        """Rejected input with its bytes, oldest first, after the rejection with the number `after`."""
        rejected: list[Rejected] = []
        room = PageRoom.of(limit)
        async for event in self._rejections(after, limit, options):
            if room.is_full:
                break
            rejection = msgspec.json.decode(event.value, type=Rejection)
            [record] = await self.log.fetch(0, rejection.offset, 1)
            room.take(size=len(record.value or b""))
            rejected.append(
                Rejected(
                    offset=rejection.offset,
                    code=rejection.code,
                    reason=rejection.reason,
                    append_time=from_micros(record.append_time),
                    number=event.oseq,
                    id=rejection.id,
                    content=text_or_base64(record.value or b""),
                )
            )
        return tuple(rejected)

    async def _rejections(self, after: int, limit: int, options: ReadOptions) -> AsyncIterator[Emission]:
        count = min(limit, CHANGES_AT_ONCE)
        while events := await self.change_log.read(0, REJECTED, after=after, limit=count):
            for event in events:
                yield event
            after = events[-1].oseq
            await rest_if_due(options)

    async def pending(self, *, after: str = "", limit: int = ALL) -> tuple[PendingDocument, ...]:
        """Documents that wait for their time, the next one due first. Raises `InvalidRequest` (`after`)."""
        start = ScopePosition.parse(after)
        pending: list[Entry] = []
        for source in self.queries.shards.pending_sources():
            pending += await self.queries.read_consistently(
                None, lambda s: _pending_in_shard(s, start.member, limit), source=source
            )
        return tuple(
            PendingDocument(
                id=entry.id,
                revision=entry.revision,
                time=from_micros(entry.time),
                position=str(ScopePosition("", sort_key(entry))),
            )
            for entry in sorted(pending, key=sort_key)[:limit]
        )

    async def explain(
        self, name: str, *, as_of: int | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> Explanation:
        """Why a document is or is not active, scope by scope and link by link, and what controls it."""
        return await self.queries.read_consistently(as_of, lambda snapshot: self._explain(snapshot, name), options)

    async def _explain(self, snapshot: Snapshot, name: str) -> Explanation:
        resolved = await self.queries.resolve_name(snapshot, name)
        if not resolved.ids:
            similar = await self.queries.similar_names(snapshot, [resolved])
            return Explanation(name=name, status=resolved.status, similar=similar.get(name, ()))
        walks = {walk.anchor: walk for walk in await snapshot.walk(resolved.ids) if walk is not None}
        if not walks:
            stored = await snapshot.document(resolved.ids[0])
            due = from_micros(stored.time) if stored is not None and resolved.status == "pending" else None
            status = resolved.status if resolved.status != "in_force" else "pending"  # it takes effect after `as_of`
            return Explanation(name=name, status=status, via=resolved.via, due=due)
        groups = await groups_of(snapshot, self.queries.index, list(map(with_limited_list, walks.values())))
        now = status_of_name(snapshot.ruleset, groups, is_record=resolved.via in RECORD_NAMES)
        group, fate = now.group or groups[-1], now.fate
        return Explanation(
            name=name,
            status=now.status,
            via=resolved.via,
            state=fate.state,
            state_text=fate.state_text,
            state_since=fate.state_since,
            outcome=fate.outcome,
            outcome_text=fate.outcome_text,
            document=group.anchor,
            memberships=await self._memberships(snapshot, group.anchor.id, walks[group.anchor.id]),
            group=group,
            others=_other_records(group.anchor.id, walks),
            reasons=("limit",) if resolved.has_more else (),
        )

    async def _memberships(self, snapshot: Snapshot, document_id: str, walk: WalkResult) -> tuple[Membership, ...]:
        """For each scope of a document, whether it holds there and what voids it; links are one more item."""
        memberships: list[Membership] = []
        for at, name in enumerate(walk.document.scopes):
            scope = await snapshot.scope(name)
            entry = entry_of(walk.document, at)
            voiders = await snapshot.with_pages(partial(voiders_of, scope, entry, snapshot, VOIDERS_MAX))
            by = tuple(Step(id=voider.id, rule=rule, scope=name) for rule, voider in voiders)
            memberships.append(Membership(scope=name, holds=not by, by=by))
        links = [Step(id=name, rule=rule, scope=scope) for name, rule, scope in walk.superseded_by if rule == "link"]
        if walk.document.superseded_by:
            links += [Step(id=name, rule="link", scope=f"document={document_id}") for name in walk.missing]
        if links:
            memberships.append(Membership(scope=links[0].scope, holds=False, by=tuple(links)))
        names = dict.fromkeys([document_id, *(step.id for membership in memberships for step in membership.by)])
        fates = await read_fates(snapshot, self.queries.index, names)
        return tuple(replace(m, by=tuple(fates.step(document_id, step) for step in m.by)) for m in memberships)


def _other_records(document_id: str, walks: Mapping[str, WalkResult]) -> tuple[str, ...]:
    """Return the records of these documents without those of one of them. What has no record is named by its id."""
    names = {name: walk.document.records or (name,) for name, walk in walks.items()}
    others = dict.fromkeys(record for records in names.values() for record in records)
    return tuple(record for record in others if record not in names[document_id])


async def _pending_in_shard(snapshot: Snapshot, after: SortKey | None, limit: int) -> list[Entry]:
    """The first `limit` pending documents of one shard."""
    await snapshot.load([PENDING])
    queue = snapshot.values[PENDING]
    if not isinstance(queue, Scope):
        return []
    return await snapshot.with_pages(partial(earliest_members, queue, snapshot, after, limit))


def _timeline_member(entry: Entry, ending: tuple[int, Sequence[Step]], fates: Fates) -> TimelineMember:
    time, steps = ending
    fate, reason = fates.of(entry.id, entry.type, steps), fates.reason(entry.id, entry.type, steps)
    body = fates.bodies.get(entry.id)
    ended = Ending(time=from_micros(time), id=reason.id, rule=reason.rule) if reason is not None else None
    return TimelineMember(
        id=entry.id,
        type=entry.type,
        revision=entry.revision,
        time=from_micros(entry.time),
        order=entry.order,
        ended=ended,
        offset=entry.offset,
        append_time=from_micros(entry.append_time),
        title=body.title if body is not None else "",
        scope=body.scope if body is not None else (),
        state=fate.state,
        outcome=fate.outcome,
        outcome_text=fate.outcome_text,
    )
