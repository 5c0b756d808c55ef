"""Two-stage answers from the live state: relevance finds anchors, authority leads from them to what controls them.

Promise: an answer is `front(cl(A_k(q)))` (Definition 3) as of one cut. Superseded documents appear in it only as
evidence. Its certificate says which anchors are covered. Cost: one search, then a few rounds of reads that serve all
anchors together.
"""

import heapq
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Literal, TypeVar

from msgspec.structs import replace

from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import record_scope
from stream_car.core.stored import StoredDocument
from stream_car.core.walk import COUNTED_MAX, LATEST_MAX, WalkResult
from stream_car.errors import InvalidRequest, Unavailable
from stream_car.ports import AnchorIndex, Pairs
from stream_car.queries.affected import AffectedReader, PackageQuestion
from stream_car.queries.answers import (
    Answer,
    Audit,
    Certificate,
    DocumentStatus,
    Evidence,
    Group,
    Incomplete,
    Resolution,
)
from stream_car.queries.assembly import (
    certificate_of,
    ended_records,
    evidence_of_anchors,
    explained_violations,
    frontier_exclusions,
    groups_of,
    ignored_superseders,
    scope_ambiguity,
    with_limited_list,
)
from stream_car.queries.cache import AnswerCache
from stream_car.queries.findings import PackageFindings
from stream_car.queries.known_history import mark_unknown_history
from stream_car.queries.limits import DEPTH
from stream_car.queries.mentions import mentioned_packages, only_mentioned
from stream_car.queries.names import ResolvedName, latest_editions, resolve_alias, similar_names
from stream_car.queries.outcomes import RECORD_NAMES, status_of_name
from stream_car.queries.read_options import (
    DEFAULT_OPTIONS,
    IN_FLIGHT,
    ImmediateRetries,
    MinRevision,
    ReadOptions,
    invisible_reason,
    mark_incomplete,
)
from stream_car.queries.retrieval import SEARCHED_MAX, Question, is_within, retrieve, select, with_probabilities
from stream_car.queries.shards import Overview, ShardMoved, Shards, ValueSource
from stream_car.queries.snapshot import Snapshot
from stream_car.queries.statements_cache import StatementsCache
from stream_car.ranking.analysis import possible_names
from stream_car.ranking.anchor_order import AnchorPlan, Hit
from stream_car.ranking.closeness import CLOSE
from stream_car.ranking.settings import SETTINGS
from stream_car.versions.packages import Package

CLOSURES_MAX = 20_000  # members that a check names for all documents of a set, unless the set itself is larger
SIMILAR_MAX = 3
STANDING = frozenset({"in_force", "superseded"})  # of names that are suggested
COMPARED_MAX = 3  # unknown names of a question that are compared with known ones
MATCHES_MAX = 3  # anchors whose closeness to the question is measured
PACKAGE = "package"  # the scope key that names a package
RECORDS_PER_QUESTION = 100  # about a package that a question in words asks about

T = TypeVar("T")
RetryReason = Literal["shard_moved", "not_exact", "not_visible"]


