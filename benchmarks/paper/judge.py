"""From ranked lists to scores: each question is judged, then scores are computed over all of them and by hop.

Promise: pure. If a system does not apply to a question, the question counts as failed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from benchmarks.paper.measures import Share, Superseders, answer_of, ignored, inclusion, keeps_case, rank, recall, share
from benchmarks.paper.sets import Question
from stream_car.core.documents import Document

CUTS = (5, 10, 20)  # of Tables 5 and 6


class Judgement(Struct, frozen=True, kw_only=True):
    """The judgement of one answer. `own` is that of the set's own scorer: inclusion or, with answers, tca.py."""

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
    """What a system scores on some questions. A figure is `None` if the set lacks the data for it."""

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

    def __init__(self, documents: Mapping[str, Document], superseders: Superseders, k: int) -> None:
        self.documents = documents
        self.superseders = superseders
        self.k = k

    def judge(self, question: Question, ranked: Sequence[str], *, by_case: bool = False) -> Judgement:
        """Judge one ranked list.

        The own scorer derives the answer from what is in force in the anchor's scope, by all edges or by the case's.
        """
        top = list(dict.fromkeys(ranked))[: self.k]
        ignored_superseders = ignored(top, self.superseders)
        is_included = inclusion(question.gold, top)
        is_accurate = None
        own = is_included
        provenance = None
        if question.answer is not None:
            superseded = question.case if by_case else self.superseders
            is_accurate = self._answer(question, top, superseded) == question.answer
            own = is_accurate and keeps_case(top, question.case)
            provenance = recall(question.chain, top)
        return Judgement(
            id=question.id,
            hop=question.hop,
            tca=is_included and not ignored_superseders,
            own=own,
            included=is_included,
            recall=recall(question.gold, top),
            ignored=ignored_superseders,
            accurate=is_accurate,
            provenance=provenance,
            rank=rank(question.gold, ranked),
            at=tuple(inclusion(question.gold, ranked[:cut]) for cut in CUTS),
        )

    def _answer(self, question: Question, top: Sequence[str], superseded: Collection[str]) -> str:
        scope = self.documents[question.anchor[0]].scope
        documents = [self.documents[name] for name in top if name in self.documents and name not in superseded]
        return answer_of({document.type for document in documents if document.scope == scope})


def scores(judgements: Sequence[Judgement]) -> Scores:
    """Return the means over some questions, and the ranks if every list contains its gold."""
    ranks = sorted(each.rank for each in judgements if each.rank is not None)
    has_ranks = bool(ranks) and len(ranks) == len(judgements)
    return Scores(
        n=len(judgements),
        tca=share([each.tca for each in judgements]),
        own=share([each.own for each in judgements]),
        included=share([each.included for each in judgements]),
        recall=share([each.recall for each in judgements]),
        accurate=_share_of_known(each.accurate for each in judgements),
        provenance=_share_of_known(each.provenance for each in judgements),
        at=tuple(share([each.at[index] for each in judgements]) for index in range(len(CUTS))),
        mean_rank=sum(ranks) / len(ranks) if has_ranks else None,
        median_rank=_median(ranks) if has_ranks else None,
    )


def by_hop(judgements: Sequence[Judgement]) -> dict[str, Scores]:
    """Return the scores of each hop; empty if the set has only one."""
    hops = sorted({each.hop for each in judgements})
    return {hop: scores([each for each in judgements if each.hop == hop]) for hop in hops} if len(hops) > 1 else {}


def _share_of_known(figures: Iterable[float | None]) -> Share | None:
    known = [figure for figure in figures if figure is not None]
    return share(known) if known else None


def _median(ordered: Sequence[int]) -> float:
    half = len(ordered) // 2
    return float(ordered[half]) if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2
