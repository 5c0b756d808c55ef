"""Find what is allowed in a pack and is probably not meant.

Promise: each weakness is a sentence that says what to change. Only rules are judged: links may end any document.
Cost: rules times rules.
"""

from collections.abc import Iterator, Sequence

from stream_car.core.derived_rules import can_follow
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.suggest import join_names


def find_weaknesses(pack: RulePack, ruleset: Ruleset) -> tuple[str, ...]:
    """Return what is probably not meant in a pack, which is one of those of the rule set."""
    voiding = [rule for rule in ruleset.rules.values() if rule.effect == "supersede"]
    return (
        *(text for rule in pack.rules if rule.effect == "amend" for text in _outliving(rule, voiding)),
        *_endless(pack, voiding),
        *_unused_keys(pack, ruleset),
    )


def _outliving(amendment: Rule, voiding: Sequence[Rule]) -> Iterator[str]:
    """Yield how amendments stay in force although what they amend has ended."""
    kind, base = amendment.superseding_type, amendment.superseded_type
    if amendment.follows is False:
        return
    endings = outlived(amendment, voiding)
    if amendment.follows is None and endings:
        enders = join_names(dict.fromkeys(rule.superseding_type for rule in endings), "or")
        cure = f"Add follows = true to the rule {amendment.name!r}, or follows = false if it is to stay."
        yield f"A {kind!r} stays in force when {enders} ends the {base!r} that it amends. {cure}"
        return
    by_keys: dict[str, dict[str, None]] = {}
    for rule in endings:
        if not can_follow(amendment, rule):
            by_keys.setdefault(join_names(rule.scope_keys), {})[rule.superseding_type] = None
    for keys, enders_there in by_keys.items():
        yield (
            f"A {kind!r} stays in force when {join_names(enders_there, 'or')} ends the {base!r} that it amends by "
            f"{keys}: the rule {amendment.name!r} does not require that they share it. If it is to end, add a rule "
            "that says so."
        )


def outlived(amendment: Rule, voiding: Sequence[Rule]) -> list[Rule]:
    """Return the rules that void what an amendment amends and may leave the amendment in force.

    They are exactly those, unless the pack ends the amendment by the same type and keys, as its author thinks right.
    """
    own = [rule for rule in voiding if rule.superseded_type == amendment.superseding_type]
    endings = [rule for rule in voiding if rule.superseded_type == amendment.superseded_type]
    return [ending for ending in endings if not any(_covers(rule, ending, amendment) for rule in own)]


def _covers(own: Rule, ending: Rule, amendment: Rule) -> bool:
    """Return whether a rule ends an amendment wherever another ends what it amends, or its author meant it to."""
    if own.superseding_type != ending.superseding_type:
        return False
    keys, shared = set(own.scope_keys), set(ending.scope_keys) & set(amendment.scope_keys)
    return keys == set(ending.scope_keys) or keys <= shared


def _endless(pack: RulePack, voiding: Sequence[Rule]) -> Iterator[str]:
    ended = {rule.superseded_type for rule in voiding}
    endless = [name for name in pack.types if name not in ended]
    if endless:
        subject = "documents of the type" if len(endless) == 1 else "documents of the types"
        yield f"No rule ends {subject} {join_names(endless)}. Only a link or a retraction does."


def _unused_keys(pack: RulePack, ruleset: Ruleset) -> Iterator[str]:
    used = {key for name in pack.types for keys in ruleset.key_sets(name) for key in keys}
    for name, key in pack.keys.items():
        target = key.rename or name
        if target not in used and not pack.keys.get(target, key).by_name:
            yield f"No type has the key {name!r}: no rule about a type of this pack uses it. Remove it, or add a rule."
