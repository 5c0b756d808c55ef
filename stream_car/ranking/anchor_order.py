"""Which anchors are looked at, in which order their groups are told, and how much each is believed.

A question leaves open which matter it means; a score is the logarithm of the odds that an anchor's is meant.
People ask about what changed: a matter in which something was superseded is `exp(moved)` times likelier
to be meant than one that stands. So relevance alone decides as long as its lead is larger than that, and a
superseded anchor goes first where relevance cannot tell it from its rivals.

Promise: pure. An anchor that is not looked at could not have brought a document into the answer, whatever
was found at it, unless the caller stopped early. Cost: O(n log n) a step of ten anchors.
"""

from collections.abc import Generator, Mapping, Sequence
from math import exp, expm1, log1p

from msgspec import Struct

STEP = 10  # anchors looked at together


class AnchorSummary(Struct, frozen=True, gc=False):
    """What ranking needs to know of an anchor: whether something supersedes it, and what controls it."""

    anchor: str
    is_superseded: bool
    documents: tuple[str, ...]
    scopes: tuple[str, ...] = ()


class Hit(Struct, frozen=True, gc=False):
    """An anchor as Stage 1 proposes it; its score is in nats."""

    id: str
    score: float


class AnchorPlan(Struct, frozen=True):
    """The anchors that were looked at, in the order in which they are told, and those that were left."""

    examined: tuple[tuple[Hit, AnchorSummary], ...]
    remaining: tuple[Hit, ...]
    is_settled: bool  # nothing that was left could have entered the answer
    probabilities: tuple[float, ...]  # of those looked at, in the same order; what they lack of 1 is with those left


PlanSteps = Generator[list[str], Mapping[str, AnchorSummary | None] | None, AnchorPlan]


def plan_anchors(
    proposed: Sequence[Hit], *, k: int, depth: int, superseded_bonus: float, step: int = STEP
) -> PlanSteps:
    """Yields anchors to look at, `step` at a time and best first, and is sent what was found; `None` ends it.

    A gist of `None` stands for an anchor that is not part of the corpus.
    """
    here: list[tuple[Hit, AnchorSummary]] = []
    at = 0
    settled = False
    while at < len(proposed) and len(here) < depth:
        if settled := is_settled(here, proposed[at].score, k=k, superseded_bonus=superseded_bonus):
            break
        batch = proposed[at : at + min(step, depth - len(here))]
        found = yield [one.id for one in batch]
        if found is None:
            break
        at += len(batch)
        here += [(one, gist) for one in batch if (gist := found[one.id]) is not None]
    here.sort(key=lambda pair: -_total_score(pair, superseded_bonus))  # stable: equals stay in the order of Stage 1
    left = tuple(proposed[at : at + depth - len(here)])
    merits = [_total_score(pair, superseded_bonus) for pair in here]
    expected = _expected(here, superseded_bonus)
    unseen = [hit.score + expected for hit in left]
    return AnchorPlan(tuple(here), left, settled, probabilities(merits, unseen))


def is_settled(here: Sequence[tuple[Hit, AnchorSummary]], score: float, *, k: int, superseded_bonus: float) -> bool:
    """Whether no anchor of this score or less can bring a document into the first `k`."""
    found: set[str] = set()
    for pair in sorted(here, key=lambda pair: -_total_score(pair, superseded_bonus)):
        if _total_score(pair, superseded_bonus) < score + superseded_bonus:
            return False
        found.update(pair[1].documents)
        if len(found) >= k:
            return True
    return False


def _total_score(pair: tuple[Hit, AnchorSummary], superseded_bonus: float) -> float:
    return pair[0].score + (superseded_bonus if pair[1].is_superseded else 0.0)


def _expected(here: Sequence[tuple[Hit, AnchorSummary]], superseded_bonus: float) -> float:
    """What an anchor not looked at has in its favour, if as many of them moved as of the others."""
    share = sum(gist.is_superseded for _, gist in here) / (len(here) or 1)
    return log1p(share * expm1(superseded_bonus))


def probabilities(merits: Sequence[float], others: Sequence[float]) -> tuple[float, ...]:
    """The probability of each that it is the one meant (Definition 8), if one of all these is."""
    top = max([*merits, *others], default=0.0)
    odds = [exp(merit - top) for merit in merits]
    total = sum(odds) + sum(exp(other - top) for other in others)
    return tuple(one / total for one in odds)


def by_scope(course: AnchorPlan, unnamed: str) -> dict[str, float]:
    """The posterior over scopes, likeliest first: an anchor in several is shared evenly among them."""
    found: dict[str, float] = {}
    for (_, gist), belief in zip(course.examined, course.probabilities, strict=True):
        for scope in gist.scopes or (unnamed,):
            found[scope] = found.get(scope, 0.0) + belief / (len(gist.scopes) or 1)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))
