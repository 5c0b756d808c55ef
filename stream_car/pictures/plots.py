"""Plots of figures: shares with their intervals as bars, shares as lines, and one score against another.

Promise: axes begin at zero; an interval is drawn wherever a share is.
"""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from stream_car.pictures import svg

EDGE = 24
NAMES = 190
BARS = 460
ROW = 24
TOP = 76
SIDE = 460
HIGH = 260
NEAR = 12  # points closer than this share a label
TINTS = ("one", "two", "three", "four")


class Bar(Struct, frozen=True, kw_only=True):
    """A share: its name, its interval, the paper's figure if it has one. `tint` is one of four."""

    name: str
    value: float
    low: float
    high: float
    paper: float | None = None
    tint: int = 0


class Line(Struct, frozen=True, kw_only=True):
    """Shares from 0 to 1, one for each place of an axis."""

    name: str
    values: tuple[float, ...]
    tint: int = 0


class Point(Struct, frozen=True, kw_only=True):
    """One question: a score across, a score up, and what is told of it."""

    x: float
    y: float
    name: str
    tint: int = 0


def bars(title: str, shares: Sequence[Bar], *, note: str = "", ceiling: float | None = None) -> str:
    """Shares from 0 to 1, one beneath the other; a diamond marks the paper's figure, a red line the ceiling."""
    height = TOP + ROW * len(shares) + 40
    base = EDGE + NAMES
    bottom = TOP + ROW * len(shares)
    parts = [svg.text(EDGE, 32, svg.cut(title, 80), "head"), svg.text(EDGE, 52, svg.cut(note, 110), "small", "faint")]
    for tenth in range(0, 11, 2):
        x = base + BARS * tenth / 10
        parts += [
            svg.line(x, TOP - 8, x, bottom, "grid"),
            svg.text(x, bottom + 16, f"{tenth / 10:.1f}", "small", "faint", anchor="middle"),
        ]
    for at, one in enumerate(shares):
        parts += _bar(one, base, TOP + at * ROW)
    if ceiling is not None:
        parts.append(svg.line(base + BARS * ceiling, TOP - 8, base + BARS * ceiling, bottom, "mark"))
    told = "; ".join(f"{one.name} {one.value:.3f}" for one in shares)
    return svg.picture(2 * EDGE + NAMES + BARS + 60, height, title=title, description=told, parts=parts)


def _bar(one: Bar, base: float, y: float) -> list[str]:
    low, high = base + BARS * one.low, base + BARS * one.high
    parts = [
        svg.text(base - 10, y + 14, svg.cut(one.name, 26), anchor="end"),
        svg.box(base, y + 3, BARS * one.value, 14, TINTS[one.tint], f"{one.name}: {one.value:.3f}", round_=2),
        svg.line(low, y + 10, high, y + 10),
        svg.line(low, y + 6, low, y + 14),
        svg.line(high, y + 6, high, y + 14),
        svg.text(base + BARS + 12, y + 14, f"{one.value:.3f}", "small"),
    ]
    if one.paper is not None:
        x = base + BARS * one.paper
        parts.append(
            f'<path d="M{x:.1f} {y + 4:.1f}l6 6l-6 6l-6 -6z" class="mark"><title>paper: {one.paper:.3f}</title></path>'
        )
    return parts


