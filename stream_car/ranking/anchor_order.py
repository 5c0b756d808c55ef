"""Which anchors are examined, in which order their groups are listed, and how probable each is.

A query leaves open which matter it means. The score of an anchor is the logarithm of the odds that its matter
is meant. People ask about what changed: a matter in which something was superseded is `exp(superseded_bonus)`
times as likely to be meant as one in which nothing was. So relevance alone decides if its lead is larger than
that, and a superseded anchor comes first if relevance cannot separate it from its rivals.

Promise: pure. An anchor that is not examined could not have brought a document into the answer, whatever
controls it, unless the caller stopped early. Cost: O(n log n) per step of ten anchors.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from heapq import nsmallest
from math import exp, expm1, log1p

from msgspec import Struct

STEP = 10  # anchors examined together


class AnchorSummary(Struct, frozen=True, gc=False):
    """What ranking must know of an anchor: whether something supersedes it, and which documents control it."""

    anchor: str
    is_superseded: bool
    documents: tuple[str, ...]
    scopes: tuple[str, ...] = ()


class Hit(Struct, frozen=True, gc=False):
    """An anchor that Stage 1 proposes; its score is in nats."""

    id: str
    score: float


class AnchorPlan(Struct, frozen=True):
    """The anchors that were examined, in the order in which they are listed, and those that remain."""

    examined: tuple[tuple[Hit, AnchorSummary], ...]
    remaining: tuple[Hit, ...]
    is_settled: bool  # no remaining anchor could have changed the answer
    probabilities: tuple[float, ...]  # of those examined, in the same order; the remaining ones share the rest of 1


PlanSteps = Generator[list[str], Mapping[str, AnchorSummary | None] | None, AnchorPlan]


def plan_anchors(hits: Sequence[Hit], *, k: int, depth: int, superseded_bonus: float, step: int = STEP) -> PlanSteps:
    """Yield the anchors to examine, `step` at a time and best first; return the plan.

    The caller sends the summary of each, or `None` for an anchor that is not part of the corpus. To stop early, it
    sends `None` alone. At most `depth` anchors are examined; fewer, if the first `k` documents are settled before.
    """
    examined: list[tuple[Hit, AnchorSummary]] = []
    position = 0
    settled = False
    while position < len(hits) and len(examined) < depth:
        if settled := is_settled(examined, hits[position].score, k=k, superseded_bonus=superseded_bonus):
            break
        batch = hits[position : position + min(step, depth - len(examined))]
        summaries = yield [hit.id for hit in batch]
        if summaries is None:
            break
        position += len(batch)
        examined += [(hit, summary) for hit in batch if (summary := summaries[hit.id]) is not None]
    examined.sort(key=lambda anchor: -_total_score(anchor, superseded_bonus))  # stable: ties keep the order of Stage 1
    remaining = tuple(hits[position : position + depth - len(examined)])
    expected_bonus = _expected_bonus(examined, superseded_bonus)
    return AnchorPlan(
        tuple(examined),
        remaining,
        settled,
        probabilities(
            [_total_score(anchor, superseded_bonus) for anchor in examined],
            [hit.score + expected_bonus for hit in remaining],
        ),
    )


def is_settled(examined: Sequence[tuple[Hit, AnchorSummary]], score: float, *, k: int, superseded_bonus: float) -> bool:
    """Return whether no anchor with at most this score can bring a document into the first `k`."""
    documents: set[str] = set()
    for anchor in sorted(examined, key=lambda anchor: -_total_score(anchor, superseded_bonus)):
        if _total_score(anchor, superseded_bonus) < score + superseded_bonus:
            return False
        documents.update(anchor[1].documents)
        if len(documents) >= k:
            return True
    return False


def _total_score(anchor: tuple[Hit, AnchorSummary], superseded_bonus: float) -> float:
    hit, summary = anchor
    return hit.score + (superseded_bonus if summary.is_superseded else 0.0)


def _expected_bonus(examined: Sequence[tuple[Hit, AnchorSummary]], superseded_bonus: float) -> float:
    """Return the bonus of a remaining anchor in nats, if as many of them are superseded as of those examined."""
    superseded_share = sum(summary.is_superseded for _, summary in examined) / (len(examined) or 1)
    return log1p(superseded_share * expm1(superseded_bonus))


def probabilities(scores: Sequence[float], others: Sequence[float]) -> tuple[float, ...]:
    """Return for each score (nats) the probability that its matter is meant (Definition 8).

    Exactly one matter of `scores` and `others` is assumed to be meant.
    """
    top = max([*scores, *others], default=0.0)
    odds = [exp(score - top) for score in scores]
    total = sum(odds) + sum(exp(other - top) for other in others)
    return tuple(share / total for share in odds)


def add_shares(posterior: dict[str, float], anchors: Iterable[tuple[AnchorSummary, float]], unnamed: str) -> None:
    """Add anchors to a posterior over scopes (Definition 8).

    The probability of an anchor in several scopes is divided evenly among them; without a scope it goes to `unnamed`.
    """
    for summary, probability in anchors:
        scopes = summary.scopes or (unnamed,)
        share = probability / len(scopes)
        for scope in scopes:
            posterior[scope] = posterior.get(scope, 0.0) + share


def most_probable(posterior: Mapping[str, float], count: int) -> list[tuple[str, float]]:
    """Return the most probable scopes of a posterior."""
    return nsmallest(count, posterior.items(), key=lambda item: (-item[1], item[0]))
