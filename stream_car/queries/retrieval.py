"""From a question to the anchors that an answer is made of, and what is believed of each.

Promise: the anchors that are looked at, and their order, follow from Stage 1's scores and from what
Stage 2 finds, by `ranking.grouping` alone; so whoever has kept the gists can tell without reading
whether new scores lead elsewhere. Cost: one search, and one round of walks for every ten anchors.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.walk import Walked
from stream_car.ports import AnchorIndex
from stream_car.queries.answers import Answer, Plausible
from stream_car.queries.assembly import listed
from stream_car.queries.snapshot import Reader
from stream_car.ranking.anchor_order import STEP, Course, Gist, Hit, Looking, by_scope, course

SEARCHED_MAX = 4000  # anchors asked for where many are not part of the corpus
SCOPES_MAX = 10  # plausible scopes that an answer names
PLAUSIBLE = 0.01  # a scope less likely is not named
UNSCOPED = ""  # stands for the anchors that are in no scope


class Asked(Struct, frozen=True):
    """A question with all that its answer depends on, the input apart."""

    text: str
    k: int
    depth: int
    as_of: int | None = None
    budget: int | None = None


class Looked(Struct, frozen=True):
    """The anchors looked at, with their walks; `is_stopped` where the budget ended it."""

    course: Course
    walks: dict[str, Walked]
    is_stopped: bool


async def look(reader: Reader, index: AnchorIndex, asked: Asked, *, moved: float) -> Looked:
    """Walk from anchors until no further one could enter the answer, or the depth or the budget is reached."""
    wanted = asked.depth
    while True:
        hits = await reader.search(index, asked.text, min(wanted, SEARCHED_MAX))
        looked = await _walked(reader, hits, asked, moved)
        found = len(looked.course.looked) + len(looked.course.left)
        is_enough = looked.course.settled or looked.is_stopped or found >= asked.depth
        if is_enough or len(hits) < wanted or wanted >= SEARCHED_MAX:
            return looked
        wanted *= 4


async def _walked(reader: Reader, hits: Sequence[Hit], asked: Asked, moved: float) -> Looked:
    walks: dict[str, Walked] = {}
    step = STEP if asked.budget is None else 1  # a budget is counted after every anchor
    steps = course(hits, k=asked.k, depth=asked.depth, moved=moved, step=step)
    gists: Mapping[str, Gist | None] | None = None
    is_stopped = False
    while True:
        try:
            batch = steps.send(gists)
        except StopIteration as stop:
            return Looked(stop.value, walks, is_stopped)
        is_stopped = asked.budget is not None and bool(walks) and reader.lookups >= asked.budget
        if is_stopped:
            gists = None
            continue
        found = dict(zip(batch, await reader.walk(batch), strict=True))
        walks |= {name: walk for name, walk in found.items() if walk is not None}
        gists = {name: gist_of(walk) if walk is not None else None for name, walk in found.items()}


def gist_of(walk: Walked) -> Gist:
    """What ranking needs to know of a walk."""
    documents = tuple(entry.id for entry in walk.controlling)
    return Gist(walk.anchor, not walk.is_active, documents, tuple(walk.held.scopes))


def followed(steps: Looking, gists: Mapping[str, Gist | None]) -> Course | None:
    """Where this course leads by gists that are known; `None` where it asks for others."""
    try:
        batch = next(steps)
        while gists.keys() >= set(batch):
            batch = steps.send({name: gists[name] for name in batch})
    except StopIteration as stop:
        reached: Course = stop.value
        return reached
    return None


class Chosen(Struct, frozen=True):
    """What fits into an answer: documents, the walks that are shown, and those whose documents are all there."""

    results: tuple[str, ...]
    shown: tuple[Walked, ...]
    covered: tuple[Walked, ...]


def chosen(walks: Sequence[Walked], k: int) -> Chosen:
    """The first `k` controlling documents in the order of these walks."""
    results: dict[str, None] = {}
    shown: list[Walked] = []
    covered = 0
    is_prefix = True
    passed: set[str] = set()
    for walk in walks:
        new = [entry.id for entry in walk.controlling if entry.id not in results]
        if len(results) == k and new:
            break
        if new or walk.anchor not in passed:
            shown.append(walk)
        room = k - len(results)
        results.update(dict.fromkeys(new[:room]))
        passed |= {*walk.closure, *results}
        is_prefix = is_prefix and len(new) <= room and not walk.controlling_more
        covered += is_prefix
    return Chosen(tuple(results), tuple(listed(walk, results) for walk in shown), tuple(walks[:covered]))


def believed(answer: Answer, course: Course) -> Answer:
    """The answer with the scores and beliefs of a course that looked at its anchors, in its order."""
    covered = frozenset(answer.certificate.covered)
    told = {gist.anchor: (hit.score, belief) for (hit, gist), belief in zip(course.looked, course.beliefs, strict=True)}
    groups = tuple(
        replace(group, score=told[group.anchor.id][0], belief=_rounded(told[group.anchor.id][1]))
        for group in answer.groups
    )
    coverage = sum(belief for anchor, (_, belief) in told.items() if anchor in covered)
    certificate = replace(answer.certificate, coverage=_rounded(coverage))
    return replace(answer, groups=groups, certificate=certificate, scopes=_plausible(course, covered))


def _plausible(course: Course, covered: frozenset[str]) -> tuple[Plausible, ...]:
    told = [pair for pair in zip(course.looked, course.beliefs, strict=True) if pair[0][1].anchor in covered]
    part = replace(course, looked=tuple(looked for looked, _ in told), beliefs=tuple(belief for _, belief in told))
    coverage = by_scope(part, UNSCOPED)
    likely = list(by_scope(course, UNSCOPED).items())[:SCOPES_MAX]
    return tuple(
        Plausible(scope=scope, belief=_rounded(belief), coverage=_rounded(coverage.get(scope, 0.0)))
        for scope, belief in likely
        if belief >= PLAUSIBLE
    )


def _rounded(belief: float) -> float:
    return round(belief, 4)
