"""The chain of an answer: the anchor, what superseded it, what superseded that, and what is in force now.

Promise: one row per path, left to right. What is in force is green; everything else is struck out.
"""

from stream_car.pictures import svg
from stream_car.queries.answers import Controlling, DocumentStatus, Evidence, Explanation, Group, Step

LETTERS = 30
BOX_WIDTH = 232
BOX_HEIGHT = 64
ROW_HEIGHT = BOX_HEIGHT + 24
GAP = 190
EDGE = 24
TOP = 56
PATHS_MAX = 20


def draw_explanation(explanation: Explanation) -> str:
    """Draw why a document is or is not in force."""
    if explanation.group is None:
        return _words(f"{explanation.name}: {_in_words(explanation.status)}", "No chain leads from this document.")
    return draw_chain(explanation.group)


def draw_chain(group: Group) -> str:
    """Draw an anchor and each path to what controls it."""
    shown = group.controlling[:PATHS_MAX]
    documents = (*group.superseded, *(item.document for item in group.controlling), group.anchor)
    by_id = {document.id: document for document in documents}
    longest = max((len(item.path) for item in shown), default=0)
    more = len(group.controlling) - len(shown)
    width = 2 * EDGE + (longest + 1) * BOX_WIDTH + longest * GAP
    height = TOP + max(1, len(shown)) * ROW_HEIGHT + (20 if more else 0) + 10
    rows = [_row(item, group.anchor, by_id, TOP + at * ROW_HEIGHT) for at, item in enumerate(shown)]
    if not rows:
        reason = svg.text(EDGE + BOX_WIDTH + 20, TOP + 36, _why_nothing_controls(group), "faint")
        rows = [_box(group.anchor, EDGE, TOP), reason]
    title = f"What controls {group.anchor.id}"
    parts = [svg.text(EDGE, 32, svg.truncate(title, int((width - EDGE) / 8.5)), "head"), *rows]
    if more:
        parts.append(svg.text(EDGE, height - 12, f"and {more} more", "faint"))
    return svg.picture(max(width, 520), height, title=title, description=_description(group), parts=parts)


def _row(item: Controlling, anchor: Evidence, by_id: dict[str, Evidence], y: float) -> str:
    parts = [_box(anchor, EDGE, y)]
    for at, step in enumerate(item.path, 1):
        x = EDGE + at * (BOX_WIDTH + GAP)
        parts += [_arrow(step, x - GAP, y), _box(by_id.get(step.id), x, y, step.id)]
    return "".join(parts)


def _arrow(step: Step, x: float, y: float) -> str:
    center, middle = x + GAP / 2, y + BOX_HEIGHT / 2
    return "".join(
        [
            svg.line(x + 6, middle, x + GAP - 6, middle, arrow=True),
            svg.text(center, middle - 8, svg.truncate(step.rule, 26), "small", anchor="middle"),
            svg.text(center, middle + 18, svg.truncate(step.scope, 27), "small", "faint", anchor="middle"),
        ]
    )


def _box(document: Evidence | None, x: float, y: float, name: str = "") -> str:
    if document is None:
        return svg.box(x, y, BOX_WIDTH, BOX_HEIGHT, "superseded") + svg.text(
            x + 12, y + 26, svg.truncate(name, LETTERS)
        )
    title = document.title or document.id
    facts = svg.truncate(f"{document.type} · {document.time.date()}", 36)
    is_in_force = document.status == "in_force"
    status = svg.truncate(f"{_in_words(document.status)} · {document.id}", 36)
    return "".join(
        [
            svg.box(x, y, BOX_WIDTH, BOX_HEIGHT, "in-force" if is_in_force else "superseded", title),
            svg.text(x + 12, y + 20, svg.truncate(title, LETTERS), "" if is_in_force else "struck"),
            svg.text(x + 12, y + 37, facts, "small", "faint"),
            svg.text(x + 12, y + 54, status, "small"),
        ]
    )


def _in_words(status: DocumentStatus) -> str:
    return status.replace("_", " ")


def _why_nothing_controls(group: Group) -> str:
    if group.cycle:
        return f"these documents supersede one another: {', '.join(group.cycle[:3])}"
    if group.missing:
        return f"its successor {group.missing[0]} was never published"
    return "nothing in force controls it"


def _description(group: Group) -> str:
    """Describe the picture in words."""
    if not group.controlling:
        return f"{group.anchor.id}: {_why_nothing_controls(group)}."
    return " ".join(_describe(item, group.anchor) for item in group.controlling[:PATHS_MAX])


def _describe(item: Controlling, anchor: Evidence) -> str:
    if not item.path:
        return f"{anchor.id} is in force."
    steps = ", ".join(f"is superseded by {step.id} ({step.rule})" for step in item.path)
    return f"{anchor.id} {steps}, which is in force."


def _words(title: str, text: str) -> str:
    parts = [svg.text(EDGE, 32, title, "head"), svg.text(EDGE, 60, text)]
    return svg.picture(520, 90, title=title, description=text, parts=parts)
