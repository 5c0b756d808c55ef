"""Check that packs can be loaded together.

Promise: every disagreement is found, and each is reported as a text that says what to change. Packs share scopes by
name, so a key must be read in the same way wherever it is used. Cost: rules times packs.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product

from stream_car.core.derived_rules import derived_rules, types_and_scope
from stream_car.core.rule_pack import Key, Rule, RulePack
from stream_car.suggest import did_you_mean, join_names


def find_problems(packs: Sequence[RulePack], elsewhere: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return why these packs cannot be loaded together, or nothing if they can.

    `elsewhere` gives for each type the pack that declares it but is not loaded, for hints. If it is `None`, types
    that no pack declares are not reported.
    """
    rules = [rule for pack in packs for rule in pack.rules]
    problems = [
        *_shared_names(packs),
        *(_unknown_types(packs, elsewhere) if elsewhere is not None else ()),
        *_repeated_rule_names(packs),
        *_conflicting_rules(rules),
        *_unequal_differ_on(rules),
        *_unfollowable(rules),
        *_derived_names(rules),
        *_unequal_keys(packs),
        *_foreign_keys(packs),
    ]
    return tuple(dict.fromkeys(problems))


def _shared_names(packs: Sequence[RulePack]) -> Iterator[str]:
    for name, count in Counter(pack.name for pack in packs).items():
        if count > 1:
            yield f"Two packs are called {name!r}. Load only one of them, or rename one."
    for a, b in combinations(packs, 2):
        for type_name in sorted(set(a.types) & set(b.types)):
            yield f"The type {type_name!r} is declared in the packs {a.name!r} and {b.name!r}. Keep it in one of them."


def _unknown_types(packs: Sequence[RulePack], elsewhere: Mapping[str, str]) -> Iterator[str]:
    types = {type_name for pack in packs for type_name in pack.types}
    users: dict[tuple[str, str], list[str]] = {}
    for pack, rule, type_name in _types_of_rules(packs):
        if type_name and type_name not in types:
            users.setdefault((pack.name, type_name), []).append(rule.name)
    for (pack_name, type_name), names in users.items():
        cure = f"Declare it under [types].{did_you_mean(type_name, [*types, *elsewhere])}"
        if type_name in elsewhere:
            cure = f"Load the pack {elsewhere[type_name]!r} too."
        rules = "The rule" if len(names) == 1 else "The rules"
        verb = "names" if len(names) == 1 else "name"
        subject = f"{rules} {join_names(names)} of the pack {pack_name!r}"
        yield f"{subject} {verb} the type {type_name!r}, which no loaded pack declares. {cure}"


def _types_of_rules(packs: Sequence[RulePack]) -> Iterator[tuple[RulePack, Rule, str]]:
    """Yield the types that every rule names, each with the rule and its pack."""
    for pack in packs:
        for rule in pack.rules:
            for type_name in dict.fromkeys((rule.superseding_type, rule.superseded_type)):
                yield pack, rule, type_name


def _repeated_rule_names(packs: Sequence[RulePack]) -> Iterator[str]:
    owners: dict[str, list[str]] = {}
    for pack in packs:
        for rule in pack.rules:
            owners.setdefault(rule.name, []).append(pack.name)
    for name, names in owners.items():
        if name and len(names) > 1:
            yield f"More than one rule is called {name!r} (in {join_names(dict.fromkeys(names))}). Rename all but one."


