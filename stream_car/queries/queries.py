"""Two-stage answers against the live frontier: relevance finds anchors, authority leads on from them.

Promise: an answer is `front(cl(A_k(q)))` (Definition 3) as of one cut; superseded documents appear
only as evidence, and the certificate says what is covered. Cost: one search, then few rounds of
reads that serve all anchors together.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec.structs import replace

from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import record_scope
from stream_car.core.stored import Entry, Scope, StoredDocument
from stream_car.core.timeline import all_members
from stream_car.core.walk import COUNTED_MAX, LATEST_MAX, WalkResult, pages_of
from stream_car.errors import InvalidRequest
from stream_car.ports import AnchorIndex
from stream_car.queries.answers import (
    After,
    Answer,
    Audit,
    Certificate,
    Evidence,
    Group,
    Incomplete,
    Resolution,
    Status,
    Via,
    Violation,
)
from stream_car.queries.assembly import (
    amendments_of,
    certificate_of,
    evidence_of,
    group_of,
    names_in,
    steps_of,
    with_limited_list,
)
from stream_car.queries.cache import AnswerCache
from stream_car.queries.limits import DEPTH, DEPTH_MAX, require, require_budget, require_names, require_time
from stream_car.queries.read_options import DEFAULT_OPTIONS, ImmediateRetries, ReadOptions, mark_in_flight
from stream_car.queries.retrieval import Question, retrieve, select, with_probabilities
from stream_car.queries.shards import ShardMoved, Shards, ValueSource
from stream_car.queries.snapshot import Snapshot
from stream_car.ranking.anchor_order import AnchorPlan, Hit
from stream_car.ranking.settings import SETTINGS

EDITIONS_MAX = 100
CLOSURE_MAX = 1_000_000  # members of one scope that an audit looks at

T = TypeVar("T")


class Queries:
    """Questions about anchors and names; `ScopeQueries` answers those about scopes."""

    def __init__(
        self,
        *,
        shards: Shards,
        index: AnchorIndex,
        ruleset: Ruleset,
        generation: str,
        cache: AnswerCache | None = None,
        superseded_bonus: float = SETTINGS.superseded_bonus,
    ) -> None:
        self.shards = shards
        self.index = index
        self.ruleset = ruleset
        self.generation = generation
        self.cache = cache
        self.superseded_bonus = superseded_bonus  # nats in favour of what something supersedes

    def reader(self, as_of: int | None = None) -> Snapshot:
        """A reader for one attempt at a question."""
        return Snapshot(self.shards.source(), self.ruleset, as_of=as_of)

    async def read_consistently(
        self,
        as_of: int | None,
        ask: Callable[[Snapshot], Awaitable[T]],
        options: ReadOptions = DEFAULT_OPTIONS,
        *,
        source: Callable[[], ValueSource] | None = None,
    ) -> T:
        """Ask until an answer is exact and has seen what it must, or the time is up.

        Raises `InvalidRequest`: `pending` and `not_visible` say that `min_revisions` could not be met,
        `in_flight` that there is no answer that could be given with that reservation.
        """
        require_time(as_of)
        patience = options.retry or ImmediateRetries()
        while True:
            reader = Snapshot(
                (source or self.shards.source)(),
                self.ruleset,
                as_of=as_of,
                yield_control=options.yield_control,
                timer=options.timer,
            )
            found: T | None = None
            is_seen = True
            with suppress(ShardMoved):
                found = await ask(reader)
                is_seen = await self._has_seen(reader, options.min_revisions)
                if is_seen and reader.source.is_exact:
                    return found
            if not await patience.wait():
                break
        if not is_seen:
            names = ", ".join(f"revision {one.revision} of {one.id}" for one in options.min_revisions)
            raise InvalidRequest("not_visible", f"not every one of {names} has been applied in time; ask again")
        marked = mark_in_flight(found)
        if marked is None:
            raise InvalidRequest("in_flight", "the shards moved faster than they could be read; ask again")
        return marked

    async def _has_seen(self, reader: Snapshot, after: Sequence[After]) -> bool:
        """Whether the cut lies beyond these statements, so that every shard they joined or left has them.

        Raises `InvalidRequest` (`pending`) for one that waits for its time.
        """
        await reader.load([document_key(one.id) for one in after])
        for one in after:
            held = await reader.document(one.id)
            if held is None or held.revision < one.revision:
                return False
            if held.pending is not None:
                raise InvalidRequest(
                    "pending", f"{one.id!r} takes effect later than now; until then it changes nothing"
                )
            if reader.cut[self.shards.intake_of(one.id)] <= held.applied:
                return False
        return True

    async def search(self, text: str, k: int = 5, *, options: ReadOptions = DEFAULT_OPTIONS) -> tuple[Evidence, ...]:
        """What relevance alone would answer: the best `k` anchors, void or not."""
        require(text, k, k)

        async def ask(reader: Snapshot) -> tuple[Evidence, ...]:
            hits, walks = await self._anchors(reader, text, k)
            bodies = await reader.bodies(self.index, [hit.id for hit in hits])
            return tuple(
                evidence_of(walk.document, walk.anchor, bodies.get(walk.anchor), active=walk.is_active)
                for walk in walks
            )

        return await self.read_consistently(None, ask, options)

    async def _anchors(
        self, reader: Snapshot, text: str, depth: int, named_max: int = COUNTED_MAX
    ) -> tuple[list[Hit], list[WalkResult]]:
        """The first `depth` hits that are part of the corpus then, with their walks."""
        asked = depth
        while True:
            found = await reader.search(self.index, text, min(asked, DEPTH_MAX * 4))
            walks = await reader.walk([hit.id for hit in found], named_max=named_max)
            here = [(hit, walk) for hit, walk in zip(found, walks, strict=True) if walk is not None][:depth]
            if len(here) == depth or len(found) < asked or asked >= DEPTH_MAX * 4:
                return [hit for hit, _ in here], [walk for _, walk in here]
            asked *= 4

    async def query(
        self,
        text: str,
        *,
        k: int = 5,
        depth: int = DEPTH,
        as_of: int | None = None,
        budget: int | None = None,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> Answer:
        """The `k` best controlling documents of the first `depth` anchors, group by group.

        `as_of` is a valid time (microseconds UTC). Once Stage 2 has read `budget` keys it looks at no
        further anchor; the certificate says what was left out. Raises `InvalidRequest`.
        """
        require(text, k, depth)
        require_budget(budget)
        asked = Question(text, k, depth, as_of, budget)
        answer = await self.read_consistently(as_of, lambda reader: self._cached_answer(reader, asked), options)
        behind, unread = await self.index.vectors_pending(), await self.index.ignored_terms(text)
        return replace(answer, behind=behind, unread=unread) if behind or unread else answer

    async def _cached_answer(self, reader: Snapshot, asked: Question) -> Answer:
        """The answer from the cache if there is one that still stands; otherwise it is worked out, and kept."""
        cache = self.cache
        if cache is None:
            return (await self._answer(reader, asked))[0]
        known = await cache.find(asked, reader, self.index)
        if known is not None:
            return known
        answer, course = await self._answer(reader, asked)
        await cache.keep(asked, answer, course, reader, self.index)
        return answer

    async def _answer(self, reader: Snapshot, asked: Question) -> tuple[Answer, AnchorPlan]:
        looked = await retrieve(reader, self.index, asked, superseded_bonus=self.superseded_bonus)
        told = select([looked.walks[gist.anchor] for _, gist in looked.plan.examined], asked.k)
        amended = await amendments_of(reader, told.shown)
        bodies = await reader.bodies(self.index, names_in(told.shown, amended))
        groups = tuple(group_of(walk, bodies, amended) for walk in told.shown)
        best = {c.document.id: c.document for group in groups for c in group.controlling}
        left = [gist.anchor for _, gist in looked.plan.examined[len(told.covered) :]]
        left += [hit.id for hit in looked.plan.remaining]
        reasons: list[Incomplete] = ["no_anchor"] if not looked.walks else ["budget"] if looked.is_over_budget else []
        waiting = (await reader.overview()).pending
        answer = Answer(
            question=asked.text,
            results=tuple(best[name] for name in told.results),
            groups=groups,
            certificate=self._certificate(reader, told.covered, left, reasons),
            pending=waiting,
        )
        return with_probabilities(answer, looked.plan), looked.plan

    def _certificate(
        self,
        reader: Snapshot,
        walks: Sequence[WalkResult],
        not_covered: Sequence[str],
        reasons: Sequence[Incomplete] = (),
    ) -> Certificate:
        return certificate_of(
            walks,
            not_covered,
            generation=self.generation,
            cut=reader.cut,
            as_of=reader.as_of,
            rounds=reader.rounds,
            lookups=reader.lookups,
            reasons=reasons,
        )

    async def resolve(
        self, names: Sequence[str], *, as_of: int | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> tuple[Resolution, ...]:
        """What controls these now: document ids, chunk ids (`doc#chunk`) or records, in that order of reading."""
        require_names(names)
        return await self.read_consistently(as_of, lambda reader: self._resolve(reader, names), options)

    async def _resolve(self, reader: Snapshot, names: Sequence[str]) -> tuple[Resolution, ...]:
        await reader.load([document_key(name) for name in names])
        read = [await self.resolve_name(reader, name) for name in names]
        ids = list(dict.fromkeys(one for found in read for one in found.ids))
        walks = {one.anchor: with_limited_list(one) for one in await reader.walk(ids) if one is not None}
        amended = await amendments_of(reader, walks.values())
        bodies = await reader.bodies(self.index, names_in(walks.values(), amended))
        groups = {name: group_of(walk, bodies, amended) for name, walk in walks.items()}
        return tuple(_resolution(found, groups) for found in read)

    async def resolve_name(self, reader: Snapshot, name: str) -> "ResolvedName":
        """What a name stands for: an exact id, then a chunk of one, then a record."""
        held = await reader.document(name)
        if held is not None:
            return ResolvedName(name, "id", (name,), _standing(held))
        owner = name.rpartition("#")[0]
        if owner:
            held = await reader.document(owner)
            if held is not None:
                return ResolvedName(name, "chunk", (owner,), _standing(held))
        for record in (name, owner):
            scope = await reader.scope(record_scope(record)) if record else None
            if scope is not None and (scope.entries or scope.directory):
                every = await self._members(reader, scope)
                entries = sorted(every, key=lambda entry: entry.precedence)[-EDITIONS_MAX:]
                return ResolvedName(name, "record", tuple(entry.id for entry in entries), "active")
        return ResolvedName(name, "", (), "unknown")

    async def _members(self, reader: Snapshot, scope: Scope) -> list[Entry]:
        return await reader.with_pages(lambda: list(all_members(scope, pages_of(reader.values))))

    async def check(
        self,
        ids: Sequence[str],
        *,
        question: str | None = None,
        depth: int = 20,
        as_of: int | None = None,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> Audit:
        """Whether a retrieved set meets both conditions of Theorem 4, and what would repair it.

        Frontier inclusion is judged for `A_depth(question)`, without a question for the set itself.
        """
        require_names(ids)
        if question is not None:
            require(question, 1, depth)
        return await self.read_consistently(as_of, lambda reader: self._check(reader, ids, question, depth), options)

    async def _check(self, reader: Snapshot, ids: Sequence[str], question: str | None, depth: int) -> Audit:
        await reader.load([document_key(name) for name in ids])
        read = {name: await self.resolve_name(reader, name) for name in dict.fromkeys(ids)}
        members = list(dict.fromkeys(one for found in read.values() for one in found.ids))
        found = await reader.walk(members, named_max=CLOSURE_MAX)
        walks = {name: walk for name, walk in zip(members, found, strict=True) if walk is not None}
        inside = set(walks)
        anchors = list(walks.values())
        if question is not None:  # a set of fewer than are named lacks one of these in any case
            named_max = CLOSURE_MAX if len(inside) >= LATEST_MAX else COUNTED_MAX
            _, anchors = await self._anchors(reader, question, depth, named_max)
        violations = [*_ignored(walks, inside), *_excluded(anchors, inside)]
        wanted = dict.fromkeys(name for name, walk in walks.items() if walk.is_active)
        wanted.update(dict.fromkeys(entry.id for walk in (*walks.values(), *anchors) for entry in walk.controlling))
        unknown = _with_status(read, "unknown")
        retracted = _with_status(read, "retracted")
        pending = tuple(name for name, named in read.items() if named.ids and not inside.intersection(named.ids))
        pending = tuple(name for name in pending if name not in retracted)
        stranded = tuple(name for name, walk in walks.items() if not walk.is_active and not walk.controlling)
        return Audit(
            holds=not (violations or unknown or retracted or pending or stranded or _is_cut(anchors)),
            violations=tuple(violations),
            repaired=tuple(wanted),
            unknown=unknown,
            retracted=retracted,
            pending=pending,
            stranded=stranded,
            certificate=self._certificate(reader, anchors, ()),
        )


def _is_cut(walks: Sequence[WalkResult]) -> bool:
    """Whether there are controlling documents that a walk counted and did not name."""
    return any(walk.controlling_more for walk in walks)


def _with_status(read: "dict[str, ResolvedName]", status: Status) -> tuple[str, ...]:
    return tuple(name for name, named in read.items() if named.status == status)


class ResolvedName:
    """A name as it was read: the documents that it stands for, and how it was understood."""

    def __init__(self, name: str, via: Via, ids: tuple[str, ...], status: Status) -> None:
        self.name = name
        self.via = via
        self.ids = ids
        self.status: Status = status


def _standing(held: StoredDocument) -> Status:
    if held.retracted:
        return "retracted"
    return "pending" if held.pending is not None else "active"


def _resolution(found: ResolvedName, groups: dict[str, Group]) -> Resolution:
    mine = tuple(groups[name] for name in found.ids if name in groups)
    status = found.status
    if status == "active":
        if not mine:
            status = "pending"
        elif not any(group.anchor.active for group in mine):
            status = "void"
    return Resolution(asked=found.name, status=status, via=found.via, groups=mine)


def _ignored(walks: dict[str, WalkResult], inside: set[str]) -> list[Violation]:
    """Theorem 4 (ii): superseded members none of whose superseders is in the set."""
    found = []
    for name, walk in walks.items():
        above = walk.closure - {name} | {one for one in walk.cycle if one == name}
        if (above or walk.closure_more) and not above & inside:
            repairs = tuple(entry.id for entry in walk.controlling if entry.id != name) or tuple(sorted(above))
            path = steps_of(walk, repairs[0]) if repairs and repairs[0] in walk.via else ()
            found.append(Violation(condition="ignored_superseder", id=name, add=repairs, path=path))
    return found


def _excluded(anchors: Sequence[WalkResult], inside: set[str]) -> list[Violation]:
    """Theorem 4 (i): anchors some of whose controlling documents the set lacks."""
    found = []
    told: set[str] = set()
    for walk in anchors:
        lacking = [entry.id for entry in walk.controlling if entry.id not in inside and entry.id not in told]
        told.update(lacking)
        if lacking:
            path = steps_of(walk, lacking[0])
            found.append(Violation(condition="frontier_inclusion", id=walk.anchor, add=tuple(lacking), path=path))
    return found