def lines(title: str, places: Sequence[str], series: Sequence[Line], *, across: str, note: str = "") -> str:
    """Shares from 0 to 1 as they change along an axis of named places, evenly apart."""
    left, bottom, high = EDGE + 44, TOP + HIGH, len(places) - 1 or 1
    parts = [svg.text(EDGE, 32, svg.cut(title, 76), "head"), svg.text(EDGE, 52, svg.cut(note, 100), "small", "faint")]
    for tenth in range(0, 11, 2):
        y = bottom - HIGH * tenth / 10
        parts.append(svg.line(left, y, left + SIDE, y, "grid"))
        parts.append(svg.text(left - 8, y + 4, f"{tenth / 10:.1f}", "small", "faint", anchor="end"))
    xs = [left + SIDE * at / high for at in range(len(places))]
    parts += [
        svg.text(x, bottom + 16, place, "small", "faint", anchor="middle") for x, place in zip(xs, places, strict=True)
    ]
    for number, one in enumerate(series):
        ys = [bottom - HIGH * value for value in one.values]
        points = list(zip(xs, ys, strict=True))
        parts += [svg.line(*before, *after) for before, after in pairwise(points)]
        parts += [
            svg.dot(x, y, TINTS[one.tint], f"{one.name}, {place}: {value:.3f}")
            for (x, y), place, value in zip(points, places, one.values, strict=True)
        ]
        key = TOP + 18 * number
        parts += [
            svg.dot(left + SIDE + 24, key, TINTS[one.tint], one.name),
            svg.text(left + SIDE + 34, key + 4, one.name),
        ]
    parts.append(svg.text(left + SIDE / 2, bottom + 36, across, anchor="middle"))
    told = "; ".join(f"{one.name} from {one.values[0]:.3f} to {one.values[-1]:.3f}" for one in series if one.values)
    return svg.picture(left + SIDE + EDGE + 200, bottom + 56, title=title, description=told, parts=parts)


def scatter(title: str, points: Sequence[Point], *, across: str, up: str, note: str = "", named: bool = False) -> str:
    """One score against another; on the diagonal they are equal. `named` numbers the points and lists them."""
    most = max([1e-9, *(one.x for one in points), *(one.y for one in points)]) * 1.05
    left, bottom = EDGE + 44, TOP + SIDE
    parts = [svg.text(EDGE, 32, svg.cut(title, 64), "head"), svg.text(EDGE, 52, svg.cut(note, 96), "small", "faint")]
    for at in range(5):
        value = most * at / 4
        x, y = left + SIDE * at / 4, bottom - SIDE * at / 4
        parts += [
            svg.line(x, TOP, x, bottom, "grid"),
            svg.line(left, y, left + SIDE, y, "grid"),
            svg.text(x, bottom + 16, f"{value:.1f}", "small", "faint", anchor="middle"),
            svg.text(left - 8, y + 4, f"{value:.1f}", "small", "faint", anchor="end"),
        ]
    parts.append(svg.line(left, bottom, left + SIDE, TOP))
    parts += [
        svg.dot(left + SIDE * one.x / most, bottom - SIDE * one.y / most, TINTS[one.tint], one.name) for one in points
    ]
    if named:
        parts += _numbers(points, left, bottom, most)
        parts += [
            svg.text(left, bottom + 62 + at * 18, f"{at + 1}  {svg.cut(one.name, 74)}", "small")
            for at, one in enumerate(points)
        ]
    parts += [svg.text(left + SIDE / 2, bottom + 36, across, anchor="middle"), svg.text(left, TOP - 8, up, "small")]
    told = f"{len(points)} points; {sum(one.y < one.x for one in points)} lie beneath the diagonal."
    height = bottom + 56 + (18 * len(points) + 8 if named else 0)
    return svg.picture(left + SIDE + EDGE, height, title=title, description=told, parts=parts)


def _numbers(points: Sequence[Point], left: float, bottom: float, most: float) -> list[str]:
    """The numbers of the points, those of neighbours in one label."""
    labels: dict[tuple[int, int], list[int]] = {}
    for number, one in enumerate(points, 1):
        labels.setdefault((round(SIDE * one.x / most / NEAR), round(SIDE * one.y / most / NEAR)), []).append(number)
    found = []
    for numbers in labels.values():
        one = points[numbers[0] - 1]
        said = ", ".join(map(str, numbers))
        found.append(
            svg.text(left + SIDE * one.x / most, bottom - SIDE * one.y / most - 8, said, "small", anchor="middle")
        )
    return found
