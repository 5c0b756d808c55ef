"""Turn the results of walks into the groups and the certificate of an answer, and the violations of a check."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.amendments import Amender
from stream_car.core.changes import LISTED_MAX
from stream_car.core.documents import Document
from stream_car.core.stored import Entry, StoredDocument
from stream_car.core.walk import WalkResult
from stream_car.queries.answers import Amendment, Certificate, Controlling, Evidence, Group, Incomplete, Step, Violation
from stream_car.queries.snapshot import Snapshot

AMENDMENTS_MAX = 50


class Amendments(Struct, frozen=True, gc=False):
    """The amendments of one document: those in force, latest first, with the path to each; `more` counts the others."""

    listed: tuple[tuple[Entry, tuple[Step, ...]], ...]
    more: int = 0


NO_AMENDMENTS = Amendments(())


def evidence_of(entry: Entry | StoredDocument, name: str, body: Document | None, *, active: bool) -> Evidence:
    """A document as answers show it. Without its body, title, text, source and URL stay empty."""
    return Evidence(
        id=name,
        type=entry.type,
        time=entry.time,
        order=entry.order,
        revision=entry.revision,
        active=active,
        title=body.title if body is not None else "",
        text=body.text if body is not None else "",
        source=body.source if body is not None else "",
        url=body.url if body is not None else "",
    )


def steps_of(walk: WalkResult, target: str) -> tuple[Step, ...]:
    """The path from the anchor to one of its controlling documents."""
    return tuple(Step(id=name, rule=rule, scope=scope) for name, rule, scope in walk.path(target))


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


def names_in(walks: Iterable[WalkResult], amendments: Mapping[str, Amendments]) -> list[str]:
    """Every document that the groups of these walks show."""
    names = dict.fromkeys(entry.id for amending in amendments.values() for entry, _ in amending.listed)
    for walk in walks:
        names[walk.anchor] = None
        names.update(dict.fromkeys(entry.id for entry in walk.controlling))
        names.update(dict.fromkeys(name for entry in walk.controlling for name, _, _ in walk.path(entry.id)))
    return list(names)


def group_of(
    walk: WalkResult, bodies: Mapping[str, Document], amendments: Mapping[str, Amendments], score: float = 0.0
) -> Group:
    """The group of an anchor: its controlling documents, and the superseded documents on the paths to them."""
    controlling = {entry.id for entry in walk.controlling}
    paths = {entry.id: steps_of(walk, entry.id) for entry in walk.controlling}
    superseded = dict.fromkeys(step.id for path in paths.values() for step in path if step.id not in controlling)
    reasons = _reasons(walk)
    return Group(
        anchor=evidence_of(walk.document, walk.anchor, bodies.get(walk.anchor), active=walk.is_active),
        score=score,
        controlling=tuple(
            Controlling(
                document=evidence_of(entry, entry.id, bodies.get(entry.id), active=True),
                path=paths[entry.id],
                amendments=_shown_amendments(amendments.get(entry.id, NO_AMENDMENTS), bodies),
                amendments_more=amendments.get(entry.id, NO_AMENDMENTS).more,
            )
            for entry in walk.controlling
        ),
        controlling_more=walk.controlling_more,
        passed=tuple(evidence_of(walk.nodes[name].entry, name, bodies.get(name), active=False) for name in superseded),
        complete=not reasons,
        reasons=tuple(reasons),
        missing=walk.missing,
        cycle=walk.cycle,
    )


def _reasons(walk: WalkResult) -> list[Incomplete]:
    """Why the result of a walk may be incomplete."""
    reasons: list[Incomplete] = ["cycle"] if walk.cycle else []
    if walk.missing:
        reasons.append("successor_missing")
    if walk.over_budget:
        reasons.append("budget")
    if walk.controlling_more:
        reasons.append("limit")
    return reasons


def _shown_amendments(amendments: Amendments, bodies: Mapping[str, Document]) -> tuple[Amendment, ...]:
    return tuple(
        Amendment(document=evidence_of(entry, entry.id, bodies.get(entry.id), active=True), path=path)
        for entry, path in amendments.listed
    )


def certificate_of(
    walks: Sequence[WalkResult],
    not_covered: Sequence[str],
    *,
    generation: str,
    cut: tuple[int, ...],
    as_of: int | None,
    rounds: int,
    lookups: int,
    reasons: Sequence[Incomplete] = (),
) -> Certificate:
    """What an answer warrants for the anchors of these walks (Theorem 4, Definition 5).

    Let `C` be the closures of the anchors, and `N` those together with all documents that share a scope with an
    anchor. Then `kappa = |N| / |C|` and `phi = 1 / kappa`.
    """
    closure = set[str]().union(*(walk.closure for walk in walks))
    around = set[str]().union(*(walk.around for walk in walks))
    closure_size = len(closure) + sum(walk.closure_more for walk in walks)
    around_size = len(around | closure) + sum(walk.around_more for walk in walks)
    kappa = max(1.0, around_size / closure_size) if closure_size else 1.0
    all_reasons = dict.fromkeys(reasons)
    for walk in walks:
        all_reasons.update(dict.fromkeys(_reasons(walk)))
    return Certificate(
        covered=tuple(walk.anchor for walk in walks),
        not_covered=tuple(not_covered),
        complete=not all_reasons,
        reasons=tuple(all_reasons),
        phi=1.0 / kappa,
        kappa=kappa,
        generation=generation,
        cut=cut,
        as_of=as_of,
        rounds=rounds,
        lookups=lookups,
    )


async def amendments_of(snapshot: Snapshot, walks: Iterable[WalkResult]) -> Mapping[str, Amendments]:
    """The amendments of the controlling documents of these walks, by id; documents without any are left out."""
    has_links = (await snapshot.overview()).has_links
    controlling = {entry.id: entry for walk in walks for entry in walk.controlling}
    names = [name for name, entry in controlling.items() if has_links or snapshot.ruleset.is_amendable(entry.type)]
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


def ignored_superseders(walks: dict[str, WalkResult], present: set[str]) -> list[Violation]:
    """Theorem 4 (ii): superseded members of the set without any of their superseders in the set."""
    violations = []
    for name, walk in walks.items():
        superseders = walk.closure - {name} | ({name} & set(walk.cycle))
        if (superseders or walk.closure_more) and superseders.isdisjoint(present):
            repairs = tuple(entry.id for entry in walk.controlling if entry.id != name) or tuple(sorted(superseders))
            path = steps_of(walk, repairs[0]) if repairs and repairs[0] in walk.via else ()
            violations.append(Violation(condition="ignored_superseder", id=name, add=repairs, path=path))
    return violations


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
