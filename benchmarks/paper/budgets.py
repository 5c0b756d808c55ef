"""What a budget of look-ups buys: coverage and risk as it grows (budgeted closure, Definition 8).

Promise: every figure is of answers that the engine gave under that budget. The last step has none, and is what
everybody gets who names none; a budget that stops no question is not gone beyond.
"""

from collections.abc import Iterator, Sequence
from itertools import count

from msgspec import Struct

from benchmarks.paper.lab import Lab
from benchmarks.paper.measures import Share, recall, share, tca
from benchmarks.paper.sets import Collection, Split
from stream_car.queries.answers import Answer

LEADS = (1, 2, 5)  # of each power of ten


class Spent(Struct, frozen=True, kw_only=True):
    """What one budget gives over a set's questions; `None` is no budget.

    `coverage` is the mean of the certificates': how much of what the question may mean the answer covers.
    `told` is how much of the answer without a budget is there. `risk` is the share answered wrongly by
    Theorem 4, `trusted` that share where the certificate is complete.
    """

    budget: int | None
    keys: float  # read, on average
    complete: Share
    coverage: float
    told: float
    risk: Share
    trusted: Share


class Curve(Struct, frozen=True, kw_only=True):
    """Coverage and risk on one set."""

    collection: Collection
    split: Split
    k: int
    questions: int
    steps: tuple[Spent, ...]


def ladder() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50 and so on."""
    for power in count():
        yield from (lead * 10**power for lead in LEADS)


def curve(lab: Lab, collection: Collection) -> Curve:
    """Ask every question under growing budgets until none is stopped by it, and at last without."""
    stand = lab.on(collection)
    questions = stand.material.questions

    def asked(budget: int | None) -> list[Answer]:
        what = f"{collection.title}: {f'budget {budget}' if budget is not None else 'no budget'}"
        return [stand.ours.engine.query(one.text, k=lab.k, budget=budget) for one in lab.track(questions, what)]

    whole = asked(None)
    steps = []
    for budget in ladder():
        some = asked(budget)
        steps.append(_spent(lab, collection, budget, some, whole))
        if not any("budget" in one.certificate.reasons for one in some):
            break
    steps.append(_spent(lab, collection, None, whole, whole))
    return Curve(collection=collection, split=lab.split, k=lab.k, questions=len(questions), steps=tuple(steps))


def _spent(
    lab: Lab, collection: Collection, budget: int | None, some: Sequence[Answer], whole: Sequence[Answer]
) -> Spent:
    material = lab.on(collection).material
    wrong = [
        float(not tca(one.gold, _ids(answer), material.above))
        for one, answer in zip(material.questions, some, strict=True)
    ]
    complete = [answer.certificate.complete for answer in some]
    return Spent(
        budget=budget,
        keys=_mean([answer.certificate.lookups for answer in some]),
        complete=share(complete),
        coverage=_mean([answer.certificate.coverage for answer in some]),
        told=_mean([recall(_ids(full), _ids(answer)) for answer, full in zip(some, whole, strict=True)]),
        risk=share(wrong),
        trusted=share([one for one, is_complete in zip(wrong, complete, strict=True) if is_complete]),
    )


def _ids(answer: Answer) -> list[str]:
    return [one.id for one in answer.results]


def _mean(figures: Sequence[float]) -> float:
    return sum(figures) / len(figures) if figures else 0.0
