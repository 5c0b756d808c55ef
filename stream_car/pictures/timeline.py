"""The timeline of a scope: from when to when each document was in force, and what ended it.

Promise: one row per member, oldest first. A bar runs from the time a member takes effect to the time it was superseded;
the bar of a member in force is green and runs to the edge. Widths are proportional to time.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from stream_car.pictures import svg
from stream_car.queries.answers import History, TimelineMember

ROW_HEIGHT = 38
TOP = 70
EDGE = 24
NAME_WIDTH = 250
BAR_WIDTH = 560
ROWS_MAX = 60
TICKS = 4
DAY = timedelta(days=1)


def draw_timelines(histories: Sequence[History]) -> str:
    """Draw scopes one below the other."""
    height = sum(_height(history) for history in histories) or 80
    width = EDGE * 2 + NAME_WIDTH + BAR_WIDTH
    parts: list[str] = []
    y = 0.0
    for history in histories:
        parts += _scope(history, y)
        y += _height(history)
    title = "Timeline of " + "; ".join(history.scope for history in histories[:3])
    if not histories:
        title = "No scope has these values"
        parts.append(svg.text(EDGE, 44, title, "head"))
    return svg.picture(width, height, title=title, description=" ".join(map(_describe, histories)), parts=parts)


def _height(history: History) -> float:
    return TOP + ROW_HEIGHT * max(1, min(len(history.members), ROWS_MAX)) + 30


def _scope(history: History, y: float) -> list[str]:
    shown = history.members[:ROWS_MAX]
    parts = [svg.text(EDGE, y + 32, svg.truncate(history.scope, 100), "head")]
    if not shown:
        return parts
    first, last = _span(shown)
    parts += _ticks(first, last, y, y + TOP + ROW_HEIGHT * len(shown))
    for at, member in enumerate(shown):
        parts += _row(member, y + TOP + at * ROW_HEIGHT, first, last)
    more = len(history.members) - len(shown)
    if more:
        parts.append(svg.text(EDGE, y + _height(history) - 8, f"and {more} more", "faint"))
    return parts


def _span(members: Sequence[TimelineMember]) -> tuple[datetime, datetime]:
    """Return the times at the two edges, with some room after the last event for what is in force."""
    times = [member.time for member in members]
    times += [member.ended.time for member in members if member.ended is not None]
    first, last = min(times), max(times)
    return first, last + max((last - first) / 6, DAY)


def _x(time: datetime, first: datetime, last: datetime) -> float:
    return EDGE + NAME_WIDTH + BAR_WIDTH * (time - first) / (last - first)


def _ticks(first: datetime, last: datetime, top: float, bottom: float) -> list[str]:
    parts = []
    previous = ""
    for at in range(TICKS):
        time = first + (last - first) * at / TICKS
        x = _x(time, first, last)
        day = str(time.date())
        parts.append(svg.line(x, top + TOP - 12, x, bottom, "grid"))
        if day != previous:
            parts.append(svg.text(x, top + TOP - 16, day, "small", "faint"))
        previous = day
    return parts


def _row(member: TimelineMember, y: float, first: datetime, last: datetime) -> list[str]:
    start = _x(member.time, first, last)
    end = _x(member.ended.time if member.ended is not None else last, first, last)
    is_in_force = member.ended is None
    parts = [
        svg.text(EDGE, y + 14, svg.truncate(member.title or member.id, 32), "" if is_in_force else "struck"),
        svg.text(EDGE, y + 29, svg.truncate(f"{member.type} · {member.id}", 40), "small", "faint"),
        svg.box(start, y + 6, max(end - start, 3), 14, "current" if is_in_force else "bar", _period(member), radius=3),
    ]
    if member.ended is not None:
        label = svg.truncate(f"{member.ended.rule}: {member.ended.id}", 44)
        width, left_edge, right_edge = svg.text_width(label), EDGE + NAME_WIDTH, EDGE + NAME_WIDTH + BAR_WIDTH
        parts.append(svg.line(end, y + 2, end, y + 24, "mark"))
        if end > left_edge + BAR_WIDTH * 0.62 and start - left_edge > width:  # room before the bar
            parts.append(svg.text(start - 6, y + 17, label, "small", "faint", anchor="end"))
        elif end + width * 0.85 > right_edge + EDGE:  # no room beside the bar
            parts.append(svg.text(end, y + 33, label, "small", "faint", anchor="end"))
        else:
            parts.append(svg.text(end + 6, y + 17, label, "small", "faint"))
    return parts


def _period(member: TimelineMember) -> str:
    period = f"{member.id} is in force from {member.time.date()}"
    if member.ended is None:
        return period
    return f"{period} to {member.ended.time.date()}, ended by {member.ended.id} ({member.ended.rule})"


def _describe(history: History) -> str:
    return f"{history.scope}: " + "; ".join(_period(member) for member in history.members[:ROWS_MAX]) + "."
