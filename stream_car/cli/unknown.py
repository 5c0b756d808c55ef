"""Names that no rule knows: keys of scopes, types, packs; each with the one that was probably meant."""

from collections.abc import Iterable, Iterator

from stream_car.core.rules import AMENDED, LINK, RECORD, Ruleset
from stream_car.rule_packs.suggestions import meant


def keys(ruleset: Ruleset, asked: Iterable[str]) -> Iterator[str]:
    """What is to be said of keys that no scope can have."""
    declared = {key for domain in ruleset.domains for key in domain.keys}
    known = declared | {key for rule in ruleset.rules.values() for key in rule.scope_keys} | {RECORD, LINK, AMENDED}
    return (f"no rule knows the key {key!r}{meant(key, sorted(known))}" for key in asked if key not in known)


def types(ruleset: Ruleset, asked: Iterable[str]) -> Iterator[str]:
    """What is to be said of types that no document can have."""
    known = sorted(ruleset.domain_of)
    return (f"no pack knows the type {name!r}{meant(name, known)}" for name in asked if not ruleset.knows(name))


def packs(ruleset: Ruleset, asked: Iterable[str]) -> Iterator[str]:
    """What is to be said of packs that are not loaded."""
    known = sorted(domain.name for domain in ruleset.domains)
    return (f"no pack is called {name!r}{meant(name, known)}" for name in asked if name not in known)