def _conflicting_rules(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield the pairs of rules about the same types and scope: they either repeat or contradict each other."""
    for a, b in combinations(rules, 2):
        if types_and_scope(a) != types_and_scope(b):
            continue
        if a.effect == b.effect:
            yield f"The rules {a.name!r} and {b.name!r} have the same types, scope and effect. Remove one of them."
        else:
            yield (
                f"The rules {a.name!r} and {b.name!r} contradict each other: for the same types and scope, "
                "one supersedes and the other amends. Remove one of them."
            )


def _unequal_differ_on(rules: Sequence[Rule]) -> Iterator[str]:
    comparing = [rule for rule in rules if rule.differ_on and rule.effect == "supersede"]
    for a, b in combinations(comparing, 2):
        if (a.superseded_type, a.scope_keys) == (b.superseded_type, b.scope_keys) and a.differ_on != b.differ_on:
            yield (
                f"The rules {a.name!r} and {b.name!r} void {a.superseded_type!r} in the same scope, "
                f"but `differ_on` is {join_names(a.differ_on)} in one and {join_names(b.differ_on)} in the other. "
                "Make them equal."
            )


def _unfollowable(rules: Sequence[Rule]) -> Iterator[str]:
    """Yield the amendments that follow what a rule with `differ_on` voids: only the values of others tell."""
    stated = {types_and_scope(rule) for rule in rules}
    for amendment, ending in product(rules, rules):
        if not amendment.follows or ending.effect != "supersede" or not ending.differ_on:
            continue
        kind = amendment.superseding_type
        own = (ending.superseding_type, kind, types_and_scope(ending)[2])
        shares_scope = set(ending.scope_keys) <= set(amendment.scope_keys)
        if ending.superseded_type == amendment.superseded_type and shares_scope and own not in stated:
            yield (
                f"The rule {amendment.name!r} follows {ending.superseded_type!r}, but the rule {ending.name!r} voids "
                f"that only if {join_names(ending.differ_on)} differs, which {kind!r} cannot know. Write a rule by "
                f"which {ending.superseding_type!r} voids {kind!r}, or remove `follows`."
            )


def _derived_names(rules: Sequence[Rule]) -> Iterator[str]:
    names = {rule.name for rule in rules}
    for rule in derived_rules(rules):
        if rule.name in names:
            yield f"The rule {rule.name!r} has the name of a rule that `follows` implies. Rename it."


def _unequal_keys(packs: Sequence[RulePack]) -> Iterator[str]:
    """Yield the keys that two packs read differently. Queries name a key without a pack, so all must agree on it."""
    for a, b in combinations(packs, 2):
        names = f"The packs {a.name!r} and {b.name!r}"
        for key in sorted(set(a.keys) & set(b.keys)):
            rename, other_rename = a.keys[key].rename, b.keys[key].rename
            if rename != other_rename:
                yield (
                    f"{names} read the key {key!r} as {rename or key!r} and as {other_rename or key!r}. "
                    "Rename it to the same key in both, or give it another name in one of them."
                )
            elif _fold(key, a) != _fold(key, b):
                via = f" (through {rename!r})" if rename else ""
                yield (
                    f"{names} fold the key {key!r}{via} to {_fold(key, a)!r} and to {_fold(key, b)!r}. "
                    "Write the same `fold` in both."
                )


def _foreign_keys(packs: Sequence[RulePack]) -> Iterator[str]:
    """Yield the rules for another pack's type that fold a key which that pack does not declare.

    A pack reads only the keys of its own types, so it is the other pack that reads the key.
    """
    owner = {type_name: pack for pack in packs for type_name in pack.types}
    for pack, rule, type_name in _types_of_rules(packs):
        reader = owner.get(type_name, pack)
        for key in rule.scope_keys if reader is not pack else ():
            if key in pack.keys and key not in reader.keys and _fold(key, pack) != "none":
                yield (
                    f"The rule {rule.name!r} of the pack {pack.name!r} folds {key!r} to {_fold(key, pack)!r}, but "
                    f"documents of {type_name!r} are read by the pack {reader.name!r}, which does not declare that "
                    "key. Declare it there, or do not fold it."
                )


def _fold(key: str, pack: RulePack) -> str:
    spec: Key = pack.keys[key]
    target = pack.keys.get(spec.rename or key, spec)
    return spec.fold if spec.fold != "none" else target.fold
