"""From a question to the anchors that an answer is made of, and what is believed of each.

Promise: the anchors that are looked at, and their order, follow from Stage 1's scores and from what
Stage 2 finds, by `ranking.grouping` alone; so whoever has kept the gists can tell without reading
whether new scores lead elsewhere. Cost: one search, and one round of walks for every ten anchors.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.walk import WalkResult
from stream_car.ports import AnchorIndex
from stream_car.queries.answers import Answer, Plausible
from stream_car.queries.assembly import with_limited_list
from stream_car.queries.snapshot import Snapshot
from stream_car.ranking.anchor_order import STEP, AnchorPlan, AnchorSummary, Hit, PlanSteps, by_scope, plan_anchors

SEARCHED_MAX = 4000  # anchors asked for where many are not part of the corpus
SCOPES_MAX = 10  # plausible scopes that an answer names
PLAUSIBLE = 0.01  # a scope less likely is not named
UNSCOPED = ""  # stands for the anchors that are in no scope


class Question(Struct, frozen=True):
    """A question with all that its answer depends on, the input apart."""

    text: str
    k: int
    depth: int
    as_of: int | None = None
    budget: int | None = None


class Retrieved(Struct, frozen=True):
    """The anchors looked at, with their walks; `is_over_budget` where the budget ended it."""

    plan: AnchorPlan
    walks: dict[str, WalkResult]
    is_over_budget: bool


async def retrieve(reader: Snapshot, index: AnchorIndex, question: Question, *, superseded_bonus: float) -> Retrieved:
    """Walk from anchors until no further one could enter the answer, or the depth or the budget is reached."""
    wanted = question.depth
    while True:
        hits = await reader.search(index, question.text, min(wanted, SEARCHED_MAX))
        looked = await _walked(reader, hits, question, superseded_bonus)
        found = len(looked.plan.examined) + len(looked.plan.remaining)
        is_enough = looked.plan.is_settled or looked.is_over_budget or found >= question.depth
        if is_enough or len(hits) < wanted or wanted >= SEARCHED_MAX:
            return looked
        wanted *= 4


async def _walked(reader: Snapshot, hits: Sequence[Hit], question: Question, superseded_bonus: float) -> Retrieved:
    walks: dict[str, WalkResult] = {}
    step = STEP if question.budget is None else 1  # a budget is counted after every anchor
    steps = plan_anchors(hits, k=question.k, depth=question.depth, superseded_bonus=superseded_bonus, step=step)
    gists: Mapping[str, AnchorSummary | None] | None = None
    is_stopped = False
    while True:
        try:
            batch = steps.send(gists)
        except StopIteration as stop:
            return Retrieved(stop.value, walks, is_stopped)
        is_stopped = question.budget is not None and bool(walks) and reader.lookups >= question.budget
        if is_stopped:
            gists = None
            continue
        found = dict(zip(batch, await reader.walk(batch), strict=True))
        walks |= {name: walk for name, walk in found.items() if walk is not None}
        gists = {name: summarize(walk) if walk is not None else None for name, walk in found.items()}


def summarize(walk: WalkResult) -> AnchorSummary:
    """What ranking needs to know of a walk."""
    documents = tuple(entry.id for entry in walk.controlling)
    return AnchorSummary(walk.anchor, not walk.is_active, documents, tuple(walk.document.scopes))


def replay_plan(steps: PlanSteps, summaries: Mapping[str, AnchorSummary | None]) -> AnchorPlan | None:
    """Where this course leads by gists that are known; `None` where it asks for others."""
    try:
        batch = next(steps)
        while summaries.keys() >= set(batch):
            batch = steps.send({name: summaries[name] for name in batch})
    except StopIteration as stop:
        reached: AnchorPlan = stop.value
        return reached
    return None


class Selected(Struct, frozen=True):
    """What fits into an answer: documents, the walks that are shown, and those whose documents are all there."""

    results: tuple[str, ...]
    shown: tuple[WalkResult, ...]
    covered: tuple[WalkResult, ...]


def select(walks: Sequence[WalkResult], k: int) -> Selected:
    """The first `k` controlling documents in the order of these walks."""
    results: dict[str, None] = {}
    shown: list[WalkResult] = []
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
    return Selected(tuple(results), tuple(with_limited_list(walk, results) for walk in shown), tuple(walks[:covered]))


def with_probabilities(answer: Answer, plan: AnchorPlan) -> Answer:
    """The answer with the scores and beliefs of a course that looked at its anchors, in its order."""
    covered = frozenset(answer.certificate.covered)
    told = {
        gist.anchor: (hit.score, belief) for (hit, gist), belief in zip(plan.examined, plan.probabilities, strict=True)
    }
    groups = tuple(
        replace(group, score=told[group.anchor.id][0], belief=_rounded(told[group.anchor.id][1]))
        for group in answer.groups
    )
    coverage = sum(belief for anchor, (_, belief) in told.items() if anchor in covered)
    certificate = replace(answer.certificate, coverage=_rounded(coverage))
    return replace(answer, groups=groups, certificate=certificate, scopes=_plausible(plan, covered))


def _plausible(plan: AnchorPlan, covered: frozenset[str]) -> tuple[Plausible, ...]:
    told = [pair for pair in zip(plan.examined, plan.probabilities, strict=True) if pair[0][1].anchor in covered]
    part = replace(
        plan, examined=tuple(looked for looked, _ in told), probabilities=tuple(belief for _, belief in told)
    )
    coverage = by_scope(part, UNSCOPED)
    likely = list(by_scope(plan, UNSCOPED).items())[:SCOPES_MAX]
    return tuple(
        Plausible(scope=scope, belief=_rounded(belief), coverage=_rounded(coverage.get(scope, 0.0)))
        for scope, belief in likely
        if belief >= PLAUSIBLE
    )


def _rounded(belief: float) -> float:
    return round(belief, 4)
