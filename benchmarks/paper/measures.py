"""What is measured of a ranked list, each figure with its definition.

Promise: pure; nothing here knows which system made the list.
"""

from collections.abc import Collection as Some
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt

from msgspec import Struct

Above = Mapping[str, frozenset[str]]  # of each superseded document all that supersede it
Z = 1.959963984540054  # of a normal distribution 95 % lie within so many deviations

ANSWERS: tuple[tuple[frozenset[str], str], ...] = (  # the first with a type in force (the paper's Appendix C)
    (frozenset({"emergency_exception"}), "compliant"),
    (frozenset({"blackout_announced", "watchlist_added"}), "non_compliant"),
    (frozenset({"pre_clearance_approved"}), "active"),
    (frozenset({"blackout_lifted"}), "non_compliant"),
    (frozenset({"patch_released", "patch_superseded"}), "patched"),
    (frozenset({"workaround_issued"}), "mitigated"),
    (frozenset({"cve_reopened", "cve_disclosed"}), "vulnerable"),
    (frozenset({"ruling_overruled"}), "overruled"),
    (frozenset({"ruling_codified"}), "codified"),
    (frozenset({"ruling_issued", "ruling_affirmed"}), "good_law"),
)
NO_ANSWER = "requires_review"


class Share(Struct, frozen=True):
    """A mean of figures from 0 to 1 over `n` questions, with its 95 % Wilson interval."""

    value: float
    low: float
    high: float
    n: int


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % Wilson score interval of a share of `n`; of nothing nothing is known."""
    if n == 0:
        return 0.0, 1.0
    scale = 1 + Z * Z / n
    middle = share + Z * Z / (2 * n)
    half = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def share(figures: Sequence[float]) -> Share:
    """The mean and its interval."""
    mean = sum(figures) / len(figures) if figures else 0.0
    return Share(mean, *wilson(mean, len(figures)), len(figures))


def superseders(edges: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Definition 1: of each old document all that supersede it, the transitive closure of `(old, new)`."""
    direct: dict[str, set[str]] = {}
    for old, new in edges:
        direct.setdefault(old, set()).add(new)
    return {old: _reached(old, direct) for old in direct}


def _reached(start: str, direct: Mapping[str, set[str]]) -> frozenset[str]:
    todo, seen = [start], set[str]()
    while todo:
        fresh = direct.get(todo.pop(), set()) - seen
        seen |= fresh
        todo += fresh
    return frozenset(seen)


def inclusion(gold: Some[str], top: Some[str]) -> bool:
    """Theorem 4 (i): all of the gold (controlling) documents are in the list."""
    return set(gold) <= set(top)


def ignored(top: Sequence[str], above: Above) -> tuple[str, ...]:
    """Theorem 4 (ii): listed documents that are superseded while nothing listed supersedes them."""
    inside = set(top)
    return tuple(one for one in top if above.get(one) and not above[one] & inside)


def tca(gold: Some[str], top: Sequence[str], above: Above) -> bool:
    """TCA by Theorem 4: frontier inclusion, and no ignored superseder."""
    return inclusion(gold, top) and not ignored(top, above)


def answer_of(types: Some[str]) -> str:
    """The answer that documents in force give: the first of Appendix C's order whose type is among them."""
    return next((answer for kinds, answer in ANSWERS if not kinds.isdisjoint(types)), NO_ANSWER)


def keeps_case(top: Sequence[str], case: Mapping[str, str]) -> bool:
    """Definition 7 within one case: every listed document that it supersedes has its direct superseder listed."""
    inside = set(top)
    return all(case[one] in inside for one in top if one in case)


def recall(gold: Some[str], top: Some[str]) -> float:
    """Recall@k, and of a case's chain ProvRec: the share of these documents that is listed."""
    return len(set(gold) & set(top)) / len(set(gold)) if gold else 1.0


def rank(gold: Some[str], ranked: Sequence[str]) -> int | None:
    """The place of the first gold document, from 1; `None` where the list has none."""
    return next((place for place, one in enumerate(ranked, 1) if one in gold), None)


def jaccard(one: Some[str], other: Some[str]) -> float:
    """Jaccard's coefficient of two sets of words: shared by all."""
    words = set(one) | set(other)
    return len(set(one) & set(other)) / len(words) if words else 0.0


def same_words_ceiling(questions: Iterable[tuple[str, Some[str]]], k: int) -> float:
    """The share that can be right at best where the same words get the same `k` documents.

    Of questions `(words, gold)` with the same words only as many can be right as their gold fits into `k`.
    """
    golds: dict[str, list[Some[str]]] = {}
    for words, gold in questions:
        golds.setdefault(words, []).append(gold)
    total = sum(len(some) for some in golds.values())
    return sum(_fitting(some, k) for some in golds.values()) / total if total else 0.0


def _fitting(golds: Sequence[Some[str]], k: int) -> int:
    """How many sets fit into `k` places, the small ones first; an upper bound where they overlap partly."""
    counts: dict[frozenset[str], int] = {}
    for gold in golds:
        counts[frozenset(gold)] = counts.get(frozenset(gold), 0) + 1
    right = room = 0
    for gold, count in sorted(counts.items(), key=lambda item: (len(item[0]) / item[1], item[1])):
        if room + len(gold) <= k:
            room += len(gold)
            right += count
    return right
