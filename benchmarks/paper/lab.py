"""Runs the baselines and the engine on one set at a time.

Promise: every system gets the same questions, and its answers the same judge. Only one set is open at a time.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from benchmarks.paper import measures
from benchmarks.paper.baselines import Baselines, System, blind
from benchmarks.paper.engine import BenchEngine, Delta, Factors, factors, reason
from benchmarks.paper.judge import Judge, Judgement, Scores, by_hop, scores
from benchmarks.paper.models import MissingSystem, Models
from benchmarks.paper.sets import Collection, Material, Question, Split, load
from stream_car import rule_packs

OURS = "Stream-CAR"
Track = Callable[[Sequence[Question], str], Iterable[Question]]  # yields the questions and shows progress


def untracked(questions: Sequence[Question], what: str) -> Iterable[Question]:
    """Return the questions without showing progress."""
    return questions


class Line(Struct, frozen=True, kw_only=True):
    """A system's scores on one set. `applied` counts the questions that it applies to."""

    system: str
    scores: Scores
    hops: dict[str, Scores] = {}
    applied: int = 0
    gold: bool = False


class Failure(Struct, frozen=True, kw_only=True):
    """A question that the engine answers wrongly, and why."""

    id: str
    text: str
    reason: str


class Report(Struct, frozen=True, kw_only=True):
    """What was measured on one set."""

    collection: Collection
    split: Split
    k: int
    questions: int
    documents: int
    lines: tuple[Line, ...]
    needs: tuple[MissingSystem, ...] = ()  # systems that were not run
    factors: Factors | None = None
    failures: tuple[Failure, ...] = ()
    deltas: tuple[Delta, ...] = ()
    same_words: float = 1.0  # the share that can be right at most if the same words get the same answer
    checks: float = 0.0  # pairs of documents that the RSSG checks by a rule, per question (Proposition 3)


class Lab:
    """Opens sets, runs systems, judges answers. Use it as a context manager, or `close` it."""

    def __init__(
        self, data: Path, *, split: Split = "dev", k: int = 5, models: Models | None = None, track: Track = untracked
    ) -> None:
        self.data = data
        self.split: Split = split
        self.k = k
        self.models = models or Models()
        self.track = track
        self._open_set: OpenSet | None = None

    def __enter__(self) -> "Lab":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the open set, if any."""
        if self._open_set is not None:
            self._open_set.close()
            self._open_set = None

    def open(self, collection: Collection) -> "OpenSet":
        """Return a set ready for questions; another open set is closed."""
        if self._open_set is None or self._open_set.material.collection != collection:
            self.close()
            self._open_set = OpenSet(load(self.data, collection, self.split), self)
        return self._open_set

    def report(self, collection: Collection) -> Report:
        """Run every available system on one set."""
        return self.open(collection).report()


class OpenSet:
    """A set that is open: its systems by name."""

    def __init__(self, material: Material, lab: Lab) -> None:
        self.material = material
        self.lab = lab
        self.baselines = Baselines(material, rule_packs.load([material.collection.domain]))
        self._engines: dict[str, BenchEngine] = {}
        model_systems, self.needs = lab.models.systems(self.baselines)
        rivals = [*self.baselines.systems(), *model_systems]
        oracle = [system for system in rivals if system.gold and system.name == "oracle"]
        ours = [self._system(encoder) for encoder in ("", *lab.models.encoders)]
        others = [system for system in rivals if system not in oracle]
        self.systems = {system.name: system for system in [*others, *ours, *oracle]}

    def close(self) -> None:
        """Close the engines."""
        for engine in self._engines.values():
            engine.close()

    @property
    def engine(self) -> BenchEngine:
        """The engine as it ships. It is opened when first used."""
        return self._engine("")

    def _engine(self, encoder: str) -> BenchEngine:
        if encoder not in self._engines:
            collection = self.material.collection
            encoders = self.lab.models.encoders
            self._engines[encoder] = BenchEngine(self.material.folder, collection.domain, encoders.get(encoder))
        return self._engines[encoder]

    def _system(self, encoder: str) -> System:
        """Return the engine as it ships, or with vectors in addition to words."""

        def rank(text: str, limit: int | None) -> list[str]:
            return self._engine(encoder).rank(text, limit)

        return System(name=f"{OURS} + {encoder}" if encoder else OURS, rank=blind(rank))

    def run(self, system: System, questions: Sequence[Question], limit: int | None) -> list[Judgement]:
        """Judge a system's answers to these questions, `limit` documents each, at `k`."""
        judge = Judge(self.material.documents, self.material.superseders, self.lab.k)
        tracked = self.lab.track(questions, f"{self.material.collection.title}: {system.name}")
        return [
            judge.judge(
                question, system.rank(question, limit) if system.applies(question) else [], by_case=system.by_case
            )
            for question in tracked
        ]

    def report(self) -> Report:
        """Run all systems on the set's own questions, and trace how the engine's answers came about."""
        questions = self.material.questions
        judgements = {name: self.run(system, questions, self.lab.k) for name, system in self.systems.items()}
        traces = [
            self.engine.trace(question, self.lab.k, self.baselines.bm25)
            for question in self.lab.track(questions, f"{self.material.collection.title}: how")
        ]
        same_words = Counter(question.text for question in questions)
        by_id = {question.id: question for question in questions}
        failed = [(each, trace) for each, trace in zip(judgements[OURS], traces, strict=True) if not each.tca]
        return Report(
            collection=self.material.collection,
            split=self.lab.split,
            k=self.lab.k,
            questions=len(questions),
            documents=len(self.material.documents),
            lines=tuple(self._line(system, judgements[name]) for name, system in self.systems.items()),
            needs=self.needs,
            factors=factors(traces, {each.id for each in judgements[OURS] if each.tca}),
            failures=tuple(
                Failure(
                    id=each.id,
                    text=by_id[each.id].text,
                    reason=reason(by_id[each.id], trace, each.ignored, same_words),
                )
                for each, trace in failed
            ),
            deltas=tuple(trace.delta for trace in traces),
            same_words=measures.same_words_ceiling(((each.text, each.gold) for each in questions), self.lab.k),
            checks=self.baselines.checks / len(questions) if questions else 0.0,
        )

    def _line(self, system: System, judgements: Sequence[Judgement]) -> Line:
        return Line(
            system=system.name,
            scores=scores(judgements),
            hops=by_hop(judgements),
            applied=sum(system.applies(question) for question in self.material.questions),
            gold=system.gold,
        )
