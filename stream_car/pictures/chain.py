"""The chain of an answer: the anchor, what voided it, what voided that, and what is in force now.

Promise: one row a path, left to right; what is in force is green and whole, what is void is struck out.
"""

from stream_car.codec import format_time
from stream_car.pictures import svg
from stream_car.queries.answers import Controlling, Evidence, Explanation, Group, Step

LETTERS = 30
WIDE = 232
HIGH = 64
GAP = 190
EDGE = 24
TOP = 56
PATHS_MAX = 20


def explained(said: Explanation) -> str:
    """Why a document is or is not in force."""
    if said.group is None:
        return _words(f"{said.asked}: {said.status}", "Nothing leads from it.")
    return chain(said.group)


def chain(group: Group) -> str:
    """An anchor and each path to what controls it."""
    shown = group.controlling[:PATHS_MAX]
    known = {one.id: one for one in (*group.passed, *(item.document for item in group.controlling), group.anchor)}
    longest = max((len(item.path) for item in shown), default=0)
    width = 2 * EDGE + (longest + 1) * WIDE + longest * GAP
    height = TOP + max(1, len(shown)) * (HIGH + 24) + (20 if len(group.controlling) > PATHS_MAX else 0) + 10
    rows = [_row(item, group.anchor, known, TOP + at * (HIGH + 24)) for at, item in enumerate(shown)]
    if not rows:
        rows = [_box(group.anchor, EDGE, TOP), svg.text(EDGE + WIDE + 20, TOP + 36, _amiss(group), "faint")]
    more = len(group.controlling) - len(shown)
    parts = [svg.text(EDGE, 32, svg.cut(f"What controls {group.anchor.id}", int((width - EDGE) / 8.5)), "head"), *rows]
    if more:
        parts.append(svg.text(EDGE, height - 12, f"and {more} more", "faint"))
    return svg.picture(
        max(width, 520), height, title=f"What controls {group.anchor.id}", description=_described(group), parts=parts
    )


def _row(item: Controlling, anchor: Evidence, known: dict[str, Evidence], y: float) -> str:
    parts = [_box(anchor, EDGE, y)]
    for at, step in enumerate(item.path, 1):
        x = EDGE + at * (WIDE + GAP)
        parts += [_arrow(step, x - GAP, y), _box(known.get(step.id), x, y, step.id)]
    return "".join(parts)


def _arrow(step: Step, x: float, y: float) -> str:
    middle = x + GAP / 2
    return "".join(
        [
            svg.line(x + 6, y + HIGH / 2, x + GAP - 6, y + HIGH / 2, arrow=True),
            svg.text(middle, y + HIGH / 2 - 8, svg.cut(step.rule, 26), "small", anchor="middle"),
            svg.text(middle, y + HIGH / 2 + 18, svg.cut(step.scope, 27), "small", "faint", anchor="middle"),
        ]
    )


def _box(document: Evidence | None, x: float, y: float, name: str = "") -> str:
    if document is None:
        return svg.box(x, y, WIDE, HIGH, "void") + svg.text(x + 12, y + 26, svg.cut(name, LETTERS))
    title = svg.cut(document.title or document.id, LETTERS)
    facts = svg.cut(f"{document.type} · {format_time(document.time)[:10]}", 36)
    return "".join(
        [
            svg.box(x, y, WIDE, HIGH, "force" if document.active else "void", document.title or document.id),
            svg.text(x + 12, y + 20, title, "" if document.active else "struck"),
            svg.text(x + 12, y + 37, facts, "small", "faint"),
            svg.text(
                x + 12, y + 54, svg.cut(("in force · " if document.active else "void · ") + document.id, 36), "small"
            ),
        ]
    )


def _amiss(group: Group) -> str:
    if group.cycle:
        return f"void: these void one another: {', '.join(group.cycle[:3])}"
    if group.missing:
        return f"void: its successor {group.missing[0]} is not here"
    return "nothing controls it"


def _described(group: Group) -> str:
    """The picture in words."""
    if not group.controlling:
        return f"{group.anchor.id} is void; {_amiss(group)}."
    return " ".join(_told(item, group.anchor) for item in group.controlling[:PATHS_MAX])


def _told(item: Controlling, anchor: Evidence) -> str:
    if not item.path:
        return f"{anchor.id} is in force."
    return (
        f"{anchor.id} " + ", ".join(f"is void by {one.id} ({one.rule})" for one in item.path) + ", which is in force."
    )


def _words(title: str, said: str) -> str:
    return svg.picture(
        520, 90, title=title, description=said, parts=[svg.text(EDGE, 32, title, "head"), svg.text(EDGE, 60, said)]
    )
