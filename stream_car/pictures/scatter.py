"""A plot of one score against another. Promise: both axes begin at zero and have the same scale."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from stream_car.pictures import svg
from stream_car.pictures.svg import EDGE

TOP = 76
SIDE = 460
NEAR = 12  # points closer than this share a label
TINTS = ("one", "two", "three", "four")


class ChartPoint(Struct, frozen=True, kw_only=True):
    """A point: one score per axis, and the text of its label. `tint` is an index of `TINTS`."""

    x: float
    y: float
    name: str
    tint: int = 0


def draw_scatter(
    title: str, points: Sequence[ChartPoint], *, x_label: str, y_label: str, note: str = "", numbered: bool = False
) -> str:
    """Draw one score against another; on the diagonal they are equal. `numbered` adds numbers and a list of names."""
    largest = max([1e-9, *(point.x for point in points), *(point.y for point in points)]) * 1.05
    left, bottom = EDGE + 44, TOP + SIDE
    parts = svg.heading(title, note, 64, 96)
    for quarter in range(5):
        value, offset = f"{largest * quarter / 4:.1f}", SIDE * quarter / 4
        parts += [
            svg.line(left + offset, TOP, left + offset, bottom, "grid"),
            svg.line(left, bottom - offset, left + SIDE, bottom - offset, "grid"),
            svg.text(left + offset, bottom + 16, value, "small", "faint", anchor="middle"),
            svg.text(left - 8, bottom - offset + 4, value, "small", "faint", anchor="end"),
        ]
    parts.append(svg.line(left, bottom, left + SIDE, TOP))
    places = [(left + SIDE * point.x / largest, bottom - SIDE * point.y / largest) for point in points]
    parts += [svg.dot(*place, TINTS[point.tint], point.name) for place, point in zip(places, points, strict=True)]
    height = bottom + 56
    if numbered:
        parts += _numbers(places, left, bottom)
        names = [f"{number}  {svg.truncate(point.name, 74)}" for number, point in enumerate(points, 1)]
        parts += [svg.text(left, bottom + 62 + at * 18, name, "small") for at, name in enumerate(names)]
        height += 18 * len(points) + 8
    parts.append(svg.text(left + SIDE / 2, bottom + 36, x_label, anchor="middle"))
    parts.append(svg.text(left, TOP - 8, y_label, "small"))
    below = sum(point.y < point.x for point in points)
    description = f"{len(points)} points; {below} lie below the diagonal."
    return svg.picture(left + SIDE + EDGE, height, title=title, description=description, parts=parts)


def _numbers(places: Sequence[tuple[float, float]], left: float, bottom: float) -> Iterator[str]:
    """Yield the numbers of the points; neighbours share a label."""
    labels: dict[tuple[int, int], list[int]] = {}
    for number, (x, y) in enumerate(places, 1):
        labels.setdefault((round((x - left) / NEAR), round((bottom - y) / NEAR)), []).append(number)
    for numbers in labels.values():
        x, y = places[numbers[0] - 1]
        yield svg.text(x, y - 8, ", ".join(map(str, numbers)), "small", anchor="middle")
