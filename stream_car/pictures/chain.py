"""The chain of an answer: the anchor, what superseded it, what superseded that, and what is in force now.

Promise: one row per path, left to right. What is in force is green; everything else is struck out.
"""

from collections.abc import Iterator, Mapping

from stream_car.pictures import svg
from stream_car.pictures.svg import EDGE
from stream_car.queries.answers import Controlling, Evidence, Explanation, Group, Step

LETTERS = 30
BOX_WIDTH = 232
BOX_HEIGHT = 64
ROW_HEIGHT = BOX_HEIGHT + 24
GAP = 190
TOP = 56
PATHS_MAX = 20


def draw_explanation(explanation: Explanation) -> str:
    """Draw why a document is or is not in force."""
    if explanation.group is not None:
        return draw_chain(explanation.group)
    title, text = f"{explanation.name}: {explanation.status.replace('_', ' ')}", "No chain leads from this document."
    parts = [svg.text(EDGE, 32, title, "head"), svg.text(EDGE, 60, text)]
    return svg.picture(520, 90, title=title, description=text, parts=parts)


def draw_chain(group: Group) -> str:
    """Draw an anchor and each path to what controls it."""
    shown, anchor = group.controlling[:PATHS_MAX], group.anchor
    documents = (*group.superseded, *(item.document for item in group.controlling), anchor)
    by_id = {document.id: document for document in documents}
    longest = max((len(item.path) for item in shown), default=0)
    more = len(group.controlling) - len(shown)
    width = 2 * EDGE + (longest + 1) * BOX_WIDTH + longest * GAP
    height = TOP + max(1, len(shown)) * ROW_HEIGHT + (20 if more else 0) + 10
    title = f"What controls {anchor.id}"
    parts = [svg.text(EDGE, 32, svg.truncate(title, int((width - EDGE) / 8.5)), "head")]
    for at, item in enumerate(shown):
        parts += _row(item, anchor, by_id, TOP + at * ROW_HEIGHT)
    if not shown:
        parts += [
            *_box(anchor, anchor.id, EDGE, TOP),
            svg.text(EDGE + BOX_WIDTH + 20, TOP + 36, _why_nothing_controls(group), "faint"),
        ]
    if more:
        parts.append(svg.text(EDGE, height - 12, f"and {more} more", "faint"))
    return svg.picture(max(width, 520), height, title=title, description=_description(group), parts=parts)


def _row(item: Controlling, anchor: Evidence, by_id: Mapping[str, Evidence], y: float) -> Iterator[str]:
    yield from _box(anchor, anchor.id, EDGE, y)
    for at, step in enumerate(item.path, 1):
        x = EDGE + at * (BOX_WIDTH + GAP)
        yield from _arrow(step, x - GAP, y + BOX_HEIGHT / 2)
        yield from _box(by_id.get(step.id), step.id, x, y)


def _arrow(step: Step, x: float, y: float) -> Iterator[str]:
    yield svg.line(x + 6, y, x + GAP - 6, y, arrow=True)
    yield svg.text(x + GAP / 2, y - 8, svg.truncate(step.rule, 26), "small", anchor="middle")
    yield svg.text(x + GAP / 2, y + 18, svg.truncate(step.scope, 27), "small", "faint", anchor="middle")


def _box(document: Evidence | None, name: str, x: float, y: float) -> Iterator[str]:
    if document is None:
        yield svg.box(x, y, BOX_WIDTH, BOX_HEIGHT, "superseded")
        yield svg.text(x + 12, y + 26, svg.truncate(name, LETTERS))
        return
    title, is_in_force = document.title or name, document.status == "in_force"
    yield svg.box(x, y, BOX_WIDTH, BOX_HEIGHT, "in-force" if is_in_force else "superseded", title)
    yield svg.text(x + 12, y + 20, svg.truncate(title, LETTERS), "" if is_in_force else "struck")
    yield svg.text(x + 12, y + 37, svg.truncate(f"{document.type} · {document.time.date()}", 36), "small", "faint")
    yield svg.text(x + 12, y + 54, svg.truncate(f"{document.status.replace('_', ' ')} · {name}", 36), "small")


def _why_nothing_controls(group: Group) -> str:
    if group.cycle:
        return f"these documents supersede one another: {', '.join(group.cycle[:3])}"
    if group.missing:
        return f"its successor {group.missing[0]} was never published"
    return "nothing in force controls it"


def _description(group: Group) -> str:
    """Describe the picture in words."""
    name, sentences = group.anchor.id, []
    for item in group.controlling[:PATHS_MAX]:
        steps = ", ".join(f"is superseded by {step.id} ({step.rule})" for step in item.path)
        sentences.append(f"{name} {steps}, which is in force." if steps else f"{name} is in force.")
    return " ".join(sentences) or f"{name}: {_why_nothing_controls(group)}."
