"""What a budget of look-ups buys: coverage and risk as the budget grows (budgeted closure, Definition 8).

Promise: every figure is measured on answers that the engine gave under that budget. Budgets grow until none of the
answers is limited by it. The last step has no budget, as a query without one.
"""

from collections.abc import Iterator, Sequence
from itertools import count

from msgspec import Struct

from benchmarks.paper.lab import Lab
from benchmarks.paper.measures import Share, recall, share, tca
from benchmarks.paper.sets import Collection, Split
from stream_car.queries.answers import Answer

LEADS = (1, 2, 5)  # of each power of ten


class BudgetStep(Struct, frozen=True, kw_only=True):
    """What one budget gives on a set's questions; a budget of `None` is unlimited.

    `coverage` is the mean of the certificates': how much of what the question may mean the answer covers. `recall` is
    the share of the unlimited answer that is returned. `risk` is the share answered wrongly by Theorem 4, `trusted`
    the same share among answers with a complete certificate.
    """

    budget: int | None
    keys: float  # read, on average
    complete: Share
    coverage: float
    recall: float
    risk: Share
    trusted: Share


class Curve(Struct, frozen=True, kw_only=True):
    """Coverage and risk on one set."""

    collection: Collection
    split: Split
    k: int
    questions: int
    steps: tuple[BudgetStep, ...]


def ladder() -> Iterator[int]:
    """Yield 1, 2, 5, 10, 20, 50 and so on."""
    for power in count():
        yield from (lead * 10**power for lead in LEADS)


def curve(lab: Lab, collection: Collection) -> Curve:
    """Query with growing budgets until no answer is limited, and finally without one."""
    open_set = lab.open(collection)
    questions = open_set.material.questions

    def answers(budget: int | None) -> list[Answer]:
        what = f"{collection.title}: {f'budget {budget}' if budget is not None else 'no budget'}"
        tracked = lab.track(questions, what)
        return [open_set.engine.engine.query(question.text, k=lab.k, budget=budget) for question in tracked]

    unlimited = answers(None)
    steps = []
    for budget in ladder():
        limited = answers(budget)
        steps.append(_step(lab, collection, budget, limited, unlimited))
        if not any("budget" in answer.certificate.reasons for answer in limited):
            break
    steps.append(_step(lab, collection, None, unlimited, unlimited))
    return Curve(collection=collection, split=lab.split, k=lab.k, questions=len(questions), steps=tuple(steps))


def _step(
    lab: Lab, collection: Collection, budget: int | None, answers: Sequence[Answer], unlimited: Sequence[Answer]
) -> BudgetStep:
    material = lab.open(collection).material
    wrong = [
        float(not tca(question.gold, _ids(answer), material.superseders))
        for question, answer in zip(material.questions, answers, strict=True)
    ]
    complete = [answer.certificate.complete for answer in answers]
    return BudgetStep(
        budget=budget,
        keys=_mean([answer.certificate.lookups for answer in answers]),
        complete=share(complete),
        coverage=_mean([answer.certificate.coverage for answer in answers]),
        recall=_mean([recall(_ids(full), _ids(answer)) for answer, full in zip(answers, unlimited, strict=True)]),
        risk=share(wrong),
        trusted=share([is_wrong for is_wrong, is_complete in zip(wrong, complete, strict=True) if is_complete]),
    )


def _ids(answer: Answer) -> list[str]:
    return [document.id for document in answer.results]


def _mean(figures: Sequence[float]) -> float:
    return sum(figures) / len(figures) if figures else 0.0
