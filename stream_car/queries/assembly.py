"""From what a walk found to what an answer shows."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.amendments import Amender
from stream_car.core.changes import LISTED_MAX
from stream_car.core.documents import Document
from stream_car.core.stored import Entry, StoredDocument
from stream_car.core.walk import WalkResult
from stream_car.queries.answers import Amendment, Certificate, Controlling, Evidence, Group, Incomplete, Step
from stream_car.queries.snapshot import Snapshot

AMENDMENTS_MAX = 50


class AmendmentsOf(Struct, frozen=True, gc=False):
    """What amends one document: each in force, latest first, with the path to it, and how many more there are."""

    found: tuple[tuple[Entry, tuple[Step, ...]], ...]
    more: int = 0


NO_AMENDMENTS = AmendmentsOf(())


def evidence_of(entry: Entry | StoredDocument, name: str, body: Document | None, *, active: bool) -> Evidence:
    """A document as answers show it; without its body only what authority knows of it."""
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


def steps_of(walked: WalkResult, name: str) -> tuple[Step, ...]:
    """The path from the anchor to one of the documents that control it."""
    return tuple(Step(id=one, rule=rule, scope=scope) for one, rule, scope in walked.path(name))


def with_limited_list(walked: WalkResult, needed: Collection[str] = ()) -> WalkResult:
    """The walk with as many controlling documents as a group lists, the needed ones among them; the rest is counted."""
    if len(walked.controlling) <= LISTED_MAX:
        return walked
    kept = [entry for at, entry in enumerate(walked.controlling) if at < LISTED_MAX or entry.id in needed]
    return replace(
        walked,
        controlling=kept,
        controlling_more=walked.controlling_more + len(walked.controlling) - len(kept),
    )


def names_in(walks: Iterable[WalkResult], amended: Mapping[str, AmendmentsOf]) -> list[str]:
    """Every document that groups of these walks show."""
    names = dict.fromkeys(entry.id for one in amended.values() for entry, _ in one.found)
    for walked in walks:
        names[walked.anchor] = None
        names.update(dict.fromkeys(entry.id for entry in walked.controlling))
        names.update(dict.fromkeys(one for entry in walked.controlling for one, _, _ in walked.path(entry.id)))
    return list(names)


def group_of(
    walked: WalkResult, bodies: Mapping[str, Document], amended: Mapping[str, AmendmentsOf], score: float = 0.0
) -> Group:
    """The group of an anchor: what controls it, and the superseded documents on the way."""
    inside = {entry.id for entry in walked.controlling}
    paths = {entry.id: steps_of(walked, entry.id) for entry in walked.controlling}
    passed = dict.fromkeys(step.id for path in paths.values() for step in path if step.id not in inside)
    reasons = _reasons(walked)
    return Group(
        anchor=evidence_of(walked.document, walked.anchor, bodies.get(walked.anchor), active=walked.is_active),
        score=score,
        controlling=tuple(
            Controlling(
                document=evidence_of(entry, entry.id, bodies.get(entry.id), active=True),
                path=paths[entry.id],
                amendments=_amendments(amended.get(entry.id, NO_AMENDMENTS), bodies),
                amendments_more=amended.get(entry.id, NO_AMENDMENTS).more,
            )
            for entry in walked.controlling
        ),
        controlling_more=walked.controlling_more,
        passed=tuple(evidence_of(walked.nodes[one].entry, one, bodies.get(one), active=False) for one in passed),
        complete=not reasons,
        reasons=tuple(reasons),
        missing=walked.missing,
        cycle=walked.cycle,
    )


def _reasons(walked: WalkResult) -> list[Incomplete]:
    """Why what a walk found may not be all."""
    found: list[Incomplete] = ["cycle"] if walked.cycle else []
    if walked.missing:
        found.append("successor_missing")
    if walked.over_budget:
        found.append("budget")
    if walked.controlling_more:
        found.append("limit")
    return found


def _amendments(amended: AmendmentsOf, bodies: Mapping[str, Document]) -> tuple[Amendment, ...]:
    return tuple(
        Amendment(document=evidence_of(entry, entry.id, bodies.get(entry.id), active=True), path=path)
        for entry, path in amended.found
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
    """What an answer warrants for the anchors of these walks (Theorem 4, Definition 5)."""
    closure = set[str]().union(*(walked.closure for walked in walks))
    around = set[str]().union(*(walked.around for walked in walks))
    closed = len(closure) + sum(walked.closure_more for walked in walks)
    near = len(around | closure) + sum(walked.around_more for walked in walks)
    kappa = max(1.0, near / closed) if closed else 1.0
    found = dict.fromkeys(reasons)
    for walked in walks:
        found.update(dict.fromkeys(_reasons(walked)))
    return Certificate(
        covered=tuple(walked.anchor for walked in walks),
        not_covered=tuple(not_covered),
        complete=not found,
        reasons=tuple(found),
        phi=1.0 / kappa,
        kappa=kappa,
        generation=generation,
        cut=cut,
        as_of=as_of,
        rounds=rounds,
        lookups=lookups,
    )


async def amendments_of(reader: Snapshot, walks: Iterable[WalkResult]) -> Mapping[str, AmendmentsOf]:
    """The amendments of every controlling document of these walks that has some."""
    has_links = (await reader.overview()).has_links
    controlling = {entry.id: entry for walk in walks for entry in walk.controlling}
    names = [name for name, one in controlling.items() if has_links or reader.ruleset.is_amendable(one.type)]
    if not names:
        return {}
    direct = await reader.amenders(names)
    every = list(dict.fromkeys(one for found in direct for one in found.named))
    followed = {one: walk for one, walk in zip(every, await reader.walk(every), strict=True) if walk is not None}
    return {
        name: _listed(name, list(found.named.values()), followed, found.unnamed)
        for name, found in zip(names, direct, strict=True)
        if found.named or found.unnamed
    }


def _listed(name: str, direct: Sequence[Amender], followed: Mapping[str, WalkResult], more: int) -> AmendmentsOf:
    best: dict[str, tuple[Entry, tuple[Step, ...]]] = {}
    for amending in direct:
        walk = followed.get(amending.id)
        for entry in walk.controlling if walk is not None else ():
            path = _path(amending, walk, entry.id) if walk is not None else ()
            if entry.id != name and (entry.id not in best or len(path) < len(best[entry.id][1])):
                best[entry.id] = entry, path
    ordered = sorted(best.values(), key=lambda pair: (-pair[0].time, -pair[0].order, pair[0].id))
    return AmendmentsOf(tuple(ordered[:AMENDMENTS_MAX]), more + max(0, len(ordered) - AMENDMENTS_MAX))


def _path(amending: Amender, walk: WalkResult, target: str) -> tuple[Step, ...]:
    first = Step(id=amending.id, rule=amending.rule, scope=amending.scope, effect="amend")
    return (first, *(Step(id=one, rule=rule, scope=scope) for one, rule, scope in walk.path(target)))
