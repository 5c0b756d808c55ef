"""Plots of figures: shares with their intervals as bars, and shares as lines.

Promise: axes begin at zero, and a bar always shows its interval.
"""

from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from stream_car.pictures import svg
from stream_car.pictures.scatter import SIDE, TINTS, TOP
from stream_car.pictures.svg import EDGE

NAME_WIDTH = 190
BAR_WIDTH = 460
ROW_HEIGHT = 24
LINES_HEIGHT = 260


class ChartBar(Struct, frozen=True, kw_only=True):
    """A share from 0 to 1 with its interval, and the paper's figure if it has one. `tint` is an index of `TINTS`."""

    name: str
    value: float
    low: float
    high: float
    paper: float | None = None
    tint: int = 0


class ChartLine(Struct, frozen=True, kw_only=True):
    """Shares from 0 to 1, one per tick of the axis."""

    name: str
    values: tuple[float, ...]
    tint: int = 0


def draw_bars(title: str, bars: Sequence[ChartBar], *, note: str = "", ceiling: float | None = None) -> str:
    """Draw shares from 0 to 1, one below the other.

    A diamond marks the paper's figure, a red line the ceiling.
    """
    base = EDGE + NAME_WIDTH
    bottom = TOP + ROW_HEIGHT * len(bars)
    parts = svg.heading(title, note, 80, 110)
    for tenth in range(0, 11, 2):
        x = base + BAR_WIDTH * tenth / 10
        parts += [
            svg.line(x, TOP - 8, x, bottom, "grid"),
            svg.text(x, bottom + 16, f"{tenth / 10:.1f}", "small", "faint", anchor="middle"),
        ]
    for at, bar in enumerate(bars):
        parts += _bar(bar, base, TOP + at * ROW_HEIGHT)
    if ceiling is not None:
        parts.append(svg.line(base + BAR_WIDTH * ceiling, TOP - 8, base + BAR_WIDTH * ceiling, bottom, "mark"))
    description = "; ".join(f"{bar.name} {bar.value:.3f}" for bar in bars)
    width = 2 * EDGE + NAME_WIDTH + BAR_WIDTH + 60
    return svg.picture(width, bottom + 40, title=title, description=description, parts=parts)


def _bar(bar: ChartBar, base: float, y: float) -> list[str]:
    low, high = base + BAR_WIDTH * bar.low, base + BAR_WIDTH * bar.high
    parts = [
        svg.text(base - 10, y + 14, svg.truncate(bar.name, 26), anchor="end"),
        svg.box(base, y + 3, BAR_WIDTH * bar.value, 14, TINTS[bar.tint], f"{bar.name}: {bar.value:.3f}", radius=2),
        svg.line(low, y + 10, high, y + 10),
        svg.line(low, y + 6, low, y + 14),
        svg.line(high, y + 6, high, y + 14),
        svg.text(base + BAR_WIDTH + 12, y + 14, f"{bar.value:.3f}", "small"),
    ]
    if bar.paper is not None:
        x = base + BAR_WIDTH * bar.paper
        parts.append(
            f'<path d="M{x:.1f} {y + 4:.1f}l6 6l-6 6l-6 -6z" class="mark"><title>paper: {bar.paper:.3f}</title></path>'
        )
    return parts


def draw_lines(title: str, ticks: Sequence[str], lines: Sequence[ChartLine], *, x_label: str, note: str = "") -> str:
    """Draw shares from 0 to 1 along an axis of named, evenly spaced ticks."""
    left, bottom, intervals = EDGE + 44, TOP + LINES_HEIGHT, len(ticks) - 1 or 1
    parts = svg.heading(title, note, 76, 100)
    for tenth in range(0, 11, 2):
        y = bottom - LINES_HEIGHT * tenth / 10
        parts.append(svg.line(left, y, left + SIDE, y, "grid"))
        parts.append(svg.text(left - 8, y + 4, f"{tenth / 10:.1f}", "small", "faint", anchor="end"))
    xs = [left + SIDE * at / intervals for at in range(len(ticks))]
    parts += [
        svg.text(x, bottom + 16, tick, "small", "faint", anchor="middle") for x, tick in zip(xs, ticks, strict=True)
    ]
    for number, line in enumerate(lines):
        points = [(x, bottom - LINES_HEIGHT * value) for x, value in zip(xs, line.values, strict=True)]
        parts += [svg.line(*start, *end) for start, end in pairwise(points)]
        parts += [
            svg.dot(x, y, TINTS[line.tint], f"{line.name}, {tick}: {value:.3f}")
            for (x, y), tick, value in zip(points, ticks, line.values, strict=True)
        ]
        key_y = TOP + 18 * number
        parts += [
            svg.dot(left + SIDE + 24, key_y, TINTS[line.tint], line.name),
            svg.text(left + SIDE + 34, key_y + 4, line.name),
        ]
    parts.append(svg.text(left + SIDE / 2, bottom + 36, x_label, anchor="middle"))
    described = [line for line in lines if line.values]
    description = "; ".join(f"{line.name} from {line.values[0]:.3f} to {line.values[-1]:.3f}" for line in described)
    return svg.picture(left + SIDE + EDGE + 200, bottom + 56, title=title, description=description, parts=parts)
