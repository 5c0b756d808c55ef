"""From a question to the anchors of its answer, and the probability that each is the one meant.

Promise: which anchors are examined, and in which order, follows from the scores of Stage 1 and the results of
Stage 2 alone, by `ranking.anchor_order`. So anyone who has kept the summaries of the anchors can tell, without
reading, whether new scores lead to another answer. Cost: one search, and one round of walks per ten anchors.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.scope_names import scope_parts
from stream_car.core.walk import WalkResult
from stream_car.ports import AnchorIndex, Pairs, YieldControl
from stream_car.queries.answers import Answer, PlausibleScope
from stream_car.queries.assembly import with_limited_list
from stream_car.queries.limits import DEPTH_MAX
from stream_car.queries.snapshot import Snapshot
from stream_car.ranking.anchor_order import (
    STEP,
    AnchorPlan,
    AnchorSummary,
    Hit,
    PlanSteps,
    add_shares,
    most_probable,
    plan_anchors,
)

SEARCHED_MAX = 4 * DEPTH_MAX  # hits requested if many of them are not part of the corpus
SCOPES_MAX = 10  # plausible scopes that an answer names
PLAUSIBLE = 0.01  # scopes with a lower probability are not named
UNSCOPED = ""  # represents the anchors without a scope


class Question(Struct, frozen=True):
    """A question with everything that its answer depends on, apart from the input."""

    text: str
    k: int
    depth: int
    as_of: int | None = None
    budget: int | None = None
    attributes: bool = False
    within: Pairs = ()  # sorted, as the rules spell them


class Retrieval(Struct, frozen=True):
    """The examined anchors and their walks. `is_over_budget`: the budget ended the retrieval."""

    plan: AnchorPlan
    walks: dict[str, WalkResult]
    is_over_budget: bool


async def retrieve(snapshot: Snapshot, index: AnchorIndex, question: Question, *, superseded_bonus: float) -> Retrieval:
    """Walk from anchors until no other anchor can enter the answer, or until the depth or the budget is reached."""
    search_depth = question.depth
    while True:
        hits = await snapshot.search(index, question.text, min(search_depth, SEARCHED_MAX), question.within)
        retrieval = await _walk_anchors(snapshot, hits, question, superseded_bonus)
        plan = retrieval.plan
        is_deep_enough = len(plan.examined) + len(plan.remaining) >= question.depth
        is_exhausted = len(hits) < search_depth or search_depth >= SEARCHED_MAX
        if plan.is_settled or retrieval.is_over_budget or is_deep_enough or is_exhausted:
            return retrieval
        search_depth *= 4


async def _walk_anchors(
    snapshot: Snapshot, hits: Sequence[Hit], question: Question, superseded_bonus: float
) -> Retrieval:
    walks: dict[str, WalkResult] = {}
    step = STEP if question.budget is None else 1  # the budget is checked after every anchor
    steps = plan_anchors(hits, k=question.k, depth=question.depth, superseded_bonus=superseded_bonus, step=step)
    summaries: Mapping[str, AnchorSummary | None] | None = None
    is_over_budget = False
    while True:
        try:
            batch = steps.send(summaries)
        except StopIteration as stop:
            return Retrieval(stop.value, walks, is_over_budget)
        is_over_budget = question.budget is not None and bool(walks) and snapshot.lookups >= question.budget
        if is_over_budget:
            summaries = None  # ends the plan
            continue
        walked = zip(batch, await snapshot.walk(batch), strict=True)
        results = {
            name: walk if walk is not None and is_within(walk, question.within) else None for name, walk in walked
        }
        walks |= {name: walk for name, walk in results.items() if walk is not None}
        summaries = {name: summarize(walk) if walk is not None else None for name, walk in results.items()}


def is_within(walk: WalkResult, pairs: Pairs) -> bool:
    """Return whether the anchor of a walk is in a scope that has all these pairs."""
    return not pairs or any(set(pairs) <= set(scope_parts(scope)) for scope in walk.document.scopes)


def summarize(walk: WalkResult) -> AnchorSummary:
    """What ranking needs to know of a walk."""
    documents = tuple(entry.id for entry in walk.controlling)
    return AnchorSummary(walk.anchor, not walk.is_active, documents, tuple(walk.document.scopes))


def replay_plan(steps: PlanSteps, summaries: Mapping[str, AnchorSummary | None]) -> AnchorPlan | None:
    """Run a plan on known summaries; `None` if it asks for an anchor that is not among them."""
    try:
        batch = next(steps)
        while summaries.keys() >= set(batch):
            batch = steps.send({name: summaries[name] for name in batch})
    except StopIteration as stop:
        plan: AnchorPlan = stop.value
        return plan
    return None


class SelectedWalks(Struct, frozen=True):
    """What fits into an answer.

    `results`: ids of the controlling documents, best first. `shown`: the walks that become groups. `covered`: the
    walks all of whose controlling documents are among the results.
    """

    results: tuple[str, ...]
    shown: tuple[WalkResult, ...]
    covered: tuple[WalkResult, ...]


def select(walks: Sequence[WalkResult], k: int) -> SelectedWalks:
    """The first `k` controlling documents in the order of these walks."""
    results: dict[str, None] = {}
    shown: list[WalkResult] = []
    covered = 0
    is_covered = True
    explained: set[str] = set()  # closures and results so far; an anchor in them that adds no result adds no group
    for walk in walks:
        new = [entry.id for entry in walk.controlling if entry.id not in results]
        if len(results) == k and new:
            break
        if new or walk.anchor not in explained:
            shown.append(walk)
        room = k - len(results)
        results.update(dict.fromkeys(new[:room]))
        explained |= {*walk.closure, *results}
        is_covered = is_covered and len(new) <= room and not walk.controlling_more
        covered += is_covered  # only a prefix of the walks counts
    return SelectedWalks(
        tuple(results), tuple(with_limited_list(walk, results) for walk in shown), tuple(walks[:covered])
    )


async def with_probabilities(answer: Answer, plan: AnchorPlan, rest: YieldControl) -> Answer:
    """The answer with the scores and probabilities of a plan that examined its anchors in the same order."""
    covered = frozenset(answer.certificate.covered)
    by_anchor = {
        summary.anchor: (hit.score, probability)
        for (hit, summary), probability in zip(plan.examined, plan.probabilities, strict=True)
    }
    groups = tuple(
        replace(group, score=score, probability=_round(probability))
        for group in answer.groups
        for score, probability in [by_anchor[group.anchor.id]]
    )
    coverage = sum((probability for anchor, (_, probability) in by_anchor.items() if anchor in covered), 0.0)
    certificate = replace(answer.certificate, coverage=_round(coverage))
    return replace(answer, groups=groups, certificate=certificate, scopes=await _plausible_scopes(plan, covered, rest))


async def _plausible_scopes(
    plan: AnchorPlan, covered: frozenset[str], rest: YieldControl
) -> tuple[PlausibleScope, ...]:
    """The scopes that the question may mean, most likely first (Definition 8)."""
    posterior: dict[str, float] = {}
    coverage: dict[str, float] = {}
    anchors = [(summary, share) for (_, summary), share in zip(plan.examined, plan.probabilities, strict=True)]
    for at in range(0, len(anchors), STEP):
        if at:
            await rest()
        batch = anchors[at : at + STEP]
        add_shares(posterior, batch, UNSCOPED)
        add_shares(coverage, [anchor for anchor in batch if anchor[0].anchor in covered], UNSCOPED)
    return tuple(
        PlausibleScope(scope=scope, probability=_round(probability), coverage=_round(coverage.get(scope, 0.0)))
        for scope, probability in most_probable(posterior, SCOPES_MAX)
        if probability >= PLAUSIBLE
    )


def _round(probability: float) -> float:
    return round(probability, 4)
