"""The rules that follow from `follows = true`: whatever ends what an amendment amends ends the amendment, too.

Promise: a derived rule is a rule like any other, so nothing else knows of amendments that follow. A rule that a pack
states about the same types and scope takes precedence, with its own outcome. Cost: rules times rules, once when packs
are loaded.

A rule can be followed into a scope if the keys of that scope are among those by which the amendment amends: then the
amendment shares every such scope with what it amends. What else may end a document (its record, a wider set of keys,
a link) is none of these.
"""

from collections.abc import Iterable, Iterator, Sequence

from stream_car.core.rule_pack import BASE_ENDED, Keys, Rule

TypesAndScope = tuple[str, str, Keys]  # the superseding type, the superseded type, and the keys of a rule


def derived_rules(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return the rules that void amendments because others void what they amend, sorted by name.

    An amendment of an amendment follows, too.
    """
    by_name = sorted(rules, key=lambda rule: rule.name)
    amending = [rule for rule in by_name if rule.effect == "amend" and rule.follows]
    known = {types_and_scope(rule) for rule in by_name}
    derived: list[Rule] = []
    ending = [rule for rule in by_name if rule.effect == "supersede"]
    while ending and amending:
        ending = [rule for amendment in amending for rule in _followed(amendment, ending, known)]
        derived += ending
    return tuple(sorted(derived, key=lambda rule: rule.name))


def can_follow(amendment: Rule, ending: Rule) -> bool:
    """Return whether an amendment shares every scope in which `ending` voids what it amends.

    With `differ_on` it is the values of the two others that decide, so no rule about the amendment can.
    """
    return set(ending.scope_keys) <= set(amendment.scope_keys) and not ending.differ_on


def types_and_scope(rule: Rule) -> TypesAndScope:
    """Return what two rules must not have in common."""
    return rule.superseding_type, rule.superseded_type, tuple(sorted(rule.scope_keys))


def _followed(amendment: Rule, endings: Sequence[Rule], known: set[TypesAndScope]) -> Iterator[Rule]:
    for ending in endings:
        if ending.superseded_type != amendment.superseded_type or not can_follow(amendment, ending):
            continue
        rule = Rule(
            name=f"{ending.name}-ends-{amendment.superseding_type}",
            superseding_type=ending.superseding_type,
            superseded_type=amendment.superseding_type,
            scope_keys=tuple(sorted(ending.scope_keys)),
            outcome=BASE_ENDED,
        )
        if types_and_scope(rule) not in known:
            known.add(types_and_scope(rule))
            yield rule
