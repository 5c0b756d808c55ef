"""The measures of a ranked list, each with its definition.

Promise: pure; no measure knows which system returned the list.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import sqrt

from msgspec import Struct

Superseders = Mapping[str, frozenset[str]]  # superseded document -> all documents that supersede it
Z = 1.959963984540054  # 95 % of a normal distribution lie within this many standard deviations

ANSWERS: tuple[
    tuple[frozenset[str], str], ...
] = (  # the first one with a type in force counts (the paper's Appendix C)
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
    """Return the 95 % Wilson score interval of a share of `n`; for `n` = 0 it is 0 to 1."""
    if n == 0:
        return 0.0, 1.0
    scale = 1 + Z * Z / n
    middle = share + Z * Z / (2 * n)
    half = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def share(figures: Sequence[float]) -> Share:
    """Return the mean of figures and its interval."""
    mean = sum(figures) / len(figures) if figures else 0.0
    return Share(mean, *wilson(mean, len(figures)), len(figures))


def superseders(edges: Iterable[tuple[str, str]]) -> dict[str, frozenset[str]]:
    """Return Definition 1: all documents that supersede each old one, the transitive closure of `(old, new)`."""
    direct: dict[str, set[str]] = {}
    for old, new in edges:
        direct.setdefault(old, set()).add(new)
    return {old: _reachable(old, direct) for old in direct}


def _reachable(start: str, direct: Mapping[str, set[str]]) -> frozenset[str]:
    waiting, seen = [start], set[str]()
    while waiting:
        new = direct.get(waiting.pop(), set()) - seen
        seen |= new
        waiting += new
    return frozenset(seen)


def inclusion(gold: Collection[str], top: Collection[str]) -> bool:
    """Return Theorem 4 (i): whether all gold (controlling) documents are in the list."""
    return set(gold) <= set(top)


def ignored(top: Sequence[str], superseders: Superseders) -> tuple[str, ...]:
    """Return Theorem 4 (ii): listed documents that are superseded by documents none of which is listed."""
    listed = set(top)
    return tuple(name for name in top if superseders.get(name) and not superseders[name] & listed)


def tca(gold: Collection[str], top: Sequence[str], superseders: Superseders) -> bool:
    """Return TCA by Theorem 4: frontier inclusion, and no ignored superseder."""
    return inclusion(gold, top) and not ignored(top, superseders)


def answer_of(types: Collection[str]) -> str:
    """Return the answer that documents in force give: the first in Appendix C's order with a type among theirs."""
    return next((answer for kinds, answer in ANSWERS if not kinds.isdisjoint(types)), NO_ANSWER)


def keeps_case(top: Sequence[str], case: Mapping[str, str]) -> bool:
    """Return Definition 7 within one case: whether every listed document has its direct superseder listed."""
    listed = set(top)
    return all(case[name] in listed for name in top if name in case)


def recall(gold: Collection[str], top: Collection[str]) -> float:
    """Return the share of the gold documents that is listed: Recall@k or, for the chain of a case, ProvRec."""
    return len(set(gold) & set(top)) / len(set(gold)) if gold else 1.0


def rank(gold: Collection[str], ranked: Sequence[str]) -> int | None:
    """Return the rank of the first gold document, from 1, or `None` if the list has none."""
    return next((place for place, name in enumerate(ranked, 1) if name in gold), None)


def jaccard(first: Collection[str], second: Collection[str]) -> float:
    """Return the Jaccard coefficient of two sets of words: shared words divided by all words."""
    words = set(first) | set(second)
    return len(set(first) & set(second)) / len(words) if words else 0.0


def same_words_ceiling(questions: Iterable[tuple[str, Collection[str]]], k: int) -> float:
    """Return the share that can be right at most if the same words get the same `k` documents.

    Of questions `(words, gold)` with the same words, only those whose gold fits into `k` together can be right.
    """
    golds: dict[str, list[Collection[str]]] = {}
    for words, gold in questions:
        golds.setdefault(words, []).append(gold)
    total = sum(map(len, golds.values()))
    return sum(_fitting(sets, k) for sets in golds.values()) / total if total else 0.0


def _fitting(golds: Sequence[Collection[str]], k: int) -> int:
    """Count the sets that fit into `k` places, small ones first; an upper bound if sets overlap partly."""
    counts: dict[frozenset[str], int] = {}
    for gold in golds:
        counts[frozenset(gold)] = counts.get(frozenset(gold), 0) + 1
    right = used = 0
    for gold, count in sorted(counts.items(), key=lambda item: (len(item[0]) / item[1], item[1])):
        if used + len(gold) <= k:
            used += len(gold)
            right += count
    return right
