"""The timeline of a scope: from when to when each document held, and what ended it.

Promise: one row a member, oldest first; a bar runs from where it takes effect to what ended it, and is
green to the edge while it holds. Times stand in proportion.
"""

from collections.abc import Sequence

from stream_car.codec import format_time
from stream_car.pictures import svg
from stream_car.queries.answers import Held, History

ROW = 38
TOP = 70
EDGE = 24
NAMES = 250
BARS = 560
ROWS_MAX = 60
TICKS = 4
YEAR = 366 * 86_400 * 1_000_000


def timelines(found: Sequence[History]) -> str:
    """Scopes one beneath the other."""
    height = sum(_height(one) for one in found) or 80
    width = EDGE * 2 + NAMES + BARS
    parts: list[str] = []
    y = 0.0
    for one in found:
        parts += _scope(one, y)
        y += _height(one)
    title = "Timeline of " + "; ".join(one.scope for one in found[:3]) if found else "No scope has these values"
    if not found:
        parts.append(svg.text(EDGE, 44, title, "head"))
    return svg.picture(width, height, title=title, description=" ".join(map(_described, found)), parts=parts)


def _height(said: History) -> float:
    return TOP + ROW * max(1, min(len(said.members), ROWS_MAX)) + 30


def _scope(said: History, y: float) -> list[str]:
    shown = said.members[:ROWS_MAX]
    parts = [svg.text(EDGE, y + 32, svg.cut(said.scope, 100), "head")]
    if not shown:
        return parts
    first, last = _span(shown)
    parts += _ticks(first, last, y, y + TOP + ROW * len(shown))
    for at, member in enumerate(shown):
        parts += _row(member, y + TOP + at * ROW, first, last)
    if len(said.members) > len(shown):
        parts.append(svg.text(EDGE, y + _height(said) - 8, f"and {len(said.members) - len(shown)} more", "faint"))
    return parts


def _span(members: Sequence[Held]) -> tuple[int, int]:
    """The times that the bars run between, with some room for what still holds."""
    times = [one.time for one in members] + [one.ended.time for one in members if one.ended is not None]
    first, last = min(times), max(times)
    return first, last + max((last - first) // 6, YEAR // 366)


def _place(time: int, first: int, last: int) -> float:
    return EDGE + NAMES + BARS * (time - first) / (last - first)


def _ticks(first: int, last: int, top: float, bottom: float) -> list[str]:
    parts = []
    told = ""
    for at in range(TICKS):
        time = first + (last - first) * at // TICKS
        x = _place(time, first, last)
        day = format_time(time)[:10]
        parts.append(svg.line(x, top + TOP - 12, x, bottom, "grid"))
        if day != told:
            parts.append(svg.text(x, top + TOP - 16, day, "small", "faint"))
        told = day
    return parts


def _row(member: Held, y: float, first: int, last: int) -> list[str]:
    start = _place(member.time, first, last)
    end = _place(member.ended.time if member.ended is not None else last, first, last)
    held = member.ended is None
    parts = [
        svg.text(EDGE, y + 14, svg.cut(member.title or member.id, 32), "" if held else "struck"),
        svg.text(EDGE, y + 29, svg.cut(f"{member.type} · {member.id}", 40), "small", "faint"),
        svg.box(start, y + 6, max(end - start, 3), 14, "held" if held else "bar", _told(member), round_=3),
    ]
    if member.ended is not None:
        left = end > EDGE + NAMES + BARS * 0.62
        said = svg.cut(f"{member.ended.rule}: {member.ended.id}", 44)
        x = start - 6 if left and start - EDGE - NAMES > svg.wide([said]) else end + 6
        parts.append(svg.line(end, y + 2, end, y + 24, "mark"))
        if x == end + 6 and end + svg.wide([said]) * 0.85 > EDGE + NAMES + BARS + EDGE:
            parts.append(svg.text(end, y + 33, said, "small", "faint", anchor="end"))
        else:
            parts.append(svg.text(x, y + 17, said, "small", "faint", anchor="end" if x < end else "start"))
    return parts


def _told(member: Held) -> str:
    since = f"{member.id} holds from {format_time(member.time)[:10]}"
    if member.ended is None:
        return since
    return f"{since} to {format_time(member.ended.time)[:10]}, ended by {member.ended.id} ({member.ended.rule})"


def _described(said: History) -> str:
    return f"{said.scope}: " + "; ".join(_told(one) for one in said.members[:ROWS_MAX]) + "."
