"""Questions about scopes and single documents: frontier, history, changes, explanation.

Promise: they see the same state as queries. Cost: the members of the requested scopes, at most `MEMBERS_MAX` of each.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice

import msgspec

from stream_car.core.changes import FrontierChange, Rejection
from stream_car.core.differ_on import values_of
from stream_car.core.revisions import entry_of
from stream_car.core.scope_names import RESERVED_KEYS, scope_name
from stream_car.core.stored import LOWEST, Entry, Scope
from stream_car.core.thresholds import Threshold, holds, threshold_of
from stream_car.core.timeline import all_members, members_between, size, types
from stream_car.core.walk import WalkResult, pages_of
from stream_car.errors import InvalidRequest
from stream_car.ports import ChangeLog, Log
from stream_car.processing.fold import CHANGES, REJECTED
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import PENDING
from stream_car.queries.answers import Blocked, Bond, Ending, Explanation, Frontier, Held, History, Rejected, Step, Told
from stream_car.queries.assembly import amendments_of, evidence_of, group_of, names_in, with_limited_list
from stream_car.queries.limits import pairs_of
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import DEFAULT_OPTIONS, ReadOptions
from stream_car.queries.snapshot import Snapshot

MEMBERS_MAX = 2000
SCOPES_MAX = 10_000
VOIDERS_MAX = 5
ONE_SHARD = Partitions()

Parts = Mapping[str, str] | str


class ScopeQueries:
    """What scopes hold now, what they held before, how they changed, and why a document is or is not active."""

    def __init__(
        self, queries: Queries, *, change_log: ChangeLog, log: Log, partitions: Partitions = ONE_SHARD
    ) -> None:
        self.queries = queries
        self.change_log = change_log
        self.log = log
        self.partitions = partitions

    async def scope_names(self, parts: Parts) -> list[str]:
        """The names of the scopes that have all these pairs, in order. Link scopes are only matched by exact name.

        Raises `InvalidRequest` (`scope`) if the text is not a list of `key=value`, or if too many scopes match.
        """
        pairs = [self.queries.ruleset.normalize_part(key, value) for key, value in pairs_of(parts)]
        exact = scope_name(pairs)
        if pairs[0][0] in RESERVED_KEYS:
            return [exact]
        names = await self.queries.index.scopes(pairs, SCOPES_MAX + 1)
        if len(names) > SCOPES_MAX:
            raise InvalidRequest("scope", f"More than {SCOPES_MAX} scopes have {exact}. Add another KEY=VALUE.")
        return sorted({exact, *names})

    async def frontier(
        self, parts: Parts, *, as_of: int | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> tuple[Frontier, ...]:
        """The frontier of every scope that has these pairs; members that are void elsewhere are listed separately."""
        names = await self.scope_names(parts)

        async def read(snapshot: Snapshot) -> tuple[Frontier, ...]:
            frontiers = [await self._frontier(snapshot, name) for name in names]
            return tuple(frontier for frontier in frontiers if frontier.members)

        return await self.queries.read_consistently(as_of, read, options)

    async def _frontier(self, snapshot: Snapshot, name: str) -> Frontier:
        scope = await snapshot.scope(name)
        entries = await snapshot.with_pages(lambda: holding(scope, snapshot))
        results = await snapshot.walk([entry.id for entry in entries[:MEMBERS_MAX]])
        walks = [walk for walk in results if walk is not None]
        bodies = await snapshot.bodies(self.queries.index, [walk.anchor for walk in walks])
        active = [walk for walk in walks if walk.is_active]
        return Frontier(
            scope=name,
            active=tuple(evidence_of(w.document, w.anchor, bodies.get(w.anchor), active=True) for w in active),
            blocked=tuple(
                Blocked(
                    document=evidence_of(walk.document, walk.anchor, bodies.get(walk.anchor), active=False),
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
        )

    async def history(self, parts: Parts, *, options: ReadOptions = DEFAULT_OPTIONS) -> tuple[History, ...]:
        """The timeline of every scope that has these pairs: when each member took effect, and what ended it."""
        names = await self.scope_names(parts)

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
                Held(
                    id=entry.id,
                    type=entry.type,
                    revision=entry.revision,
                    time=entry.time,
                    order=entry.order,
                    ended=await self._ending(snapshot, scope, entry, walks.get(entry.id)),
                    offset=entry.offset,
                    append_time=entry.append_time,
                    title=body.title if body is not None else "",
                )
            )
        return History(scope=name, members=tuple(members), complete=len(entries) <= MEMBERS_MAX)

    async def _ending(self, snapshot: Snapshot, scope: Scope, entry: Entry, walk: WalkResult | None) -> Ending | None:
        """What voided a member first, in this scope or else elsewhere; `None` if it is active."""
        voiders = await snapshot.with_pages(partial(_voiders, scope, entry, snapshot, 1))
        if voiders:
            [(rule, voider)] = voiders
            return Ending(time=voider.time, id=voider.id, rule=rule)
        if walk is None or walk.is_active:
            return None
        cause = _cause(walk)
        by = walk.entry(cause.id)
        return Ending(time=by.time if by is not None else entry.time, id=cause.id, rule=cause.rule)

    async def changes(
        self, parts: Parts | None = None, *, after: int = 0, limit: int = 1000, behind: str = ""
    ) -> tuple[Told, ...]:
        """The log of frontier changes, oldest first: of all scopes, or of those that have these pairs.

        With several shards, one shard follows the other. `behind` is the position of a change to continue after;
        `after` is a number that applies to every shard. Raises `InvalidRequest` (`limit`, `behind`, `scope`).
        """
        if limit < 1 or after < 0:
            raise InvalidRequest("limit", "`limit` must be at least 1 and `after` at least 0.")
        first_shard, first_after = self._parse_position(behind) if behind else (0, after)
        keys: dict[int, list[bytes | None]] = {shard: [None] for shard in range(self.partitions.frontiers)}
        if parts is not None:
            keys = {}
            for name in map(str.encode, await self.scope_names(parts)):
                keys.setdefault(self.partitions.of_scope(name), []).append(name)
        changes: list[Told] = []
        for shard in sorted(shard for shard in keys if shard >= first_shard):
            if len(changes) < limit:
                shard_after = first_after if shard == first_shard or not behind else 0
                changes += await self._changes_of(shard, keys[shard], shard_after, limit - len(changes))
        return tuple(changes)

    async def _changes_of(self, shard: int, keys: Sequence[bytes | None], after: int, limit: int) -> list[Told]:
        events = [
            event
            for key in keys
            for event in await self.change_log.read(shard, CHANGES, after=after, limit=limit, key=key)
        ]
        events.sort(key=lambda event: event.oseq)
        return [
            Told(
                position=f"{self.queries.generation}/{shard}/{event.oseq}",
                oseq=event.oseq,
                change=msgspec.json.decode(event.value, type=FrontierChange),
            )
            for event in events[:limit]
        ]

    def _parse_position(self, position: str) -> tuple[int, int]:
        """The shard and the number of a change. Raises `InvalidRequest`."""
        generation, *numbers = position.split("/")
        if len(numbers) != 2 or not all(text.isascii() and text.isdecimal() and len(text) < 17 for text in numbers):
            raise InvalidRequest("behind", "`behind` must be the `position` of a change: GENERATION/SHARD/NUMBER.")
        if generation != self.queries.generation:
            raise InvalidRequest(
                "behind", "This position belongs to other rules. Omit `behind` to start with the first change."
            )
        return int(numbers[0]), int(numbers[1])

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
                    append_time=record.append_time,
                    id=rejection.id,
                    value=record.value or b"",
                    oseq=event.oseq,
                )
            )
        return tuple(rejected)

    async def pending(self, limit: int = 1000) -> tuple[tuple[str, int, int], ...]:
        """Pending documents as (id, revision, time), the next one due first."""
        pending: list[tuple[int, str, int]] = []
        for source in self.queries.shards.pending_sources():
            pending += await self.queries.read_consistently(None, lambda s: _pending_in_shard(s, limit), source=source)
        return tuple((name, revision, time) for time, name, revision in sorted(pending)[:limit])

    async def explain(
        self, name: str, *, as_of: int | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> Explanation:
        """Why a document is or is not active, scope by scope and link by link, and what controls it."""
        return await self.queries.read_consistently(as_of, lambda snapshot: self._explain(snapshot, name), options)

    async def _explain(self, snapshot: Snapshot, name: str) -> Explanation:
        resolved = await self.queries.resolve_name(snapshot, name)
        if not resolved.ids:
            return Explanation(asked=name, status=resolved.status)
        document_id = resolved.ids[0]
        [walk] = await snapshot.walk([document_id])
        if walk is None:
            stored = await snapshot.document(document_id)
            due = stored.time if stored is not None and resolved.status == "pending" else None
            status = resolved.status if resolved.status != "active" else "pending"  # it takes effect after `as_of`
            return Explanation(asked=name, status=status, due=due)
        walk = with_limited_list(walk)
        amendments = await amendments_of(snapshot, [walk])
        bodies = await snapshot.bodies(self.queries.index, [document_id, *names_in([walk], amendments)])
        return Explanation(
            asked=name,
            status="active" if walk.is_active else "void",
            document=evidence_of(walk.document, document_id, bodies.get(document_id), active=walk.is_active),
            bonds=await self._memberships(snapshot, document_id, walk),
            group=group_of(walk, bodies, amendments),
        )

    async def _memberships(self, snapshot: Snapshot, document_id: str, walk: WalkResult) -> tuple[Bond, ...]:
        """For each scope of a document, whether it holds there and what voids it; links are one more item."""
        memberships = []
        for at, name in enumerate(walk.document.scopes):
            scope = await snapshot.scope(name)
            entry = entry_of(walk.document, at)
            voiders = await snapshot.with_pages(partial(_voiders, scope, entry, snapshot, VOIDERS_MAX))
            by = tuple(Step(id=voider.id, rule=rule, scope=name) for rule, voider in voiders)
            memberships.append(Bond(scope=name, holds=not by, by=by))
        links = [Step(id=name, rule=rule, scope=scope) for name, rule, scope in walk.superseded_by if rule == "link"]
        if walk.document.superseded_by:
            links += [Step(id=name, rule="link", scope=f"document={document_id}") for name in walk.missing]
        if links:
            memberships.append(Bond(scope=links[0].scope, holds=False, by=tuple(links)))
        return tuple(memberships)


async def _pending_in_shard(snapshot: Snapshot, limit: int) -> list[tuple[int, str, int]]:
    """The pending documents of one shard as (time, id, revision)."""
    await snapshot.load([PENDING])
    queue = snapshot.values[PENDING]
    if not isinstance(queue, Scope):
        return []
    entries = await snapshot.with_pages(lambda: list(islice(all_members(queue, pages_of(snapshot.values)), limit)))
    return [(entry.time, entry.id, entry.revision) for entry in entries]


def holding(scope: Scope, snapshot: Snapshot) -> list[Entry]:
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
            if (snapshot.as_of is None or entry.time <= snapshot.as_of) and holds(entry, threshold, type_rules)
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
