"""The engine under test: queried as any user queries it, and traced while it answers.

Promise: one new engine per set, with the shipped rule pack and default settings; every document counts whatever its
date. The engine gets only the words of a question; gold is used afterwards, to explain what went wrong.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import stream_car
from benchmarks.paper.sets import Question
from stream_car.codec import split_documents
from stream_car.ports import Encoder
from stream_car.queries.answers import Answer
from stream_car.queries.limits import DEPTH, DEPTH_MAX, K_MAX
from stream_car.ranking.lexical import LexicalRanker


class Delta(Struct, frozen=True, kw_only=True):
    """Definition 4 for one question, by BM25 scores: the best document against the best that controls it."""

    anchor: str
    score: float
    controlling: float
    above: int  # `N+` of Corollary 1: the number of documents that outscore the gold

    @property
    def delta(self) -> float:
        """`s(q, d1) - max s(q, c)`; zero if the most relevant document is in force."""
        return self.score - self.controlling


class AnswerTrace(Struct, frozen=True, kw_only=True):
    """How an answer came about: the `place` of the gold anchor in Stage 1, and whether its chain is in the answer."""

    id: str
    place: int | None
    identified: bool
    anchors: int  # groups returned completely
    lookups: int
    rounds: int
    phi: float  # Definition 5, of the gold anchor's scope
    kappa: float
    delta: Delta


class BenchEngine:
    """An engine on the documents of one set."""

    def __init__(self, folder: Path, domain: str, encoder: Encoder | None = None) -> None:
        self.engine = stream_car.open(None, rules=[domain], future="apply", encoder=encoder)
        with (folder / "documents.jsonl").open("rb") as stream:
            self.engine.publish(split_documents(stream))
        self.engine.settle()

    def close(self) -> None:
        """Close the engine and delete its files."""
        self.engine.close()

    def answer(self, text: str, limit: int | None) -> Answer:
        """Query the engine; without a limit, for as many documents as it allows."""
        if limit is None:
            return self.engine.query(text, k=K_MAX, depth=DEPTH_MAX)
        return self.engine.query(text, k=limit)

    def rank(self, text: str, limit: int | None) -> list[str]:
        """Return the controlling documents of the answer, best first."""
        return [document.id for document in self.answer(text, limit).results]

    def trace(self, question: Question, k: int, lexical: LexicalRanker) -> AnswerTrace:
        """Answer a question and trace how the answer came about."""
        answer = self.answer(question.text, k)
        anchors = [hit.id for hit in self.engine.search(question.text, DEPTH)]
        scope = self.engine.check(question.anchor).certificate
        case = (*question.anchor, *question.chain, *question.gold)
        return AnswerTrace(
            id=question.id,
            place=next((place for place, name in enumerate(anchors, 1) if name in question.anchor), None),
            identified=any(group.anchor.id in case for group in answer.groups),
            anchors=len(answer.certificate.covered),
            lookups=answer.certificate.lookups,
            rounds=answer.certificate.rounds,
            phi=scope.phi if scope is not None else 1.0,
            kappa=scope.kappa if scope is not None else 1.0,
            delta=self.delta(question, lexical),
        )

    def delta(self, question: Question, lexical: LexicalRanker) -> Delta:
        """Measure how much lower what controls the most relevant document scores than the document itself."""
        scores = lexical.scores(question.text)
        top = max(scores)
        best = lexical.ids[scores.index(top)]
        gold = lexical.best(scores, question.gold)
        return Delta(
            anchor=best,
            score=top,
            controlling=lexical.best(scores, self._controlling(best)),
            above=sum(score > gold for score in scores),
        )

    def _controlling(self, name: str) -> list[str]:
        (resolution,) = self.engine.resolve([name])
        return [item.document.id for group in resolution.groups for item in group.controlling]


class Factors(Struct, frozen=True, kw_only=True):
    """Proposition 1 as measured: `TCA = anchor x identified x frontier`, with the theory's bound for the middle.

    `identified` is the share of answers that contain the right chain, given the anchor. `phi` is the mean of
    Definition 5, which bounds that share for systems without rules. `otherwise` is the share of right answers whose
    anchor was not found.
    """

    anchor: float
    identified: float
    frontier: float
    phi: float
    kappa: float
    otherwise: float
    delta: float  # mean over questions
    apart: float  # share of questions with a delta above zero
    lookups: float  # means over questions
    rounds: float
    anchors: float


def factors(traces: Sequence[AnswerTrace], right: Collection[str]) -> Factors:
    """Factorize over some questions; `right` are the ids of those answered rightly (Theorem 4)."""
    anchored = [trace for trace in traces if trace.place is not None]
    identified = [trace for trace in anchored if trace.identified]
    solved = [trace for trace in identified if trace.id in right]
    return Factors(
        anchor=_share(anchored, traces),
        identified=_share(identified, anchored),
        frontier=_share(solved, identified),
        phi=_mean([trace.phi for trace in traces]),
        kappa=_mean([trace.kappa for trace in traces]),
        otherwise=(len(set(right)) - len(solved)) / len(traces) if traces else 0.0,
        delta=_mean([trace.delta.delta for trace in traces]),
        apart=_mean([float(trace.delta.delta > 0) for trace in traces]),
        lookups=_mean([trace.lookups for trace in traces]),
        rounds=_mean([trace.rounds for trace in traces]),
        anchors=_mean([trace.anchors for trace in traces]),
    )


def reason(question: Question, trace: AnswerTrace, ignored: Sequence[str], same_words: Mapping[str, int]) -> str:
    """Say why an answer is wrong."""
    others = same_words[question.text] - 1
    shared = f"; {others} other question{'s have' if others > 1 else ' has'} the same words" if others else ""
    if trace.place is None:
        return f"its anchor is not among the first {DEPTH} of Stage 1{shared}"
    if not trace.identified:
        return (
            f"its anchor is at place {trace.place} of Stage 1, after unrelated documents that fill the answer{shared}"
        )
    if ignored:
        return f"{ignored[0]} is superseded, and nothing in the answer supersedes it"
    return "the answer does not contain everything that controls its anchor"


def _share(part: Sequence[object], whole: Sequence[object]) -> float:
    return len(part) / len(whole) if whole else 0.0


def _mean(figures: Sequence[float]) -> float:
    return sum(figures) / len(figures) if figures else 0.0
