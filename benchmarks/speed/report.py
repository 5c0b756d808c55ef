"""A small table of figures with their goals."""

import os
from collections.abc import Sequence
from math import ceil
from pathlib import Path

import msgspec
from msgspec import Struct

FIGURES_FILE = "BENCH_FIGURES"  # the variable with a file to which tables are appended too, a JSON line per figure


class Figure(Struct, frozen=True, kw_only=True):
    """A measured value. `at_most` or `at_least` is its goal; `note` is printed after it."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def is_missed(self) -> bool:
        """Whether there is a goal and the value misses it."""
        is_above = self.at_most is not None and self.value > self.at_most
        return is_above or (self.at_least is not None and self.value < self.at_least)

    @property
    def goal(self) -> str:
        """The goal and whether it is met; empty if there is none."""
        if self.at_most is None and self.at_least is None:
            return ""
        bound = f"<= {number(self.at_most)}" if self.at_most is not None else f">= {number(self.at_least or 0.0)}"
        return f"{bound}  {'MISS' if self.is_missed else 'PASS'}"


def number(value: float) -> str:
    """Format a value with about three digits, and separators between thousands."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def show(title: str, figures: Sequence[Figure], notes: Sequence[str] = ()) -> int:
    """Print the table; return 1 if a goal was missed, else 0."""
    width = max(len(figure.name) for figure in figures)
    print(f"\n{title}")
    for figure in figures:
        measured = f"{number(figure.value):>9} {figure.unit:<9}"
        print(f"  {figure.name:<{width}} {measured} {figure.goal:<16} {figure.note}".rstrip())
    for note in notes:
        print(f"  {note}")
    if file := os.environ.get(FIGURES_FILE):
        _store(Path(file), figures)
    return int(any(figure.is_missed for figure in figures))


def _store(file: Path, figures: Sequence[Figure]) -> None:
    """Append figures to a file. A name that is indented continues that of the figure above it."""
    heading = ""
    with file.open("ab") as stream:
        for figure in figures:
            is_part = figure.name.startswith(" ")
            heading = heading if is_part else figure.name
            name = f"{heading}: {figure.name.strip()}" if is_part else figure.name
            stream.write(msgspec.json.encode(msgspec.structs.replace(figure, name=name)) + b"\n")


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the smallest sample that is not exceeded by this share of all samples."""
    return sorted(samples)[ceil(share * len(samples)) - 1]
