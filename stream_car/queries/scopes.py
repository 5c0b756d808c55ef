"""Questions about scopes and single documents: frontier, history, changes, explanation.

Promise: they see the same state as queries. Cost: the members of the requested scopes, at most `MEMBERS_MAX` of each.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice

import msgspec
from msgspec.structs import replace

from stream_car.codec.times import from_micros
from stream_car.core.changes import FrontierChange, Rejection
from stream_car.core.differ_on import values_of
from stream_car.core.revisions import entry_of
from stream_car.core.scope_names import RESERVED_KEYS, scope_name, scope_parts
from stream_car.core.stored import LOWEST, Entry, Scope
from stream_car.core.thresholds import Threshold, no_rule_supersedes, threshold_of
from stream_car.core.timeline import all_members, members_between, size, types
from stream_car.core.walk import WalkResult, pages_of
from stream_car.errors import InvalidRequest
from stream_car.ports import ChangeLogReader, Log, Record
from stream_car.processing.fold import CHANGES, REJECTED
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import PENDING
from stream_car.queries.answers import (
    Blocked,
    Change,
    Ending,
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
from stream_car.queries.assembly import evidence_of, groups_of, with_limited_list
from stream_car.queries.changes import Position, listed_change
from stream_car.queries.originals import look_up
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import DEFAULT_OPTIONS, ReadOptions
from stream_car.queries.snapshot import Snapshot

decode_change = msgspec.json.Decoder(FrontierChange).decode

MEMBERS_MAX = 2000
SCOPES_MAX = 10_000
VOIDERS_MAX = 5
ONE_SHARD = Partitions()


class ScopeQueries:
    """What scopes hold now, what they held before, how they changed, and why a document is or is not active."""

    def __init__(
        self, queries: Queries, *, change_log: ChangeLogReader, log: Log, partitions: Partitions = ONE_SHARD
    ) -> None:
        self.queries = queries
        self.change_log = change_log
        self.log = log
        self.partitions = partitions

    async def scope_names(self, scope: Mapping[str, str]) -> list[str]:
        """The names of the scopes that have all these pairs, in order. Link scopes are only matched by exact name.

        Raises `InvalidRequest` (`scope`) if too many scopes match.
        """
        pairs = [self.queries.ruleset.normalize_part(key, value) for key, value in scope.items()]
        exact = scope_name(pairs)
        if pairs[0][0] in RESERVED_KEYS:
            return [exact]
        names = await self.queries.index.scopes(pairs, SCOPES_MAX + 1)
        if len(names) > SCOPES_MAX:
            raise InvalidRequest("scope", f"More than {SCOPES_MAX} scopes have {exact}. Add another KEY=VALUE.")
        return sorted({exact, *names})

    async def frontier(
        self, scope: Mapping[str, str], *, as_of: int | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> tuple[Frontier, ...]:
        """The frontier of every scope that has these pairs; members that are void elsewhere are listed separately."""
        names = await self.scope_names(scope)

        async def read(snapshot: Snapshot) -> tuple[Frontier, ...]:
            frontiers = [await self._frontier(snapshot, name) for name in names]
            return tuple(frontier for frontier in frontiers if frontier.members)

        return await self.queries.read_consistently(as_of, read, options)

    async def _frontier(self, snapshot: Snapshot, name: str) -> Frontier:
        scope = await snapshot.scope(name)
        entries = await snapshot.with_pages(lambda: active_members(scope, snapshot))
        results = await snapshot.walk([entry.id for entry in entries[:MEMBERS_MAX]])
        walks = [walk for walk in results if walk is not None]
        bodies = await snapshot.bodies(self.queries.index, [walk.anchor for walk in walks])
        active = [walk for walk in walks if walk.is_active]
        return Frontier(
            scope=name,
            in_force=tuple(evidence_of(w.nodes[w.anchor].entry, bodies.get(w.anchor), active=True) for w in active),
            blocked=tuple(
                Blocked(
                    document=evidence_of(walk.nodes[walk.anchor].entry, bodies.get(walk.anchor), active=False),
                    scope=cause.scope,
                    by=cause.id,
                    rule=cause.rule,
                )
                for walk in walks
                if not walk.is_active
                for cause in [_cause(walk)]
            ),
            members=size(scope),
            seq=scope.seq,
            complete=len(entries) <= MEMBERS_MAX,
            pairs=dict(scope_parts(name)),
        )

    async def history(self, scope: Mapping[str, str], *, options: ReadOptions = DEFAULT_OPTIONS) -> tuple[History, ...]:
        """The timeline of every scope that has these pairs: when each member took effect, and what ended it."""
        names = await self.scope_names(scope)

        async def read(snapshot: Snapshot) -> tuple[History, ...]:
            histories = [await self._history(snapshot, name) for name in names]
            return tuple(history for history in histories if history.members)

        return await self.queries.read_consistently(None, read, options)

    async def _history(self, snapshot: Snapshot, name: str) -> History:
        scope = await snapshot.scope(name)
        entries = await snapshot.with_pages(lambda: list(all_members(scope, pages_of(snapshot.values))))
        entries.sort(key=lambda e: (e.time, e.order, e.id))
        latest = entries[-MEMBERS_MAX:]
        bodies = await snapshot.bodies(self.queries.index, [e.id for e in latest])
        walks = {walk.anchor: walk for walk in await snapshot.walk([e.id for e in latest]) if walk is not None}
        members = []
        for entry in latest:
            body = bodies.get(entry.id)
            members.append(
                TimelineMember(
                    id=entry.id,
                    type=entry.type,
                    revision=entry.revision,
                    time=from_micros(entry.time),
                    order=entry.order,
                    ended=await self._ending(snapshot, scope, entry, walks.get(entry.id)),
                    offset=entry.offset,
                    append_time=from_micros(entry.append_time),
                    title=body.title if body is not None else "",
                )
            )
        return History(
            scope=name, members=tuple(members), complete=len(entries) <= MEMBERS_MAX, pairs=dict(scope_parts(name))
        )

    async def _ending(self, snapshot: Snapshot, scope: Scope, entry: Entry, walk: WalkResult | None) -> Ending | None:
        """What voided a member first, in this scope or else elsewhere; `None` if it is active."""
        voiders = await snapshot.with_pages(partial(_voiders, scope, entry, snapshot, 1))
        if voiders:
            [(rule, voider)] = voiders
            return Ending(time=from_micros(voider.time), id=voider.id, rule=rule)
        if walk is None or walk.is_active:
            return None
        cause = _cause(walk)
        by = walk.entry(cause.id)
        return Ending(time=from_micros(by.time if by is not None else entry.time), id=cause.id, rule=cause.rule)

    async def changes(
        self, scope: Mapping[str, str] | None = None, *, after: str = "", limit: int = 1000
    ) -> tuple[Change, ...]:
        """The log of frontier changes, oldest first: of all scopes, or of those that have these pairs.

        With several shards, one shard follows the other. Raises `InvalidRequest` (`limit`, `after`, `scope`).
        """
        if limit < 1:
            raise InvalidRequest("limit", "`limit` must be at least 1.")
        first = self._position(after) if after else Position(self.queries.generation, 0, 0)
        keys: dict[int, list[bytes | None]] = {shard: [None] for shard in range(self.partitions.frontiers)}
        if scope:
            keys = {}
            for name in map(str.encode, await self.scope_names(scope)):
                keys.setdefault(self.partitions.of_scope(name), []).append(name)
        changes: list[Change] = []
        for shard in sorted(shard for shard in keys if shard >= first.shard):
            if len(changes) < limit:
                number = first.number if shard == first.shard else 0
                changes += await self._changes_of(shard, keys[shard], number, limit - len(changes))
        return tuple(changes)

    async def _changes_of(self, shard: int, keys: Sequence[bytes | None], after: int, limit: int) -> list[Change]:
        events = [
            event
            for key in keys
            for event in await self.change_log.read(shard, CHANGES, after=after, limit=limit, key=key)
        ]
        events.sort(key=lambda event: event.oseq)
        return [
            listed_change(Position(self.queries.generation, shard, event.oseq), decode_change(event.value))
            for event in events[:limit]
        ]

    def _position(self, text: str) -> Position:
        """The position of a change. Raises `InvalidRequest` (`after`)."""
        position = Position.parse(text)
        if position.generation != self.queries.generation:
            raise InvalidRequest(
                "after", "This position belongs to other rules. Omit it to start with the first change."
            )
        return position

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

    async def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[Rejected, ...]:
        """Rejected input with its bytes, oldest first, after the rejection with the number `after`."""
        rejected = []
        for event in await self.change_log.read(0, REJECTED, after=after, limit=limit):
            rejection = msgspec.json.decode(event.value, type=Rejection)
            [record] = await self.log.fetch(0, rejection.offset, 1)
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

    async def pending(self, limit: int = 1000) -> tuple[PendingDocument, ...]:
        """Documents that wait for their time, the next one due first."""
        pending: list[tuple[int, str, int]] = []
        for source in self.queries.shards.pending_sources():
            pending += await self.queries.read_consistently(None, lambda s: _pending_in_shard(s, limit), source=source)
        return tuple(
            PendingDocument(id=name, revision=revision, time=from_micros(time))
            for time, name, revision in sorted(pending)[:limit]
        )

    async def explain(
        self, name: str, *, as_of: int | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> Explanation:
        """Why a document is or is not active, scope by scope and link by link, and what controls it."""
        return await self.queries.read_consistently(as_of, lambda snapshot: self._explain(snapshot, name), options)

    async def _explain(self, snapshot: Snapshot, name: str) -> Explanation:
        resolved = await self.queries.resolve_name(snapshot, name)
        if not resolved.ids:
            return Explanation(name=name, status=resolved.status)
        document_id = resolved.ids[0]
        [walk] = await snapshot.walk([document_id])
        if walk is None:
            stored = await snapshot.document(document_id)
            due = from_micros(stored.time) if stored is not None and resolved.status == "pending" else None
            status = resolved.status if resolved.status != "in_force" else "pending"  # it takes effect after `as_of`
            return Explanation(name=name, status=status, due=due)
        [group] = await groups_of(snapshot, self.queries.index, [with_limited_list(walk)])
        return Explanation(
            name=name,
            status="in_force" if walk.is_active else "superseded",
            document=group.anchor,
            memberships=await self._memberships(snapshot, document_id, walk),
            group=group,
        )

    async def _memberships(self, snapshot: Snapshot, document_id: str, walk: WalkResult) -> tuple[Membership, ...]:
        """For each scope of a document, whether it holds there and what voids it; links are one more item."""
        memberships = []
        for at, name in enumerate(walk.document.scopes):
            scope = await snapshot.scope(name)
            entry = entry_of(walk.document, at)
            voiders = await snapshot.with_pages(partial(_voiders, scope, entry, snapshot, VOIDERS_MAX))
            by = tuple(Step(id=voider.id, rule=rule, scope=name) for rule, voider in voiders)
            memberships.append(Membership(scope=name, holds=not by, by=by))
        links = [Step(id=name, rule=rule, scope=scope) for name, rule, scope in walk.superseded_by if rule == "link"]
        if walk.document.superseded_by:
            links += [Step(id=name, rule="link", scope=f"document={document_id}") for name in walk.missing]
        if links:
            memberships.append(Membership(scope=links[0].scope, holds=False, by=tuple(links)))
        return tuple(memberships)


async def _pending_in_shard(snapshot: Snapshot, limit: int) -> list[tuple[int, str, int]]:
    """The pending documents of one shard as (time, id, revision)."""
    await snapshot.load([PENDING])
    queue = snapshot.values[PENDING]
    if not isinstance(queue, Scope):
        return []
    entries = await snapshot.with_pages(lambda: list(islice(all_members(queue, pages_of(snapshot.values)), limit)))
    return [(entry.time, entry.id, entry.revision) for entry in entries]


def active_members(scope: Scope, snapshot: Snapshot) -> list[Entry]:
    """The members that this scope does not void, latest first. Raises `MissingPages`."""
    pages = pages_of(snapshot.values)
    entries = []
    for kind in types(scope):
        type_rules = snapshot.ruleset.type_rules(scope.name, kind)
        threshold: Threshold = threshold_of(scope, pages, type_rules, snapshot.ruleset, up_to=snapshot.as_of)
        low = LOWEST if threshold.names else threshold.plain
        entries += [
            entry
            for entry in members_between(scope, pages, kind, low, None)
            if (snapshot.as_of is None or entry.time <= snapshot.as_of)
            and no_rule_supersedes(entry, threshold, type_rules)
        ]
    return sorted(entries, key=lambda e: (-e.time, -e.order, e.id))


def _voiders(scope: Scope, entry: Entry, snapshot: Snapshot, limit: int) -> list[tuple[str, Entry]]:
    """The first members that void this one through the scope, each with the rule. Raises `MissingPages`."""
    type_rules = snapshot.ruleset.type_rules(scope.name, entry.type)
    low = (entry.time, entry.order + 1)
    voiders: list[tuple[str, Entry]] = []
    for clause in type_rules.superseded_by:
        later_compared = snapshot.ruleset.type_rules(scope.name, clause.type).compared
        own_values = values_of(entry.compared, type_rules.compared, clause.differ_on)
        count = 0
        for later in members_between(scope, pages_of(snapshot.values), clause.type, low, None):
            if snapshot.as_of is not None and later.time > snapshot.as_of:
                break
            if clause.differ_on and values_of(later.compared, later_compared, clause.differ_on) == own_values:
                continue
            voiders.append((clause.rule, later))
            count += 1
            if count == limit:
                break
    voiders.sort(key=lambda pair: (pair[1].time, pair[1].order, pair[1].id))
    return voiders[:limit]


def _cause(walk: WalkResult) -> Step:
    """What voids an anchor outside the scope in question: its first superseder, or else a missing successor."""
    for name, rule, scope in walk.superseded_by:
        return Step(id=name, rule=rule, scope=scope)
    return Step(id=walk.missing[0] if walk.missing else "", rule="link", scope=f"document={walk.anchor}")
