"""What packs must agree on before their rules can run together.

Promise: every disagreement is found, each told as one sentence that says what to change. Packs share
scopes by name, so a key must be read alike wherever it is used. Cost: rules times packs.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from stream_car.core.rule_pack import Key, Rule, RulePack
from stream_car.rule_packs.suggestions import listed, meant

Owned = tuple[RulePack, Rule]


def problems(domains: Sequence[RulePack], elsewhere: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Why these packs cannot be loaded together; nothing where they can.

    `elsewhere` tells which pack that is not loaded declares a type, for a hint; `None` leaves types
    that no pack declares unjudged.
    """
    rules = [(domain, rule) for domain in domains for rule in domain.rules]
    found = [
        *_shared_names(domains),
        *(_unknown_types(domains, elsewhere) if elsewhere is not None else ()),
        *_rule_names(rules),
        *_clashes(rules),
        *_differing(rules),
        *_keys(domains),
        *_foreign_keys(domains),
    ]
    return tuple(dict.fromkeys(found))


def _shared_names(domains: Sequence[RulePack]) -> Iterator[str]:
    for name in _repeated([domain.name for domain in domains]):
        yield f"two packs are called {name!r}; load one of them, or rename the other"
    for first, second in combinations(domains, 2):
        for kind in sorted(set(first.types) & set(second.types)):
            yield f"the type {kind!r} is declared in the packs {first.name!r} and {second.name!r}; keep it in one"


def _unknown_types(domains: Sequence[RulePack], elsewhere: Mapping[str, str]) -> Iterator[str]:
    types = {kind for domain in domains for kind in domain.types}
    for domain in domains:
        for rule in domain.rules:
            for kind in dict.fromkeys((rule.superseding_type, rule.superseded_type)):
                if not kind or kind in types:
                    continue
                unknown = (
                    f"pack {domain.name!r}: the rule {rule.name!r} names the type {kind!r}, "
                    "which no loaded pack declares"
                )
                if kind in elsewhere:
                    yield f"{unknown}; load the pack {elsewhere[kind]!r} too"
                else:
                    yield f"{unknown}; declare it under [types]{meant(kind, [*types, *elsewhere])}"


def _rule_names(rules: Sequence[Owned]) -> Iterator[str]:
    for name in _repeated([rule.name for _, rule in rules if rule.name]):
        owners = dict.fromkeys(domain.name for domain, rule in rules if rule.name == name)
        yield f"more than one rule is called {name!r} (in {listed(owners)}); rename all but one"


def _clashes(rules: Sequence[Owned]) -> Iterator[str]:
    """Two rules about the same types and scope either repeat or contradict one another."""
    for (_, first), (_, second) in combinations(rules, 2):
        if _about(first) != _about(second):
            continue
        if first.effect == second.effect:
            yield f"the rules {first.name!r} and {second.name!r} say the same; remove one"
        else:
            yield (
                f"the rules {first.name!r} and {second.name!r} contradict one another: the same types and scope "
                "both supersede and amend; remove one"
            )


def _differing(rules: Sequence[Owned]) -> Iterator[str]:
    rows = [rule for _, rule in rules if rule.differ_on and rule.effect == "supersede"]
    for first, second in combinations(rows, 2):
        same = (first.superseded_type, first.scope_keys) == (second.superseded_type, second.scope_keys)
        if same and first.differ_on != second.differ_on:
            yield (
                f"the rules {first.name!r} and {second.name!r} void {first.superseded_type!r} in the same scope "
                f"but `differ_on` is {listed(first.differ_on)} in one and {listed(second.differ_on)} in the other; "
                "make them equal"
            )


def _keys(domains: Sequence[RulePack]) -> Iterator[str]:
    """One key has one reading: questions name keys without saying which pack they mean."""
    for first, second in combinations(domains, 2):
        for key in sorted(set(first.keys) & set(second.keys)):
            yield from _reading(key, first, second)


def _reading(key: str, first: RulePack, second: RulePack) -> Iterator[str]:
    one, other = first.keys[key], second.keys[key]
    where = f"the packs {first.name!r} and {second.name!r}"
    if one.rename != other.rename:
        yield (
            f"{where} read the key {key!r} as {one.rename or key!r} and as {other.rename or key!r}; "
            "rename it alike in both, or give one another name"
        )
    elif _fold(key, first) != _fold(key, second):
        via = f" (through {one.rename!r})" if one.rename else ""
        yield (
            f"{where} fold the key {key!r}{via} to {_fold(key, first)!r} and to {_fold(key, second)!r}; "
            "write the same `fold` in both"
        )


def _foreign_keys(domains: Sequence[RulePack]) -> Iterator[str]:
    """A pack reads the keys of its own types only, so a rule for another pack's type needs that pack's reading."""
    owner = {kind: domain for domain in domains for kind in domain.types}
    for domain in domains:
        for rule in domain.rules:
            for kind in (rule.superseding_type, rule.superseded_type):
                other = owner.get(kind, domain)
                if other is not domain:
                    yield from _unread(domain, rule, kind, other)


def _unread(domain: RulePack, rule: Rule, kind: str, other: RulePack) -> Iterator[str]:
    for key in rule.scope_keys:
        if key in domain.keys and key not in other.keys and _fold(key, domain) != "none":
            yield (
                f"pack {domain.name!r}: the rule {rule.name!r} folds {key!r} to {_fold(key, domain)!r}, but documents "
                f"of {kind!r} are read by the pack {other.name!r}, which does not declare it; declare it there, "
                "or do not fold it"
            )


def _fold(key: str, domain: RulePack) -> str:
    spec: Key = domain.keys[key]
    target = domain.keys.get(spec.rename or key, spec)
    return spec.fold if spec.fold != "none" else target.fold


def _about(rule: Rule) -> tuple[str, str, tuple[str, ...]]:
    return rule.superseding_type, rule.superseded_type, rule.scope_keys


def _repeated(names: Collection[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]
