"""Questions about scopes and single documents: frontier, history, changes, explanation.

Promise: the same state that queries see. Cost: the members of the scopes asked for, at most
`MEMBERS_MAX` of each.
"""

from collections.abc import Mapping, Sequence
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
ONE = Partitions()

Parts = Mapping[str, str] | str


class ScopeQueries:
    """What scopes hold, held and said, and why a document is or is not active."""

    def __init__(self, queries: Queries, *, change_log: ChangeLog, log: Log, partitions: Partitions = ONE) -> None:
        self.queries = queries
        self.change_log = change_log
        self.log = log
        self.partitions = partitions

    async def named(self, parts: Parts) -> list[str]:
        """The scopes that have all these pairs, in order of name; link scopes by their exact name.

        Raises `InvalidRequest` where the text is no list of `key=value`, or where they are too many.
        """
        read = [self.queries.ruleset.normalize_part(key, value) for key, value in pairs_of(parts)]
        exact = scope_name(read)
        if read[0][0] in RESERVED_KEYS:
            return [exact]
        found = await self.queries.index.scopes(read, SCOPES_MAX + 1)
        if len(found) > SCOPES_MAX:
            raise InvalidRequest("scope", f"more than {SCOPES_MAX} scopes have {exact}; add another KEY=VALUE")
        return sorted({exact, *found})

    async def frontier(
        self, parts: Parts, *, as_of: int | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> tuple[Frontier, ...]:
        """The active members of every scope that has these pairs, and apart those void elsewhere."""
        names = await self.named(parts)

        async def ask(reader: Snapshot) -> tuple[Frontier, ...]:
            found = [await self._frontier(reader, name) for name in names]
            return tuple(one for one in found if one.members)

        return await self.queries.read_consistently(as_of, ask, options)

    async def _frontier(self, reader: Snapshot, name: str) -> Frontier:
        scope = await reader.scope(name)
        held = await reader.with_pages(lambda: holding(scope, reader))
        walks = [walk for walk in await reader.walk([entry.id for entry in held[:MEMBERS_MAX]]) if walk is not None]
        bodies = await reader.bodies(self.queries.index, [walk.anchor for walk in walks])
        active = [w for w in walks if w.is_active]
        return Frontier(
            scope=name,
            active=tuple(evidence_of(w.document, w.anchor, bodies.get(w.anchor), active=True) for w in active),
            blocked=tuple(
                Blocked(
                    document=evidence_of(w.document, w.anchor, bodies.get(w.anchor), active=False),
                    scope=cause.scope,
                    by=cause.id,
                    rule=cause.rule,
                )
                for w in walks
                if not w.is_active
                for cause in [_cause(w)]
            ),
            members=size(scope),
            seq=scope.seq,
            complete=len(held) <= MEMBERS_MAX,
        )

    async def history(self, parts: Parts, *, options: ReadOptions = DEFAULT_OPTIONS) -> tuple[History, ...]:
        """The timeline of every scope that has these pairs: who held from when, and what ended it."""
        names = await self.named(parts)

        async def ask(reader: Snapshot) -> tuple[History, ...]:
            found = [await self._history(reader, name) for name in names]
            return tuple(one for one in found if one.members)

        return await self.queries.read_consistently(None, ask, options)

    async def _history(self, reader: Snapshot, name: str) -> History:
        scope = await reader.scope(name)
        entries = await reader.with_pages(lambda: list(all_members(scope, pages_of(reader.values))))
        entries.sort(key=lambda e: (e.time, e.order, e.id))
        chosen = entries[-MEMBERS_MAX:]
        bodies = await reader.bodies(self.queries.index, [e.id for e in chosen])
        walks = {walk.anchor: walk for walk in await reader.walk([e.id for e in chosen]) if walk is not None}
        members = []
        for entry in chosen:
            first = await reader.with_pages(lambda entry=entry: _voiders(scope, entry, reader, 1))  # type: ignore[misc]
            ended = Ending(time=first[0][1].time, id=first[0][1].id, rule=first[0][0]) if first else None
            walk = walks.get(entry.id)
            if ended is None and walk is not None and not walk.is_active:
                cause = _cause(walk)
                by = walk.entry(cause.id)
                ended = Ending(time=by.time if by is not None else entry.time, id=cause.id, rule=cause.rule)
            body = bodies.get(entry.id)
            members.append(
                Held(
                    id=entry.id,
                    type=entry.type,
                    revision=entry.revision,
                    time=entry.time,
                    order=entry.order,
                    ended=ended,
                    offset=entry.offset,
                    append_time=entry.append_time,
                    title=body.title if body is not None else "",
                )
            )
        return History(scope=name, members=tuple(members), complete=len(entries) <= MEMBERS_MAX)

    async def changes(
        self, parts: Parts | None = None, *, after: int = 0, limit: int = 1000, behind: str = ""
    ) -> tuple[Told, ...]:
        """The log of frontier changes, oldest first: of all scopes, or of those that have these pairs.

        Of many shards one comes after the other; `behind` is the position of a change to go on from.
        """
        if limit < 1 or after < 0:
            raise InvalidRequest("limit", "limit must be at least 1 and after at least 0")
        start, passed = self._place(behind) if behind else (0, after)
        keys: dict[int, list[bytes | None]] = {shard: [None] for shard in range(self.partitions.frontiers)}
        if parts is not None:
            keys = {}
            for name in map(str.encode, await self.named(parts)):
                keys.setdefault(self.partitions.of_scope(name), []).append(name)
        found: list[Told] = []
        for shard in sorted(one for one in keys if one >= start):
            if len(found) < limit:
                least = passed if shard == start or not behind else 0
                found += await self._changes_of(shard, keys[shard], least, limit - len(found))
        return tuple(found)

    async def _changes_of(self, shard: int, keys: Sequence[bytes | None], after: int, limit: int) -> list[Told]:
        events = [
            e for key in keys for e in await self.change_log.read(shard, CHANGES, after=after, limit=limit, key=key)
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

    def _place(self, position: str) -> tuple[int, int]:
        """The shard and the number of a change. Raises `InvalidRequest`."""
        generation, *numbers = position.split("/")
        if len(numbers) != 2 or not all(one.isascii() and one.isdecimal() and len(one) < 17 for one in numbers):
            raise InvalidRequest("behind", "a position is GENERATION/SHARD/NUMBER, as changes carry it")
        if generation != self.queries.generation:
            raise InvalidRequest(
                "behind", "this position is of other rules; leave it out to begin with the first change"
            )
        return int(numbers[0]), int(numbers[1])

    async def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[Rejected, ...]:
        """Input that was refused, with its bytes, oldest first."""
        found = []
        for event in await self.change_log.read(0, REJECTED, after=after, limit=limit):
            refused = msgspec.json.decode(event.value, type=Rejection)
            [record] = await self.log.fetch(0, refused.offset, 1)
            found.append(
                Rejected(
                    offset=refused.offset,
                    code=refused.code,
                    reason=refused.reason,
                    append_time=record.append_time,
                    id=refused.id,
                    value=record.value or b"",
                    oseq=event.oseq,
                )
            )
        return tuple(found)

    async def pending(self, limit: int = 1000) -> tuple[tuple[str, int, int], ...]:
        """Documents that wait for their time: id, revision, time; the next one due first."""

        found: list[tuple[int, str, int]] = []
        for source in self.queries.shards.pending_sources():
            found += await self.queries.read_consistently(None, lambda reader: _waiting(reader, limit), source=source)
        return tuple((name, revision, time) for time, name, revision in sorted(found)[:limit])

    async def explain(
        self, name: str, *, as_of: int | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> Explanation:
        """Why a document is or is not active, scope by scope and link by link, and what controls it."""
        return await self.queries.read_consistently(as_of, lambda reader: self._explain(reader, name), options)

    async def _explain(self, reader: Snapshot, name: str) -> Explanation:
        read = await self.queries.resolve_name(reader, name)
        if not read.ids:
            return Explanation(asked=name, status=read.status)
        own = read.ids[0]
        [walk] = await reader.walk([own])
        if walk is None:
            held = await reader.document(own)
            due = held.time if held is not None and read.status == "pending" else None
            return Explanation(asked=name, status=read.status if read.status != "active" else "pending", due=due)
        walk = with_limited_list(walk)
        amended = await amendments_of(reader, [walk])
        bodies = await reader.bodies(self.queries.index, [own, *names_in([walk], amended)])
        return Explanation(
            asked=name,
            status="active" if walk.is_active else "void",
            document=evidence_of(walk.document, own, bodies.get(own), active=walk.is_active),
            bonds=await self._bonds(reader, own, walk),
            group=group_of(walk, bodies, amended),
        )

    async def _bonds(self, reader: Snapshot, own: str, walk: WalkResult) -> tuple[Bond, ...]:
        bonds = []
        for at, name in enumerate(walk.document.scopes):
            scope = await reader.scope(name)
            entry = entry_of(walk.document, at)
            found = await reader.with_pages(lambda s=scope, e=entry: _voiders(s, e, reader, VOIDERS_MAX))  # type: ignore[misc]
            by = tuple(Step(id=other.id, rule=rule, scope=name) for rule, other in found)
            bonds.append(Bond(scope=name, holds=not by, by=by))
        links = tuple(Step(id=one, rule=rule, scope=scope) for one, rule, scope in walk.superseded_by if rule == "link")
        links += tuple(
            Step(id=one, rule="link", scope=f"document={own}") for one in walk.missing if walk.document.superseded_by
        )
        if links:
            bonds.append(Bond(scope=links[0].scope, holds=False, by=links))
        return tuple(bonds)


async def _waiting(reader: Snapshot, limit: int) -> list[tuple[int, str, int]]:
    """The documents that wait in one shard: time, id, revision."""
    await reader.load([PENDING])
    queue = reader.values[PENDING]
    if not isinstance(queue, Scope):
        return []
    entries = await reader.with_pages(lambda: list(islice(all_members(queue, pages_of(reader.values)), limit)))
    return [(entry.time, entry.id, entry.revision) for entry in entries]


def holding(scope: Scope, reader: Snapshot) -> list[Entry]:
    """The members that this scope does not void, latest first. Raises `MissingPages`."""
    pages = pages_of(reader.values)
    found = []
    for kind in types(scope):
        bearing = reader.ruleset.type_rules(scope.name, kind)
        bar: Threshold = threshold_of(scope, pages, bearing, reader.ruleset, up_to=reader.as_of)
        low = LOWEST if bar.names else bar.plain
        found += [
            entry
            for entry in members_between(scope, pages, kind, low, None)
            if (reader.as_of is None or entry.time <= reader.as_of) and holds(entry, bar, bearing)
        ]
    return sorted(found, key=lambda e: (-e.time, -e.order, e.id))


def _voiders(scope: Scope, entry: Entry, reader: Snapshot, most: int) -> list[tuple[str, Entry]]:
    """The first members that void this one through the scope, with the rule. Raises `MissingPages`."""
    bearing = reader.ruleset.type_rules(scope.name, entry.type)
    low = (entry.time, entry.order + 1)
    found: list[tuple[str, Entry]] = []
    for clause in bearing.superseded_by:
        theirs = reader.ruleset.type_rules(scope.name, clause.type).compared
        said = values_of(entry.compared, bearing.compared, clause.differ_on)
        count = 0
        for other in members_between(scope, pages_of(reader.values), clause.type, low, None):
            if reader.as_of is not None and other.time > reader.as_of:
                break
            if clause.differ_on and values_of(other.compared, theirs, clause.differ_on) == said:
                continue
            found.append((clause.rule, other))
            count += 1
            if count == most:
                break
    found.sort(key=lambda pair: (pair[1].time, pair[1].order, pair[1].id))
    return found[:most]


def _cause(walk: WalkResult) -> Step:
    """The first thing that voids an anchor which its own scope does not."""
    for one, rule, scope in walk.superseded_by:
        return Step(id=one, rule=rule, scope=scope)
    return Step(id=walk.missing[0] if walk.missing else "", rule="link", scope=f"document={walk.anchor}")
