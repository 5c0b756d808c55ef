"""The engine under the bench: asked as anybody asks it, and looked at while it answers.

Promise: one fresh engine a set, the shipped rule pack, settings as shipped, every document counts whatever
its date. Nothing of a question but its words is handed over; gold is used afterwards, to say what went wrong.
"""

from collections.abc import Collection as Some
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import stream_car
from benchmarks.paper.sets import Question
from stream_car.codec import documents_in
from stream_car.ports import Encoder
from stream_car.queries.answers import Answer
from stream_car.queries.limits import DEPTH, DEPTH_MAX, K_MAX
from stream_car.ranking.lexical import LexicalRanker


class Delta(Struct, frozen=True, kw_only=True):
    """Definition 4 for one question, scores by BM25: the best document against the best that controls it."""

    anchor: str
    score: float
    controlling: float
    above: int  # `N+` of Corollary 1: how many documents outscore the gold

    @property
    def delta(self) -> float:
        """`s(q, d1) - max s(q, c)`; zero where what is most relevant is in force."""
        return self.score - self.controlling


class Seen(Struct, frozen=True, kw_only=True):
    """How an answer came about: `place` of the gold anchor in Stage 1, and whether its chain is in the answer."""

    id: str
    place: int | None
    identified: bool
    anchors: int  # groups returned whole
    lookups: int
    rounds: int
    phi: float  # Definition 5, of the gold anchor's scope
    kappa: float
    delta: Delta


class Ours:
    """An engine over the documents of one set."""

    def __init__(self, folder: Path, domain: str, encoder: Encoder | None = None) -> None:
        self.engine = stream_car.open(None, domains=[domain], future="apply", encoder=encoder)
        with (folder / "documents.jsonl").open("rb") as stream:
            self.engine.publish(documents_in(stream))
        self.engine.settle()

    def close(self) -> None:
        """Let the engine go, and its files."""
        self.engine.close()

    def answer(self, text: str, limit: int | None) -> Answer:
        """What the engine answers; without a limit as much as it will say."""
        if limit is None:
            return self.engine.query(text, k=K_MAX, depth=DEPTH_MAX)
        return self.engine.query(text, k=limit)

    def rank(self, text: str, limit: int | None) -> list[str]:
        """The controlling documents of the answer, best first."""
        return [document.id for document in self.answer(text, limit).results]

    def seen(self, question: Question, k: int, lexical: LexicalRanker) -> Seen:
        """How the answer to a question came about."""
        answer = self.answer(question.text, k)
        proposed = [one.id for one in self.engine.relevance(question.text, DEPTH)]
        places = [place for place, one in enumerate(proposed, 1) if one in question.anchor]
        scope = self.engine.check(question.anchor).certificate
        return Seen(
            id=question.id,
            place=places[0] if places else None,
            identified=any(self._leads(group.anchor.id, question) for group in answer.groups),
            anchors=len(answer.certificate.covered),
            lookups=answer.certificate.lookups,
            rounds=answer.certificate.rounds,
            phi=scope.phi if scope is not None else 1.0,
            kappa=scope.kappa if scope is not None else 1.0,
            delta=self.delta(question, lexical),
        )

    def delta(self, question: Question, lexical: LexicalRanker) -> Delta:
        """How much farther from the question's words the controlling document is than the most relevant one."""
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
        (found,) = self.engine.resolve([name])
        return [one.document.id for group in found.groups for one in group.controlling]

    def _leads(self, anchor: str, question: Question) -> bool:
        return anchor in question.anchor or anchor in question.chain or anchor in question.gold


class Factors(Struct, frozen=True, kw_only=True):
    """Proposition 1 as measured: `TCA = anchor x identified x frontier`, and what the theory says of the middle.

    `identified` is how often the right chain is among the answer's, the anchor given; `phi` the mean of
    Definition 5, which bounds it for systems that know no rules. `otherwise` is the share of right answers
    whose anchor was not found.
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


def factors(seen: Sequence[Seen], right: Some[str]) -> Factors:
    """The factorisation over some questions, of which these were answered rightly (Theorem 4)."""
    found = [one for one in seen if one.place is not None]
    named = [one for one in found if one.identified]
    solved = [one for one in named if one.id in right]
    return Factors(
        anchor=_part(found, seen),
        identified=_part(named, found),
        frontier=_part(solved, named),
        phi=_mean([one.phi for one in seen]),
        kappa=_mean([one.kappa for one in seen]),
        otherwise=(len(set(right)) - len(solved)) / len(seen) if seen else 0.0,
        delta=_mean([one.delta.delta for one in seen]),
        apart=_mean([float(one.delta.delta > 0) for one in seen]),
        lookups=_mean([one.lookups for one in seen]),
        rounds=_mean([one.rounds for one in seen]),
        anchors=_mean([one.anchors for one in seen]),
    )


def reason(question: Question, seen: Seen, ignored: Sequence[str], same_words: Mapping[str, int]) -> str:
    """Why an answer is wrong, in words."""
    others = same_words[question.text] - 1
    shared = f"; {others} other question{'s have' if others > 1 else ' has'} the same words" if others else ""
    if seen.place is None:
        return f"its anchor is not among the first {DEPTH} of Stage 1{shared}"
    if not seen.identified:
        return f"its anchor is at place {seen.place} of Stage 1, and other matters take the places before it{shared}"
    if ignored:
        return f"{ignored[0]} is superseded, and nothing in the answer supersedes it"
    return "what controls its anchor is not all in the answer"


def _part(some: Sequence[object], of: Sequence[object]) -> float:
    return len(some) / len(of) if of else 0.0


def _mean(figures: Sequence[float]) -> float:
    return sum(figures) / len(figures) if figures else 0.0
