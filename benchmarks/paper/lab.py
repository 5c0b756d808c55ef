"""One set on the bench: its baselines and the engine beside each other, questions asked under a progress bar.

Promise: every system gets the same questions, and its answers the same judge. One set is open at a time.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from benchmarks.paper import measures
from benchmarks.paper.baselines import Bench, System, blind
from benchmarks.paper.judging import Judge, Judged, Scores, by_hop, scores
from benchmarks.paper.models import Models, Needed
from benchmarks.paper.ours import Delta, Factors, Ours, factors, reason
from benchmarks.paper.sets import Collection, Material, Question, Split, load
from stream_car import rule_packs

OURS = "Stream-CAR"
Track = Callable[[Sequence[Question], str], Iterable[Question]]


def untracked(questions: Sequence[Question], what: str) -> Iterable[Question]:
    """For callers whom nobody watches."""
    return questions


class Line(Struct, frozen=True, kw_only=True):
    """A system's scores on one set; `applied` counts the questions that it could be asked."""

    system: str
    scores: Scores
    hops: dict[str, Scores] = {}
    applied: int = 0
    gold: bool = False


class Failure(Struct, frozen=True, kw_only=True):
    """A question that the engine does not answer rightly, and why."""

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
    needs: tuple[Needed, ...] = ()  # systems that were not run
    factors: Factors | None = None
    failures: tuple[Failure, ...] = ()
    deltas: tuple[Delta, ...] = ()
    same_words: float = 1.0  # what can be right at best where the same words get the same answer
    checks: float = 0.0  # of pairs by rules, a question, that the RSSG makes (Proposition 3)


class Lab:
    """Opens sets, runs systems, judges. Use it as a context manager, or `close` it."""

    def __init__(
        self, data: Path, *, split: Split = "dev", k: int = 5, models: Models | None = None, track: Track = untracked
    ) -> None:
        self.data = data
        self.split: Split = split
        self.k = k
        self.models = models or Models()
        self.track = track
        self._open: Stand | None = None

    def __enter__(self) -> "Lab":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the open set go."""
        if self._open is not None:
            self._open.close()
            self._open = None

    def on(self, collection: Collection) -> "Stand":
        """A set, ready to be asked; another that was open is let go."""
        if self._open is None or self._open.material.collection != collection:
            self.close()
            self._open = Stand(load(self.data, collection, self.split), self)
        return self._open

    def report(self, collection: Collection) -> Report:
        """Every system that is at hand on one set."""
        return self.on(collection).report()


class Stand:
    """A set that lies open: its systems by name."""

    def __init__(self, material: Material, lab: Lab) -> None:
        self.material = material
        self.lab = lab
        self.bench = Bench(material, rule_packs.load([material.collection.domain]))
        self._ours: dict[str, Ours] = {}
        found, self.needs = lab.models.systems(self.bench)
        systems = [*self.bench.systems(), *found]
        oracle = [one for one in systems if one.gold and one.name == "oracle"]
        ours = [self._system(encoder) for encoder in ("", *lab.models.encoders)]
        rest = [one for one in systems if one not in oracle]
        self.systems = {one.name: one for one in [*rest, *ours, *oracle]}

    def close(self) -> None:
        """Let the engine go."""
        for one in self._ours.values():
            one.close()

    @property
    def ours(self) -> Ours:
        """The engine as it ships, which has the set's documents from when it is first asked."""
        return self._engine("")

    def _engine(self, encoder: str) -> Ours:
        if encoder not in self._ours:
            collection = self.material.collection
            encoders = self.lab.models.encoders
            self._ours[encoder] = Ours(self.material.folder, collection.domain, encoders.get(encoder))
        return self._ours[encoder]

    def _system(self, encoder: str) -> System:
        """The engine as it ships, or with vectors beside words."""

        def ask(text: str, limit: int | None) -> list[str]:
            return self._engine(encoder).rank(text, limit)

        return System(name=f"{OURS} + {encoder}" if encoder else OURS, rank=blind(ask))

    def run(self, system: System, questions: Sequence[Question], limit: int | None) -> list[Judged]:
        """A system's answers to these questions, `limit` documents each, judged at `k`."""
        judge = Judge(self.material.documents, self.material.above, self.lab.k)
        return [
            judge.judged(one, system.rank(one, limit) if system.applies(one) else [], by_case=system.by_case)
            for one in self.lab.track(questions, f"{self.material.collection.title}: {system.name}")
        ]

    def report(self) -> Report:
        """All systems on the set's own questions, and how the engine's answers came about."""
        questions = self.material.questions
        judged = {name: self.run(system, questions, self.lab.k) for name, system in self.systems.items()}
        seen = [
            self.ours.seen(one, self.lab.k, self.bench.bm25)
            for one in self.lab.track(questions, f"{self.material.collection.title}: how")
        ]
        words = Counter(one.text for one in questions)
        by_id = {one.id: one for one in questions}
        return Report(
            collection=self.material.collection,
            split=self.lab.split,
            k=self.lab.k,
            questions=len(questions),
            documents=len(self.material.documents),
            lines=tuple(self._line(system, judged[name]) for name, system in self.systems.items()),
            needs=self.needs,
            factors=factors(seen, {one.id for one in judged[OURS] if one.tca}),
            failures=tuple(
                Failure(id=one.id, text=by_id[one.id].text, reason=reason(by_id[one.id], how, one.ignored, words))
                for one, how in zip(judged[OURS], seen, strict=True)
                if not one.tca
            ),
            deltas=tuple(one.delta for one in seen),
            same_words=measures.same_words_ceiling(((one.text, one.gold) for one in questions), self.lab.k),
            checks=self.bench.checks / len(questions) if questions else 0.0,
        )

    def _line(self, system: System, judged: Sequence[Judged]) -> Line:
        applied = sum(system.applies(one) for one in self.material.questions)
        return Line(system=system.name, scores=scores(judged), hops=by_hop(judged), applied=applied, gold=system.gold)
