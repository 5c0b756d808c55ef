"""A small table of figures with the goals that were set for them."""

from collections.abc import Sequence
from math import ceil

from msgspec import Struct


class Figure(Struct, frozen=True, kw_only=True):
    """A measured value. With `most` or `least` it is held to a goal; `note` says what else to know."""

    name: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None
    note: str = ""

    @property
    def missed(self) -> bool:
        """Whether there is a goal and the value does not meet it."""
        too_much = self.most is not None and self.value > self.most
        return too_much or (self.least is not None and self.value < self.least)

    @property
    def goal(self) -> str:
        """The goal and whether it is met; empty where there is none."""
        if self.most is None and self.least is None:
            return ""
        bound = f"<= {number(self.most)}" if self.most is not None else f">= {number(self.least or 0.0)}"
        return f"{bound}  {'MISS' if self.missed else 'PASS'}"


def number(value: float) -> str:
    """Three digits or so, thousands apart."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def show(title: str, figures: Sequence[Figure], notes: Sequence[str] = ()) -> int:
    """Print the table; 1 where a goal was missed, else 0."""
    width = max(len(figure.name) for figure in figures)
    print(f"\n{title}")
    for figure in figures:
        measured = f"{number(figure.value):>9} {figure.unit:<9}"
        print(f"  {figure.name:<{width}} {measured} {figure.goal:<16} {figure.note}".rstrip())
    for note in notes:
        print(f"  {note}")
    return int(any(figure.missed for figure in figures))


def quantile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that this share of all does not exceed."""
    return sorted(samples)[ceil(share * len(samples)) - 1]