class Queries:
    """Questions about anchors and names. `ScopeQueries` answers those about scopes."""

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
        self.statements = StatementsCache(ruleset)
        self.superseded_bonus = superseded_bonus  # nats in favour of an anchor that something supersedes

    def snapshot(self, as_of: int | None = None) -> Snapshot:
        """A snapshot for one attempt at a question."""
        return Snapshot(self.shards.source(), self.ruleset, as_of=as_of)

    async def read_consistently(
        self,
        as_of: int | None,
        read: Callable[[Snapshot], Awaitable[T]],
        options: ReadOptions = DEFAULT_OPTIONS,
        *,
        source: Callable[[], ValueSource] | None = None,
    ) -> T:
        """Run `read` until its answer is final: all values belong to one cut, and the cut includes `min_revisions`.

        Nothing locks the shards while they are read. So an attempt can fail for three reasons, which pass with time.
        The whole attempt is then repeated with a new snapshot, for as long as `options.retry` allows:

        - `shard_moved`: a shard moved between two rounds of reads, which ended the attempt.
        - `not_exact`: a value read includes input that is not before the cut, or the index has another revision of a
          document.
        - `not_visible`: some shard has not applied one of `options.min_revisions` yet.

        If the last attempt gave an answer that is not exact, it is returned marked as `in_flight`.

        Raises:
            InvalidRequest: `not_visible` if the last attempt failed for that reason. `in_flight` if it gave no
                answer, or one that has no field for the mark. `pending`, without a retry, if one of `min_revisions`
                takes effect in the future.
        """
        retry = options.retry or ImmediateRetries()
        while True:
            snapshot = Snapshot(
                (source or self.shards.source)(),
                self.ruleset,
                as_of=as_of,
                pace=options.pace,
                timer=options.timer,
                attributes=options.attributes,
            )
            answer: T | None = None
            retry_reason: RetryReason = "shard_moved"
            with suppress(ShardMoved), closing(snapshot.source):
                answer = await read(snapshot)
                if not isinstance(answer, Answer):  # that of a query was marked before it was cached
                    answer = await self._with_history(snapshot, answer)
                retry_reason = "not_visible"  # also if the shard moves before this is known
                if await self._has_seen(snapshot, options.min_revisions):
                    if snapshot.is_exact:
                        return await _with_quarantine(answer, snapshot)
                    retry_reason = "not_exact"
            if not await retry.wait():
                return _after_last_attempt(answer, retry_reason, options.min_revisions)

    async def _with_history(self, snapshot: Snapshot, answer: T) -> T:
        """The answer, marked if it is as of a time of which the history is not known here."""

        async def ids_of_name(name: str) -> Sequence[str]:
            return (await self.resolve_name(snapshot, name)).ids

        return await mark_unknown_history(answer, snapshot, self.index, ids_of_name)

    async def _has_seen(self, snapshot: Snapshot, min_revisions: Sequence[MinRevision]) -> bool:
        """Return whether the cut includes these revisions, so that every shard they joined or left has applied them.

        Raises `InvalidRequest` (`pending`) for a revision that takes effect in the future.
        """
        await snapshot.load([document_key(minimum.id) for minimum in min_revisions])
        for minimum in min_revisions:
            stored = await snapshot.document(minimum.id)
            if stored is None or stored.revision < minimum.revision:
                return False
            if stored.pending is not None:
                raise InvalidRequest(
                    "pending",
                    f"Document {minimum.id!r} takes effect in the future and changes no answer until then. "
                    "Omit it from `min_revisions`.",
                )
            if snapshot.cut[self.shards.intake_of(minimum.id)] <= stored.applied:
                return False
        return True

    async def search(
        self,
        text: str,
        k: int = 5,
        *,
        scope: Mapping[str, str] | None = None,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> tuple[Evidence, ...]:
        """The best `k` anchors by relevance alone (Stage 1), active or not. `scope` is as in `query`."""
        within = self._pairs(scope)

        async def read(snapshot: Snapshot) -> tuple[Evidence, ...]:
            _, walks = await self._anchors(snapshot, text, k, within=within)
            return await evidence_of_anchors(snapshot, self.index, walks)

        return await self.read_consistently(None, read, options)

    async def _anchors(
        self, snapshot: Snapshot, text: str, depth: int, named_max: int = COUNTED_MAX, within: Pairs = ()
    ) -> tuple[list[Hit], list[WalkResult]]:
        """The first `depth` hits that are part of the corpus as of the snapshot, with their walks."""
        search_depth = depth
        while True:
            hits = await snapshot.search(self.index, text, min(search_depth, SEARCHED_MAX), within)
            walks = zip(hits, await snapshot.walk([hit.id for hit in hits], named_max=named_max), strict=True)
            present = [(hit, walk) for hit, walk in walks if walk and is_within(walk, within)][:depth]
            if len(present) == depth or len(hits) < search_depth or search_depth >= SEARCHED_MAX:
                return [hit for hit, _ in present], [walk for _, walk in present]
            search_depth *= 4

    async def query(
        self,
        text: str,
        *,
        k: int = 5,
        depth: int = DEPTH,
        as_of: int | None = None,
        budget: int | None = None,
        scope: Mapping[str, str] | None = None,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> Answer:
        """The `k` best controlling documents of the first `depth` anchors, group by group.

        With a `scope`, only documents in scopes that have its pairs are anchors. `as_of` is a valid time in
        microseconds UTC. After Stage 2 has read `budget` keys, no further anchor is examined; the certificate lists
        what was left out.
        """
        question = Question(text, k, depth, as_of, budget, options.attributes, self._pairs(scope))
        answer = await self.read_consistently(as_of, lambda snapshot: self._full_answer(snapshot, question), options)
        best = heapq.nlargest(MATCHES_MAX, answer.groups, key=lambda group: group.score)
        vectors_pending, ignored_terms = await self.index.vectors_pending(), await self.index.ignored_terms(text)
        closeness = await self.index.closeness(text, [group.anchor.id for group in best]) if best else 0.0
        if (closeness, vectors_pending, ignored_terms) == (1.0, 0, 0):
            return answer
        return replace(
            answer,
            closeness=closeness,
            is_close=closeness >= CLOSE or bool(answer.packages),
            vectors_pending=vectors_pending,
            ignored_terms=ignored_terms,
        )

    def _pairs(self, scope: Mapping[str, str] | None) -> Pairs:
        """The pairs of a scope as the rules spell them."""
        return tuple(sorted(self.ruleset.normalize_part(key, value) for key, value in (scope or {}).items()))

    async def _full_answer(self, snapshot: Snapshot, question: Question) -> Answer:
        """The answer, and whether the packages that the question asks about are affected.

        Only documents about the package are anchors if there is one such package, and no scope was given.
        """
        packages: dict[Package, tuple[str, str]] = {}
        for package in mentioned_packages(question.text):
            pair = self.ruleset.normalize_part(PACKAGE, package.name)
            if await self.index.scopes([pair], 1):
                packages[package] = pair
        within = tuple(set(packages.values())) if not question.within else ()
        answer = None
        if len(within) == 1:
            answer = await self._cached_answer(snapshot, replace(question, within=within))
        if answer is None or not answer.results:
            answer = await self._cached_answer(snapshot, question)
        if not packages:
            return answer
        about = PackageQuestion(packages=tuple(packages), records_max=RECORDS_PER_QUESTION)
        affected = await AffectedReader(snapshot, self.index, about, self.statements).read()
        return replace(answer, packages=tuple(only_mentioned(each, question.text) for each in affected))

    async def _cached_answer(self, snapshot: Snapshot, question: Question) -> Answer:
        """The cached answer if it is still valid; otherwise compute the answer and cache it.

        Nothing is cached, and nothing cached is used, while records are in quarantine. That is read after the search,
        so that the hits and the state are of one moment.
        """
        cache = self.cache
        cached = await cache.find(question, snapshot, self.index) if cache is not None else None
        if cached is not None and not (await snapshot.overview()).has_quarantine:
            return cached
        answer, plan = await self._answer(snapshot, question)
        if cache is not None and not (await snapshot.overview()).has_quarantine:
            await cache.keep(question, answer, plan, snapshot, self.index)
        return answer

    async def _answer(self, snapshot: Snapshot, question: Question) -> tuple[Answer, AnchorPlan]:
        retrieval = await retrieve(snapshot, self.index, question, superseded_bonus=self.superseded_bonus)
        plan = retrieval.plan
        selection = select([retrieval.walks[summary.anchor] for _, summary in plan.examined], question.k)
        groups = tuple(await groups_of(snapshot, self.index, selection.shown))
        documents = {control.document.id: control.document for group in groups for control in group.controlling}
        not_covered = [summary.anchor for _, summary in plan.examined[len(selection.covered) :]]
        not_covered += [hit.id for hit in plan.remaining]
        reasons: list[Incomplete] = ["budget"] if retrieval.is_over_budget else []
        if not retrieval.walks:
            reasons = ["no_anchor"]
        answer = Answer(
            question=question.text,
            results=tuple(documents[name] for name in selection.results),
            groups=groups,
            certificate=await self._certificate(snapshot, selection.covered, not_covered, reasons),
            pending=(await snapshot.overview()).pending,
        )
        answer = await with_probabilities(answer, plan, snapshot.yield_control)
        return await self._with_history(snapshot, answer), plan

    async def _certificate(
        self,
        snapshot: Snapshot,
        walks: Sequence[WalkResult],
        not_covered: Sequence[str],
        reasons: Sequence[Incomplete] = (),
    ) -> Certificate:
        return certificate_of(
            walks,
            not_covered,
            kappa=await scope_ambiguity(walks, snapshot.yield_control),
            generation=self.generation,
            cut=snapshot.cut,
            as_of=snapshot.as_of,
            pending=(await snapshot.overview()).pending,
            rounds=snapshot.rounds,
            lookups=snapshot.lookups,
            reasons=reasons,
        )

    async def resolve(
        self, names: Sequence[str], *, as_of: int | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> tuple[Resolution, ...]:
        """What controls each of these now: document ids, chunk ids (`doc#chunk`) or records."""
        return await self.read_consistently(as_of, lambda snapshot: self.resolutions(snapshot, names), options)

    async def affected(
        self, question: PackageQuestion, *, as_of: int | None = None, options: ReadOptions = DEFAULT_OPTIONS
    ) -> tuple[PackageFindings, ...]:
        """Which of these packages are affected by a record in force."""
        return await self.read_consistently(
            as_of, lambda snapshot: AffectedReader(snapshot, self.index, question, self.statements).read(), options
        )

    async def resolutions(self, snapshot: Snapshot, names: Sequence[str]) -> tuple[Resolution, ...]:
        """What controls each of these as of a snapshot."""
        await snapshot.load([document_key(name) for name in names])
        resolved_names = [await self.resolve_name(snapshot, name) for name in names]
        ids = list(dict.fromkeys(document_id for resolved in resolved_names for document_id in resolved.ids))
        walks = [with_limited_list(walk) for walk in await snapshot.walk(ids) if walk is not None]
        groups = {group.anchor.id: group for group in await groups_of(snapshot, self.index, walks)}
        similar = await self.similar_names(snapshot, resolved_names)
        return tuple(
            replace(_resolution(self.ruleset, resolved, groups), similar=similar.get(resolved.name, ()))
            for resolved in resolved_names
        )

    async def similar_names(
        self, snapshot: Snapshot, resolved_names: Iterable[ResolvedName]
    ) -> dict[str, tuple[str, ...]]:
        """Known names that are similar to those that mean nothing, for the first few of them that have any.

        The index may know names that mean nothing any more.
        """
        unknown = [resolved.name for resolved in resolved_names if resolved.status == "unknown"][:COMPARED_MAX]
        similar: dict[str, tuple[str, ...]] = {}
        for name in unknown:
            names = await similar_names(snapshot, self.index, name)
            known = [other for other in names if (await self.resolve_name(snapshot, other)).status in STANDING]
            if known:
                similar[name] = tuple(known[:SIMILAR_MAX])
        return similar

    async def resolve_name(self, snapshot: Snapshot, name: str) -> ResolvedName:
        """The documents that a name refers to. The first that exists wins: exact id, chunk of an id, record, alias."""
        stored = await snapshot.document(name)
        if stored is not None:
            return ResolvedName(name, "id", (name,), _status_of(stored))
        owner = name.rpartition("#")[0]
        if owner:
            stored = await snapshot.document(owner)
            if stored is not None:
                return ResolvedName(name, "chunk", (owner,), _status_of(stored))
        for record in (name, owner):
            scope = await snapshot.scope(record_scope(record)) if record else None
            if scope is not None and (scope.entries or scope.directory):
                editions = await snapshot.with_pages(partial(latest_editions, scope, snapshot))
                return ResolvedName(name, "record", tuple(entry.id for entry in editions), "in_force")
        resolved = await resolve_alias(snapshot, self.index, name)
        if not resolved.ids and owner:
            resolved = replace(await resolve_alias(snapshot, self.index, owner), name=name)
        return resolved

    async def check(
        self,
        ids: Sequence[str],
        *,
        question: str | None = None,
        depth: int = 20,
        as_of: int | None = None,
        options: ReadOptions = DEFAULT_OPTIONS,
    ) -> Audit:
        """Check whether a retrieved set meets both conditions of Theorem 4, and what would repair it.

        Frontier inclusion is judged for the anchors `A_depth(question)`, or without a question for the set itself.
        """
        return await self.read_consistently(
            as_of, lambda snapshot: self._check(snapshot, ids, question, depth), options
        )

    async def _check(self, snapshot: Snapshot, ids: Sequence[str], question: str | None, depth: int) -> Audit:
        if question is not None:
            await snapshot.search(self.index, question, depth)
        await snapshot.load([document_key(name) for name in ids])
        by_name = {name: await self.resolve_name(snapshot, name) for name in dict.fromkeys(ids)}
        members = list(dict.fromkeys(document_id for resolved in by_name.values() for document_id in resolved.ids))
        # Of a scope too large to name, a walk still names some controlling documents, at least LATEST_MAX. A smaller
        # set lacks one of them in any case, so only for a larger set more must be named.
        enough = COUNTED_MAX if len(members) < LATEST_MAX else max(COUNTED_MAX, len(members)) + 1
        named_max = max(enough, CLOSURES_MAX // max(len(members), 1))
        results = await snapshot.walk(members, named_max=named_max)
        walks = {name: walk for name, walk in zip(members, results, strict=True) if walk is not None}
        present = set(walks)
        anchors = list(walks.values())
        if question is not None:
            _, anchors = await self._anchors(snapshot, question, depth, named_max)
        violations = [*ignored_superseders(walks, present), *frontier_exclusions(anchors, present)]
        repaired = dict.fromkeys(name for name, walk in walks.items() if walk.is_active)
        repaired.update(dict.fromkeys(entry.id for walk in (*walks.values(), *anchors) for entry in walk.controlling))
        unknown = tuple(name for name, resolved in by_name.items() if resolved.status == "unknown")
        retracted = tuple(name for name, resolved in by_name.items() if resolved.status == "retracted")
        pending = tuple(
            name
            for name, resolved in by_name.items()
            if resolved.ids and present.isdisjoint(resolved.ids) and resolved.status != "retracted"
        )
        stranded = tuple(name for name, walk in walks.items() if not walk.is_active and not walk.controlling)
        # The set may lack a document that is not named.
        has_unlisted = any(walk.controlling_more or walk.next for walk in anchors) or any(
            walk.next for walk in walks.values()
        )
        # before texts are read, which may take more look-ups
        certificate = await self._certificate(snapshot, anchors, (), ["limit"] if has_unlisted else [])
        records = {name: resolved.ids for name, resolved in by_name.items() if resolved.via in RECORD_NAMES}
        ended = await ended_records(snapshot, self.index, records, walks)
        return Audit(
            holds=not (violations or unknown or retracted or pending or stranded or ended or has_unlisted),
            violations=tuple(await explained_violations(snapshot, self.index, violations, walks)),
            repaired=tuple(repaired),
            unknown=unknown,
            retracted=retracted,
            pending=pending,
            stranded=stranded,
            ended=ended,
            similar=await self.similar_names(snapshot, by_name.values()),
            certificate=certificate,
        )


async def _with_quarantine(answer: T, snapshot: Snapshot) -> T:
    """Return the answer, marked if a record in quarantine might have changed what was read for it.

    It might also have been an anchor: if no other was found, or if the question mentions its id or a value of its
    scopes.

    Raises:
        Unavailable: the answer has no room for the mark (`quarantined`).
    """
    if not (snapshot.values or snapshot.searches):
        return answer
    overview = await snapshot.overview()
    if not overview.is_quarantined(snapshot.values) and not _may_lack_anchor(snapshot, overview):
        return answer
    if isinstance(answer, tuple) and (not answer or isinstance(answer[0], Evidence)):
        raise Unavailable(
            "A record that may belong to this answer was set aside. See `stream-car quarantine list`.", "quarantined"
        )
    marked = mark_incomplete(answer, "quarantined")
    return answer if marked is None else marked


def _may_lack_anchor(snapshot: Snapshot, overview: Overview) -> bool:
    """Return whether a document in quarantine might have been found by one of the searches."""
    names = overview.quarantined_names
    return bool(names) and any(
        not hits or not names.isdisjoint(possible_names(text)) for (text, *_), hits in snapshot.searches.items()
    )


def _after_last_attempt(answer: T | None, retry_reason: RetryReason, min_revisions: Sequence[MinRevision]) -> T:
    """Return the answer marked `in_flight`. Raises `InvalidRequest` if there is no such answer."""
    if retry_reason == "not_visible":
        raise InvalidRequest("not_visible", invisible_reason(min_revisions))
    marked = mark_incomplete(answer, IN_FLIGHT)
    if marked is None:
        raise InvalidRequest("in_flight", "The shards changed faster than they could be read. Try again.")
    return marked


def _status_of(stored: StoredDocument) -> DocumentStatus:
    if stored.retracted:
        return "retracted"
    return "pending" if stored.pending is not None else "in_force"


def _resolution(ruleset: Ruleset, resolved: ResolvedName, groups: Mapping[str, Group]) -> Resolution:
    own_groups = tuple(groups[name] for name in resolved.ids if name in groups)
    now = status_of_name(ruleset, own_groups, is_record=resolved.via in RECORD_NAMES)
    fate = now.fate
    return Resolution(
        name=resolved.name,
        status=now.status if resolved.status == "in_force" else resolved.status,
        via=resolved.via,
        state=fate.state,
        state_text=fate.state_text,
        state_since=fate.state_since,
        outcome=fate.outcome,
        outcome_text=fate.outcome_text,
        groups=own_groups,
        reasons=("limit",) if resolved.has_more else (),
    )
