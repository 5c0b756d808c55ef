"""A rule pack as a picture: for each type, what ends it and what amends it.

Promise: one row per rule, the later type on the left and the earlier one on the right. What ends a document has a solid
arrow; what amends it has a dashed one and leaves it in force. Rules that `follows` implies are in the picture, too.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

from stream_car.core.rule_pack import REPLACED, Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.pictures import svg
from stream_car.pictures.svg import EDGE

TOP = 76
BOX_WIDTH = 220
BOX_HEIGHT = 30
ROW_HEIGHT = 48
GAP = 260
BLOCK_GAP = 18
WIDTH = 2 * EDGE + 2 * BOX_WIDTH + GAP
LETTERS = 28
NOTE = "A solid arrow ends the document on the right; a dashed one amends it. Below an arrow: what both must share."


def draw_rule_pack(pack: RulePack, ruleset: Ruleset) -> str:
    """Draw what ends and what amends the documents of each type of a pack, which is one of those of the rule set."""
    types = dict.fromkeys((*pack.types, *(rule.superseded_type for rule in pack.rules)))
    order = {name: number for number, name in enumerate(types)}
    derived = (rule for rule in ruleset.derived if rule.superseded_type in types)
    rules = sorted((*pack.rules, *derived), key=lambda rule: (order[rule.superseded_type], rule.effect != "supersede"))
    parts = svg.heading(f"Rule pack {pack.name}", NOTE, 72, 120)
    y = float(TOP)
    for earlier, block in groupby(rules, key=lambda rule: rule.superseded_type):
        rows = list(block)
        parts += _block(earlier, rows, pack, y)
        y += len(rows) * ROW_HEIGHT + BLOCK_GAP
    alone = [name for name in pack.types if all(rule.superseded_type != name for rule in rules)]
    if alone:
        parts.append(svg.text(EDGE, y + 14, "No rule ends or amends these types", "small", "faint"))
        y += 26
        for number, name in enumerate(alone):
            x = EDGE + (number % 3) * (BOX_WIDTH + 16)
            parts += _type(name, pack, x, y + (number // 3) * (BOX_HEIGHT + 12))
        y += -(-len(alone) // 3) * (BOX_HEIGHT + 12)
    title = f"Rule pack {pack.name}"
    return svg.picture(WIDTH, y + EDGE, title=title, description=_description(rules), parts=parts)


def _block(earlier: str, rules: Sequence[Rule], pack: RulePack, y: float) -> Iterator[str]:
    """Yield a type on the right and the rules about it, one below the other."""
    height = len(rules) * ROW_HEIGHT - (ROW_HEIGHT - BOX_HEIGHT)
    yield from _type(earlier, pack, EDGE + BOX_WIDTH + GAP, y, height)
    for number, rule in enumerate(rules):
        row = y + number * ROW_HEIGHT
        yield from _type(rule.superseding_type, pack, EDGE, row)
        yield from _arrow(rule, EDGE + BOX_WIDTH, row + BOX_HEIGHT / 2)


def _arrow(rule: Rule, x: float, y: float) -> Iterator[str]:
    is_ending = rule.effect == "supersede"
    yield svg.line(x + 6, y, x + GAP - 6, y, "line" if is_ending else "line dashed", arrow=True)
    values = f", other {', '.join(rule.differ_on)}" if rule.differ_on else ""
    scope = f"{', '.join(rule.scope_keys)}{values}"
    yield svg.text(x + GAP / 2, y - 5, svg.truncate(_label(rule), 34), "small", anchor="middle")
    yield svg.text(x + GAP / 2, y + 15, svg.truncate(scope, 38), "small", "faint", anchor="middle")


def _label(rule: Rule) -> str:
    if rule.effect == "supersede":
        return rule.outcome or REPLACED
    return "amends, and ends with it" if rule.follows else "amends"


def _type(name: str, pack: RulePack, x: float, y: float, height: float = BOX_HEIGHT) -> Iterator[str]:
    ends_record = pack.states.get(name) in pack.ending_states
    style = "box" if name in pack.types and not ends_record else "superseded"
    yield svg.box(x, y, BOX_WIDTH, height, style, pack.type_descriptions.get(name, ""))
    yield svg.text(x + 12, y + height / 2 + 5, svg.truncate(name, LETTERS))


def _description(rules: Sequence[Rule]) -> str:
    """Describe the picture in words."""
    sentences = []
    for rule in rules:
        verb = "ends" if rule.effect == "supersede" else "amends"
        scope = ", ".join(rule.scope_keys)
        sentences.append(f"{rule.superseding_type} {verb} {rule.superseded_type} ({_label(rule)}) by {scope}.")
    return " ".join(sentences) or "The pack has no rules."
