"""The timeline of a scope: from when to when each document was in force, and what ended it.

Promise: one row per member, oldest first. A bar runs from the time a member takes effect to the time it was superseded;
the bar of a member in force is green and runs to the edge. Widths are proportional to time.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from stream_car.pictures import svg
from stream_car.pictures.svg import EDGE
from stream_car.queries.answers import History, TimelineMember

ROW_HEIGHT = 38
TOP = 70
LEFT = EDGE + 250  # of the bars; the names are before them
BAR_WIDTH = 560
ROWS_MAX = 60
TICKS = 4
DAY = timedelta(days=1)


def draw_timelines(histories: Sequence[History]) -> str:
    """Draw scopes one below the other."""
    title = "Timeline of " + "; ".join(history.scope for history in histories[:3])
    parts: list[str] = []
    y = 0.0
    for history in histories:
        parts += _scope(history, y)
        y += _height(history)
    if not histories:
        title, y = "No scope has these values", 80
        parts = [svg.text(EDGE, 44, title, "head")]
    description = " ".join(map(_describe, histories))
    return svg.picture(LEFT + BAR_WIDTH + EDGE, y, title=title, description=description, parts=parts)


def _height(history: History) -> float:
    return TOP + ROW_HEIGHT * max(1, min(len(history.members), ROWS_MAX)) + 30


def _scope(history: History, y: float) -> Iterator[str]:
    shown = history.members[:ROWS_MAX]
    yield svg.text(EDGE, y + 32, svg.truncate(history.scope, 100), "head")
    if not shown:
        return
    first, last = _span(shown)
    yield from _ticks(first, last, y + TOP, y + TOP + ROW_HEIGHT * len(shown))
    for at, member in enumerate(shown):
        yield from _row(member, y + TOP + at * ROW_HEIGHT, first, last)
    if more := len(history.members) - len(shown):
        yield svg.text(EDGE, y + _height(history) - 8, f"and {more} more", "faint")


def _span(members: Sequence[TimelineMember]) -> tuple[datetime, datetime]:
    """Return the times at the two edges, with some room after the last event for what is in force."""
    times = [member.time for member in members]
    times += [member.ended.time for member in members if member.ended is not None]
    first, last = min(times), max(times)
    return first, last + max((last - first) / 6, DAY)


def _x(time: datetime, first: datetime, last: datetime) -> float:
    return LEFT + BAR_WIDTH * (time - first) / (last - first)


def _ticks(first: datetime, last: datetime, top: float, bottom: float) -> Iterator[str]:
    previous = None
    for at in range(TICKS):
        time = first + (last - first) * at / TICKS
        x = _x(time, first, last)
        yield svg.line(x, top - 12, x, bottom, "grid")
        if time.date() != previous:
            yield svg.text(x, top - 16, str(time.date()), "small", "faint")
        previous = time.date()


def _row(member: TimelineMember, y: float, first: datetime, last: datetime) -> Iterator[str]:
    ended = member.ended
    start = _x(member.time, first, last)
    end = _x(ended.time if ended else last, first, last)
    yield svg.text(EDGE, y + 14, svg.truncate(member.title or member.id, 32), "struck" if ended else "")
    yield svg.text(EDGE, y + 29, svg.truncate(f"{member.type} · {member.id}", 40), "small", "faint")
    yield svg.box(start, y + 6, max(end - start, 3), 14, "bar" if ended else "current", _period(member), radius=3)
    if ended:
        label = svg.truncate(f"{ended.rule}: {ended.id}", 44)
        width = svg.text_width(label)
        x, label_y, anchor = end + 6, y + 17, "start"
        if end > LEFT + BAR_WIDTH * 0.62 and start - LEFT > width:  # room before the bar
            x, anchor = start - 6, "end"
        elif end + width * 0.85 > LEFT + BAR_WIDTH + EDGE:  # no room beside the bar
            x, label_y, anchor = end, y + 33, "end"
        yield svg.line(end, y + 2, end, y + 24, "mark")
        yield svg.text(x, label_y, label, "small", "faint", anchor=anchor)


def _period(member: TimelineMember) -> str:
    period = f"{member.id} is in force from {member.time.date()}"
    if member.ended is None:
        return period
    return f"{period} to {member.ended.time.date()}, ended by {member.ended.id} ({member.ended.rule})"


def _describe(history: History) -> str:
    return f"{history.scope}: " + "; ".join(_period(member) for member in history.members[:ROWS_MAX]) + "."
