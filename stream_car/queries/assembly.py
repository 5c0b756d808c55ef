"""Turn the results of walks into the groups and the certificate of an answer, and the violations of a check."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stream_car.codec.times import from_micros
from stream_car.core.amendments import Amender
from stream_car.core.changes import LISTED_MAX
from stream_car.core.documents import Precedence
from stream_car.core.stored import LOWEST, Entry
from stream_car.core.walk import ScopeAndType, WalkResult
from stream_car.ports import AnchorIndex, YieldControl
from stream_car.queries.answers import (
    Amendment,
    Certificate,
    Controlling,
    EndedRecord,
    Evidence,
    Group,
    Incomplete,
    Step,
    Violation,
)
from stream_car.queries.outcomes import Fate, Fates, reasons_of, reasons_on_paths, steps_of
from stream_car.queries.snapshot import Snapshot

AMENDMENTS_MAX = 50


class Amendments(Struct, frozen=True, gc=False):
    """The amendments of one document: those in force, latest first, with the path to each; `more` counts the others."""

    listed: tuple[tuple[Entry, tuple[Step, ...]], ...]
    more: int = 0


NO_AMENDMENTS = Amendments(())


def evidence_of(entry: Entry, fates: Fates, *, active: bool, reasons: Iterable[Step] = ()) -> Evidence:
    """A document as answers show it. Without its body, title, text, source and URL stay empty.

    `reasons` are the steps from a superseded document to what supersedes it.
    """
    body, fate = fates.bodies.get(entry.id), fates.of(entry.id, entry.type, reasons)
    return Evidence(
        id=entry.id,
        type=entry.type,
        time=from_micros(entry.time),
        order=entry.order,
        revision=entry.revision,
        status="in_force" if active else "superseded",
        title=body.title if body is not None else "",
        text=body.text if body is not None else "",
        source=body.source if body is not None else "",
        url=body.url if body is not None else "",
        scope=body.scope if body is not None else (),
        attributes=body.attributes if body is not None and fates.shows_attributes else {},
        state=fate.state,
        state_text=fate.state_text,
        state_since=fate.state_since,
        outcome=fate.outcome,
        outcome_text=fate.outcome_text,
    )


async def read_fates(
    snapshot: Snapshot, index: AnchorIndex, names: Iterable[str], reasons: Iterable[Sequence[Step]] = ()
) -> Fates:
    """Read the documents with these ids and those that the steps lead to, to tell what became of them."""
    ids = dict.fromkeys([*names, *(step.id for steps in reasons for step in steps)])
    bodies = await snapshot.current_bodies(index, list(ids))
    return Fates(snapshot.ruleset, bodies, shows_attributes=snapshot.attributes)


async def evidence_of_anchors(
    snapshot: Snapshot, index: AnchorIndex, walks: Sequence[WalkResult]
) -> tuple[Evidence, ...]:
    """The anchors of these walks as answers show them."""
    reasons = [reasons_of(walk) for walk in walks]
    fates = await read_fates(snapshot, index, [walk.anchor for walk in walks], reasons)
    return tuple(
        evidence_of(walk.nodes[walk.anchor].entry, fates, active=walk.is_active, reasons=steps)
        for walk, steps in zip(walks, reasons, strict=True)
    )


async def ended_records(
    snapshot: Snapshot, index: AnchorIndex, records: Mapping[str, Sequence[str]], walks: Mapping[str, WalkResult]
) -> tuple[EndedRecord, ...]:
    """Those of these records, given with the ids of their editions, whose editions in force all say that they ended."""
    ended = {}
    for name, ids in records.items():
        active = [walks[document_id] for document_id in ids if document_id in walks and walks[document_id].is_active]
        if active and all(walk.document.type in snapshot.ruleset.ending_types for walk in active):
            ended[name] = active[-1]
    evidence = await evidence_of_anchors(snapshot, index, list(ended.values()))
    return tuple(
        EndedRecord(name=name, outcome=document.outcome, outcome_text=document.outcome_text)
        for name, document in zip(ended, evidence, strict=True)
    )


def with_limited_list(walk: WalkResult, required: Collection[str] = ()) -> WalkResult:
    """The walk with at most `LISTED_MAX` controlling documents and those in `required`; it counts the others."""
    if len(walk.controlling) <= LISTED_MAX:
        return walk
    listed = [entry for at, entry in enumerate(walk.controlling) if at < LISTED_MAX or entry.id in required]
    return replace(
        walk,
        controlling=listed,
        controlling_more=walk.controlling_more + len(walk.controlling) - len(listed),
    )


async def groups_of(snapshot: Snapshot, index: AnchorIndex, walks: Sequence[WalkResult]) -> list[Group]:
    """The group of each walk, with the amendments in force and the texts of everything that it shows."""
    amendments = await amendments_of(snapshot, walks)
    paths = [{entry.id: steps_of(walk, entry.id) for entry in walk.controlling} for walk in walks]
    ways = (path for amending in amendments.values() for _, path in amending.listed)  # each ends with the amendment
    names = dict.fromkeys(step.id for path in ways for step in path)
    for walk, path_to in zip(walks, paths, strict=True):
        names[walk.anchor] = None
        names |= dict.fromkeys((*path_to, *(step.id for path in path_to.values() for step in path)))
    reasons = [reasons_of(walk, path_to.values()) for walk, path_to in zip(walks, paths, strict=True)]
    fates = await read_fates(snapshot, index, names, reasons)
    return [_group_of(*each, fates, amendments) for each in zip(walks, paths, reasons, strict=True)]


def _group_of(
    walk: WalkResult,
    path_to: Mapping[str, tuple[Step, ...]],
    anchor_reasons: Sequence[Step],
    fates: Fates,
    amendments: Mapping[str, Amendments],
) -> Group:
    """The group of an anchor: its controlling documents, and the superseded documents on the paths to them."""
    superseded = dict.fromkeys(step.id for path in path_to.values() for step in path if step.id not in path_to)
    reasons = _why_incomplete(walk)
    why_superseded = reasons_on_paths(walk.anchor, path_to.values())
    if walk.anchor not in why_superseded:
        why_superseded[walk.anchor] = list(anchor_reasons)
    return Group(
        anchor=evidence_of(
            walk.nodes[walk.anchor].entry, fates, active=walk.is_active, reasons=why_superseded[walk.anchor]
        ),
        controlling=tuple(
            Controlling(
                document=evidence_of(entry, fates, active=True),
                path=fates.path(walk.anchor, path_to[entry.id]),
                amendments=_shown_amendments(entry.id, amendments.get(entry.id, NO_AMENDMENTS), fates),
                amendments_more=amendments.get(entry.id, NO_AMENDMENTS).more,
            )
            for entry in walk.controlling
        ),
        controlling_more=walk.controlling_more,
        superseded=tuple(
            evidence_of(walk.nodes[name].entry, fates, active=False, reasons=why_superseded[name])
            for name in superseded
        ),
        complete=not reasons,
        reasons=tuple(reasons),
        missing=walk.missing,
        cycle=walk.cycle,
        next=walk.next,
    )


def _why_incomplete(walk: WalkResult) -> list[Incomplete]:
    """Why the result of a walk may be incomplete."""
    reasons: list[Incomplete] = ["cycle"] if walk.cycle else []
    if walk.missing:
        reasons.append("successor_missing")
    if walk.controlling_more or walk.next:
        reasons.append("limit")
    return reasons


def _shown_amendments(name: str, amendments: Amendments, fates: Fates) -> tuple[Amendment, ...]:
    return tuple(
        Amendment(document=evidence_of(entry, fates, active=True), path=fates.path(name, path))
        for entry, path in amendments.listed
    )


def certificate_of(
    walks: Sequence[WalkResult],
    not_covered: Sequence[str],
    *,
    kappa: float,
    generation: str,
    cut: tuple[int, ...],
    as_of: int | None,
    pending: int,
    rounds: int,
    lookups: int,
    reasons: Sequence[Incomplete] = (),
) -> Certificate:
    """What an answer warrants for the anchors of these walks (Theorem 4, Definition 5)."""
    all_reasons = dict.fromkeys(reasons)
    for walk in walks:
        all_reasons.update(dict.fromkeys(_why_incomplete(walk)))
    return Certificate(
        covered=tuple(walk.anchor for walk in walks),
        not_covered=tuple(not_covered),
        complete=not all_reasons,
        reasons=tuple(all_reasons),
        phi=1.0 / kappa,
        kappa=kappa,
        generation=generation,
        cut=cut,
        as_of=from_micros(as_of) if as_of is not None else None,
        pending=pending,
        rounds=rounds,
        lookups=lookups,
    )


async def scope_ambiguity(walks: Sequence[WalkResult], rest: YieldControl) -> float:
    """The scope ambiguity ratio `kappa` of the anchors of these walks (Definition 5).

    Let `C` be the closures of the anchors, and `N` those together with all documents that share a scope with an
    anchor. Then `kappa = |N| / |C|`. Members of a scope that has too many to name are counted, each scope once for all
    walks. A document of two such scopes counts twice in `N`, unless a closure names it.
    """
    closure = set[str]().union(*(walk.closure for walk in walks))
    around = closure.union(*(walk.around for walk in walks))
    large_scopes: dict[str, int] = {}
    counts: dict[ScopeAndType, tuple[int, Precedence]] = {}  # with the precedence that the counted members exceed
    members: dict[ScopeAndType, dict[str, Precedence]] = {}
    for walk in walks:
        large_scopes |= walk.large_scopes
        for key, count in walk.closure_counts.items():
            counts[key] = max(counts.get(key, (0, LOWEST)), (count, walk.reach[key].low))
        for key, precedences in walk.members_of_large_scopes.items():
            members.setdefault(key, {}).update(precedences)
        await rest()
    counted: set[str] = set()  # ids in `closure` that `counts` has, too
    for key, (_, low) in counts.items():
        counted.update(name for name, at in members.get(key, {}).items() if at > low)
        await rest()
    memberships, named = 0, set[str]()  # each of `named` counts once, however many large scopes it is in
    for (scope, _), names in members.items():
        if scope in large_scopes:
            memberships += len(names)
            named.update(names)
        await rest()
    closure_size = len(closure - counted) + sum(count for count, _ in counts.values())
    others = sum(count for (scope, _), (count, _) in counts.items() if scope not in large_scopes)
    in_scopes = sum(large_scopes.values()) - (memberships - len(named))
    around_size = len(around - named - counted) + in_scopes + others
    return max(1.0, around_size / closure_size) if closure_size else 1.0


async def amendments_of(snapshot: Snapshot, walks: Iterable[WalkResult]) -> Mapping[str, Amendments]:
    """The amendments of the controlling documents of these walks, by id; documents without any are left out."""
    has_links = (await snapshot.overview()).has_links
    controlling = {entry.id: entry for walk in walks for entry in walk.controlling}
    amendable = snapshot.ruleset.amendable_types
    names = [name for name, entry in controlling.items() if has_links or entry.type in amendable]
    if not names:
        return {}
    direct = await snapshot.amenders(names)
    amending = list(dict.fromkeys(name for amenders in direct for name in amenders.named))
    amending_walks = {walk.anchor: walk for walk in await snapshot.walk(amending) if walk is not None}
    return {
        name: _list_amendments(name, list(amenders.named.values()), amending_walks, amenders.unnamed)
        for name, amenders in zip(names, direct, strict=True)
        if amenders.named or amenders.unnamed
    }


def _list_amendments(name: str, direct: Sequence[Amender], walks: Mapping[str, WalkResult], unnamed: int) -> Amendments:
    """The documents in force that the direct amenders of `name` lead to, each with its shortest path."""
    shortest: dict[str, tuple[Entry, tuple[Step, ...]]] = {}
    for amender in direct:
        walk = walks.get(amender.id)
        if walk is None:
            continue
        first = Step(id=amender.id, rule=amender.rule, scope=amender.scope, effect="amend")
        for entry in walk.controlling:
            path = (first, *steps_of(walk, entry.id))
            if entry.id != name and (entry.id not in shortest or len(path) < len(shortest[entry.id][1])):
                shortest[entry.id] = entry, path
    ordered = sorted(shortest.values(), key=lambda pair: (-pair[0].time, -pair[0].order, pair[0].id))
    return Amendments(tuple(ordered[:AMENDMENTS_MAX]), unnamed + max(0, len(ordered) - AMENDMENTS_MAX))


async def explained_violations(
    snapshot: Snapshot, index: AnchorIndex, violations: Sequence[Violation], walks: Mapping[str, WalkResult]
) -> list[Violation]:
    """The violations with the outcomes of superseded documents and of the steps on their paths."""
    reasons = {violation.id: reasons_of(walks[violation.id]) for violation in violations if violation.id in walks}
    paths = (step for violation in violations for step in violation.path)
    steps = (step for steps in reasons.values() for step in steps)
    names = dict.fromkeys([*reasons, *(violation.id for violation in violations), *(s.id for s in (*paths, *steps))])
    fates = await read_fates(snapshot, index, names)
    explained = []
    for violation in violations:
        path, fate = fates.path(violation.id, violation.path), Fate()
        if violation.id in walks and not walks[violation.id].is_active:
            fate = fates.of(violation.id, walks[violation.id].document.type, reasons[violation.id])
        explained.append(replace(violation, path=path, outcome=fate.outcome, outcome_text=fate.outcome_text))
    return explained


def ignored_superseders(walks: dict[str, WalkResult], present: set[str]) -> list[Violation]:
    """Theorem 4 (ii): superseded members of the set without any of their superseders in the set."""
    violations = []
    latest = _latest_of_scopes(walks) if any(walk.closure_counts for walk in walks.values()) else {}
    for name, walk in walks.items():
        superseders = walk.closure - {name} | ({name} & set(walk.cycle))
        if not superseders and not walk.closure_counts:
            continue
        if superseders.isdisjoint(present) and not _is_reached(walk, latest):
            repairs = tuple(entry.id for entry in walk.controlling if entry.id != name) or tuple(sorted(superseders))
            path = steps_of(walk, repairs[0]) if repairs and repairs[0] in walk.via else ()
            violations.append(Violation(condition="ignored_superseder", id=name, add=repairs, path=path))
    return violations


def _latest_of_scopes(walks: Mapping[str, WalkResult]) -> dict[ScopeAndType, list[tuple[Precedence, str]]]:
    """Return the two latest of these documents of each scope and type."""
    latest: dict[ScopeAndType, list[tuple[Precedence, str]]] = {}
    for name, walk in walks.items():
        for scope in walk.document.scopes:
            of_type = latest.setdefault((scope, walk.document.type), [])
            of_type.append((walk.document.entry.precedence, name))
            of_type.sort(reverse=True)
            del of_type[2:]
    return latest


def _is_reached(walk: WalkResult, latest: Mapping[ScopeAndType, Sequence[tuple[Precedence, str]]]) -> bool:
    """Return whether one of the latest documents is among those that a walk reached but did not name."""
    return any(
        precedence > walk.reach[place].low and name != walk.anchor
        for place in walk.closure_counts
        for precedence, name in latest.get(place, ())
    )


def frontier_exclusions(anchors: Sequence[WalkResult], present: set[str]) -> list[Violation]:
    """Theorem 4 (i): anchors with controlling documents that the set lacks. Each document is reported once."""
    violations = []
    reported: set[str] = set()
    for walk in anchors:
        missing = [entry.id for entry in walk.controlling if entry.id not in present and entry.id not in reported]
        reported.update(missing)
        if missing:
            path = steps_of(walk, missing[0])
            violations.append(Violation(condition="frontier_inclusion", id=walk.anchor, add=tuple(missing), path=path))
    return violations
