"""From ranked lists to scores: each question judged, then all of them, then hop by hop.

Promise: pure. A question that a system cannot be asked (it does not apply) counts as a failure.
"""

from collections.abc import Collection as Some
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from benchmarks.paper.measures import Above, Share, answer_of, ignored, inclusion, keeps_case, rank, recall, share
from benchmarks.paper.sets import Question
from stream_car.core.documents import Document

CUTS = (5, 10, 20)  # of Tables 5 and 6


class Judged(Struct, frozen=True, kw_only=True):
    """One answer. `own` is the set's own scorer: inclusion, or where the set has answers tca.py."""

    id: str
    hop: str
    tca: bool
    own: bool
    included: bool
    recall: float
    ignored: tuple[str, ...] = ()
    accurate: bool | None = None
    provenance: float | None = None
    rank: int | None = None
    at: tuple[bool, ...] = ()  # inclusion at each of `CUTS`


class Scores(Struct, frozen=True, kw_only=True):
    """What a system scores over some questions; `None` where a set has nothing to judge it by."""

    n: int
    tca: Share
    own: Share
    included: Share
    recall: Share
    accurate: Share | None = None
    provenance: Share | None = None
    at: tuple[Share, ...] = ()
    mean_rank: float | None = None
    median_rank: float | None = None


class Judge:
    """Judges answers to the questions of one set."""

    def __init__(self, documents: Mapping[str, Document], above: Above, k: int) -> None:
        self.documents = documents
        self.above = above
        self.k = k

    def judged(self, question: Question, ranked: Sequence[str], *, by_case: bool = False) -> Judged:
        """What is to be said of one ranked list.

        The own scorer's answer is read off what is in force in the anchor's scope, by all edges or by the case's.
        """
        top = list(dict.fromkeys(ranked))[: self.k]
        passed = ignored(top, self.above)
        included = inclusion(question.gold, top)
        accurate = None
        own = included
        provenance = None
        if question.answer is not None:
            accurate = self._answer(question, top, question.case if by_case else self.above) == question.answer
            own = accurate and keeps_case(top, question.case)
            provenance = recall(question.chain, top)
        return Judged(
            id=question.id,
            hop=question.hop,
            tca=included and not passed,
            own=own,
            included=included,
            recall=recall(question.gold, top),
            ignored=passed,
            accurate=accurate,
            provenance=provenance,
            rank=rank(question.gold, ranked),
            at=tuple(inclusion(question.gold, ranked[:cut]) for cut in CUTS),
        )

    def _answer(self, question: Question, top: Sequence[str], superseded: Some[str]) -> str:
        scope = self.documents[question.anchor[0]].scope
        here = [self.documents[name] for name in top if name in self.documents]
        return answer_of({one.type for one in here if one.scope == scope and one.id not in superseded})


def scores(judged: Sequence[Judged]) -> Scores:
    """The means over some questions, and where every list holds its gold the ranks."""
    ranks = sorted(one.rank for one in judged if one.rank is not None)
    is_whole = bool(ranks) and len(ranks) == len(judged)
    return Scores(
        n=len(judged),
        tca=share([one.tca for one in judged]),
        own=share([one.own for one in judged]),
        included=share([one.included for one in judged]),
        recall=share([one.recall for one in judged]),
        accurate=_given(one.accurate for one in judged),
        provenance=_given(one.provenance for one in judged),
        at=tuple(share([one.at[place] for one in judged]) for place in range(len(CUTS))),
        mean_rank=sum(ranks) / len(ranks) if is_whole else None,
        median_rank=_median(ranks) if is_whole else None,
    )


def by_hop(judged: Sequence[Judged]) -> dict[str, Scores]:
    """The scores of each hop; none where the set has only one."""
    hops = sorted({one.hop for one in judged})
    return {hop: scores([one for one in judged if one.hop == hop]) for hop in hops} if len(hops) > 1 else {}


def _given(figures: Iterable[float | None]) -> Share | None:
    known = [figure for figure in figures if figure is not None]
    return share(known) if known else None


def _median(ordered: Sequence[int]) -> float:
    half = len(ordered) // 2
    return float(ordered[half]) if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
