"""What the cosine of two sentences says about whether one replaces the other: nothing that a threshold could use.

The labelled pairs are MemStrata's kinds (duplicate, merge, contradict, novel), the 24 facts those of mnemo.
"""

from collections.abc import Mapping, Sequence

import numpy
from msgspec import Struct

from benchmarks.memory.encoders import Embedder, Vectors, unit

Line = Mapping[str, object]
LABELS = ("duplicate", "merge", "contradict", "novel")
DUPLICATE_TAUS = tuple(round(0.80 + 0.01 * step, 2) for step in range(19))
NOVEL_TAUS = tuple(round(0.50 + 0.01 * step, 2) for step in range(36))
PAPER_MEANS = {"duplicate": 0.800, "contradict": 0.812}
PAPER_AUROC, PAPER_CEILING = 0.5926, 0.667


class DuplicateStep(Struct, frozen=True):
    """What the rule "a duplicate, from this cosine on" gives."""

    tau: float
    predicted: int
    precision: float
    recall: float


class NovelStep(Struct, frozen=True):
    """What the rule "new, below this cosine" gives; between it and the ceiling's threshold somebody must judge."""

    tau: float
    below: int
    false_novel: float
    near: float


class PairFigures(Struct, frozen=True, kw_only=True):
    """What cosine says about labelled pairs. `ceiling` is the step of greatest precision at any threshold."""

    encoder: str
    means: Mapping[str, float]
    auroc_rest: float
    auroc_contradict: float
    ceiling: DuplicateStep
    duplicates: tuple[DuplicateStep, ...]
    novel: tuple[NovelStep, ...]


class FactFigures(Struct, frozen=True, kw_only=True):
    """What cosine says about facts, their contradictions and their rephrasings."""

    encoder: str
    contradiction: float
    rephrase: float
    at_least_as_near: int
    n: int
    auroc: float


def auroc(positives: Sequence[float], negatives: Sequence[float]) -> float:
    """Return the chance that a positive is greater than a negative; a tie counts half."""
    wins = sum((high > low) + 0.5 * (high == low) for high in positives for low in negatives)
    return wins / (len(positives) * len(negatives)) if positives and negatives else 0.5


def cosines(first: Vectors, second: Vectors) -> list[float]:
    """Return the cosine of each row with that of the other."""
    return [float(value) for value in numpy.einsum("ij,ij->i", unit(first), unit(second))]


def labelled_pairs(pairs: Sequence[Line], embedder: Embedder) -> PairFigures:
    """Measure pairs with an `existing` sentence, a `candidate` and a `label`."""
    sides = [embedder.vectors([str(pair[side]) for pair in pairs]) for side in ("existing", "candidate")]
    near = cosines(*sides)
    by_label = {
        label: [value for pair, value in zip(pairs, near, strict=True) if pair["label"] == label] for label in LABELS
    }
    duplicates = by_label["duplicate"]
    rest = [value for label in LABELS[1:] for value in by_label[label]]
    steps = [duplicate_step(tau, duplicates, rest) for tau in sorted(set(near))]
    ceiling = max(steps, key=lambda step: (step.precision, step.predicted))
    return PairFigures(
        encoder=embedder.name,
        means={label: float(numpy.mean(values)) for label, values in by_label.items() if values},
        auroc_rest=auroc(duplicates, rest),
        auroc_contradict=auroc(duplicates, by_label["contradict"]),
        ceiling=ceiling,
        duplicates=tuple(duplicate_step(tau, duplicates, rest) for tau in DUPLICATE_TAUS),
        novel=tuple(_novel_step(tau, near, by_label["novel"], ceiling.tau) for tau in NOVEL_TAUS),
    )


def duplicate_step(tau: float, duplicates: Sequence[float], rest: Sequence[float]) -> DuplicateStep:
    """Return what a threshold gives."""
    right, wrong = (sum(value >= tau for value in values) for values in (duplicates, rest))
    return DuplicateStep(tau, right + wrong, right / (right + wrong or 1), right / (len(duplicates) or 1))


def _novel_step(tau: float, near: Sequence[float], novel: Sequence[float], duplicate_tau: float) -> NovelStep:
    below, others = sum(value < tau for value in near), len(near) - len(novel)
    false = below - sum(value < tau for value in novel)
    between = sum(tau <= value < duplicate_tau for value in near)
    return NovelStep(tau, below, false / (others or 1), between / (len(near) or 1))


def sentences(fact: Line) -> tuple[str, str, str, str]:
    """Return a fact, its update, its rephrasing and its question, as the probe spells them."""
    subject, relation = fact["subject"], fact["relation"]
    old, new = (f"{subject} {relation}: {fact[value]}" for value in ("old", "new"))
    return old, new, str(fact["rephrase"]), f"What is the {relation} of {subject}?"


def facts(lines: Sequence[Line], embedder: Embedder, *, centred: bool) -> FactFigures:
    """Measure facts; `centred` subtracts the mean of all their sentences first."""
    rows = embedder.vectors([sentence for line in lines for sentence in sentences(line)])
    rows = rows - rows.mean(axis=0) if centred else rows
    contradiction, rephrase = cosines(rows[0::4], rows[1::4]), cosines(rows[0::4], rows[2::4])
    return FactFigures(
        encoder=f"{embedder.name}, {'centred' if centred else 'raw'}",
        contradiction=float(numpy.mean(contradiction)),
        rephrase=float(numpy.mean(rephrase)),
        at_least_as_near=sum(map(float.__ge__, contradiction, rephrase)),
        n=len(lines),
        auroc=auroc([-value for value in contradiction], [-value for value in rephrase]),
    )
