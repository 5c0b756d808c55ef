"""Rules as data, and a set of rule packs compiled for look-up.

Promise: nothing here decides supersession; it says which types void which, in which scopes a
document takes part, and what those scopes are called. Cost: one dictionary look-up a question.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product

import msgspec

from stream_car.core.documents import Document, ScopeMap, Value
from stream_car.core.rule_pack import CaseFold, Keys, Rule, RulePack
from stream_car.core.scope_names import RECORD, keys_of, part_name
from stream_car.errors import InvalidDocument


class Clause(Value, frozen=True):
    """Some documents of `type` void through `rule`; `differ_on` names attributes that must differ."""

    type: str
    rule: str
    differ_on: tuple[str, ...]


class TypeRules(Value, frozen=True):
    """What a type means in the scopes of one key set."""

    supersedes: tuple[Clause, ...] = ()  # the types that it voids
    superseded_by: tuple[Clause, ...] = ()  # the types that void it
    amended_by: tuple[Clause, ...] = ()  # the types that amend it
    amends: tuple[Clause, ...] = ()  # the types that it amends
    compared: tuple[str, ...] = ()  # what its entries must say there, sorted
    is_plain: bool = True  # no `differ_on` rule voids it, or any of its victims


RulesByType = Mapping[str, TypeRules]  # by type, for the scopes of one key set
PartsByKey = dict[str, list[str]]  # by key, the `key=value` parts that names of scopes are made of


class ScopeSpec(Value, frozen=True):
    """How the scope maps of a type are read: its rules' key sets, its pack's names and folding, its fixed values."""

    singles: Keys  # the key sets of one key
    joined: tuple[Keys, ...]  # the others
    keys: Mapping[str, tuple[str, CaseFold]]  # as the publisher writes it -> as rules know it
    fixed: PartsByKey


NO_RULES = TypeRules()
SCOPES_MAX = 1024


class Ruleset:
    """Domains compiled for look-up. Equal contents have an equal `digest`, whatever their order."""

    def __init__(self, packs: Iterable[RulePack]) -> None:
        self.packs = tuple(sorted(packs, key=lambda domain: domain.name))
        self.rules = {rule.name: rule for domain in self.packs for rule in domain.rules}
        self.pack_of = {kind: domain for domain in self.packs for kind in domain.types}
        self._rules_by_keys: dict[str, dict[str, TypeRules]] = {}
        self._key_names = {domain.name: _names_of_keys(domain) for domain in self.packs}
        self._scope_specs = {kind: self._scope_spec(kind, domain) for kind, domain in self.pack_of.items()}
        for kind in self.pack_of:
            self._compile(kind)
        self._by_first_key: dict[str, list[tuple[tuple[str, ...], RulesByType]]] = {}
        for keys, bearings in self._rules_by_keys.items():
            first, *others = keys.split(", ")
            self._by_first_key.setdefault(first, []).append((tuple(f", {key}=" for key in others), bearings))
        self._silent = {kind for kind in self.pack_of if not any(b.compared for b in self._all_of(kind))}
        self._amendable = {kind for kind in self.pack_of if any(b.amended_by for b in self._all_of(kind))}
        self.digest = hashlib.sha256(msgspec.json.encode(self.packs, order="sorted")).hexdigest()[:16]
        self._voidable = {kind for kind in self.pack_of if any(b.superseded_by for b in self._all_of(kind))}

    def _keys_for(self, kind: str) -> tuple[Keys, ...]:
        mine = {
            rule.scope_keys for rule in self.rules.values() if kind in (rule.superseding_type, rule.superseded_type)
        }
        return tuple(sorted({tuple(sorted(keys)) for keys in mine} | {(RECORD,)}))

    def _scope_spec(self, kind: str, domain: RulePack) -> ScopeSpec:
        key_sets = self._keys_for(kind)
        wanted = {name for keys in key_sets for name in keys}
        unspelt: dict[str, tuple[str, CaseFold]] = {name: (name, "none") for name in wanted}
        spelt = unspelt | self._key_names[domain.name]
        keys = {key: (name, fold) for key, (name, fold) in spelt.items() if name in wanted}
        values = {name: values for name, values in domain.fixed.get(kind, {}).items() if name in wanted}
        fixed = {name: [part_name(name, value) for value in values] for name, values in values.items()}
        singles = tuple(keys[0] for keys in key_sets if len(keys) == 1)
        return ScopeSpec(singles, tuple(keys for keys in key_sets if len(keys) > 1), keys, fixed)

    def _compile(self, kind: str) -> None:
        by_name = sorted(self.rules.values(), key=lambda rule: rule.name)
        supersede = [rule for rule in by_name if rule.effect == "supersede"]
        amend = [rule for rule in by_name if rule.effect == "amend"]
        for keys in self._keys_for(kind):
            rules = [rule for rule in supersede if tuple(sorted(rule.scope_keys)) == keys]
            amending = [rule for rule in amend if tuple(sorted(rule.scope_keys)) == keys]
            mine = [rule for rule in rules if kind in (rule.superseding_type, rule.superseded_type)]
            victims = {rule.superseded_type for rule in mine if rule.superseding_type == kind}
            self._rules_by_keys.setdefault(", ".join(keys), {})[kind] = TypeRules(
                tuple(_clause(r, r.superseded_type) for r in mine if r.superseding_type == kind),
                tuple(_clause(r, r.superseding_type) for r in mine if r.superseded_type == kind),
                tuple(_clause(r, r.superseding_type) for r in amending if r.superseded_type == kind),
                tuple(_clause(r, r.superseded_type) for r in amending if r.superseding_type == kind),
                tuple(sorted({name for rule in mine for name in rule.differ_on})),
                not any(rule.differ_on for rule in rules if rule.superseded_type in {kind, *victims}),
            )

    def _all_of(self, kind: str) -> list[TypeRules]:
        return [by_type[kind] for by_type in self._rules_by_keys.values() if kind in by_type]

    def knows(self, kind: str) -> bool:
        """Whether some loaded pack declares this type."""
        return kind in self.pack_of

    def rules_by_type(self, scope: str) -> RulesByType:
        """What each type voids, and what voids it, in a scope of this name."""
        if '"' in scope:
            return self._rules_by_keys.get(keys_of(scope), _NO_TYPES)
        commas = scope.count(", ")  # no value has one that is not quoted
        for others, bearings in self._by_first_key.get(scope.partition("=")[0], ()):
            if len(others) == commas:
                for other in others:
                    if other not in scope:
                        break
                else:
                    return bearings
        return _NO_TYPES

    def type_rules(self, scope: str, kind: str) -> TypeRules:
        """What `kind` voids, and what voids it, in a scope of this name."""
        return self.rules_by_type(scope).get(kind, NO_RULES)

    def compared(self, scopes: Sequence[str], document: Document) -> tuple[tuple[str, ...], ...]:
        """For each scope the values, as canonical JSON, that rules compare there; empty if there are none."""
        if document.type in self._silent:
            return ()
        every = tuple(
            tuple(canonical(document.attributes.get(name)) for name in self.type_rules(scope, document.type).compared)
            for scope in scopes
        )
        return every if any(every) else ()

    def elsewhere(self, scopes: Sequence[str], kind: str) -> tuple[int, ...]:
        """For each scope in how many of the others a rule could void this type; empty if in none."""
        if len(scopes) < 2 or kind not in self._voidable:
            return ()
        voidable = [bool(self.type_rules(scope, kind).superseded_by) for scope in scopes]
        total = sum(voidable)
        return tuple(total - own for own in voidable) if total else ()

    def is_amendable(self, kind: str) -> bool:
        """Whether some rule lets another type amend this one."""
        return kind in self._amendable

    def anchor_types(self) -> frozenset[str]:
        """The types that Stage 1 may return."""
        return frozenset(t for d in self.packs for t in (d.anchor_types or d.types))

    def normalize_part(self, key: str, value: str) -> tuple[str, str]:
        """A scope part of a question, as the packs that know its key read it."""
        for spelling in self._key_names.values():
            if key in spelling:
                name, fold = spelling[key]
                return name, folded(value, fold)
        return key, value

    def _parts_of(self, document: Document) -> list[PartsByKey]:
        """Of each scope map what it says; a document without one may still have fixed values."""
        reading = self._scope_specs[document.type]
        return [_parts_by_key(reading, part) for part in document.scope or ({},)]

    def scopes(self, document: Document) -> tuple[str, ...]:
        """The names of the scopes that a document joins by its rules, sorted; links apart.

        Raises `InvalidDocument` (`scope_count`) where they are more than 1,024.
        """
        reading = self._scope_specs[document.type]
        found: list[str] = []
        for part in document.scope or ({},):
            found += _names(reading, part)
        if len(found) < 2:
            return tuple(found)
        names = tuple(sorted(set(found)))
        if len(names) > SCOPES_MAX:
            raise _too_many(document)
        return names

    def missing_keys(self, document: Document) -> tuple[str, ...]:
        """The keys of the type's rules that no scope map of the document has."""
        have = {key for pieces in self._parts_of(document) for key in pieces}
        wanted = {key for keys in self._keys_for(document.type) for key in keys if key != RECORD}
        return tuple(sorted(wanted - have))


def _parts_by_key(reading: ScopeSpec, part: ScopeMap) -> PartsByKey:
    """What one scope map says on the keys that rules ask for; each value once."""
    found: PartsByKey = dict(reading.fixed)
    for key, values in part.items():
        if key in reading.keys:
            name, fold = reading.keys[key]
            said = [part_name(name, folded(value, fold)) for value in values]
            found[name] = list(dict.fromkeys((*found.get(name, ()), *said)))
    return found


def _names(reading: ScopeSpec, part: ScopeMap) -> list[str]:
    """The scopes that one scope map joins; of too many only so many that it shows."""
    if reading.fixed:
        return _products(reading, part)
    said: dict[str, str] = {}
    for key, values in part.items():
        spelling = reading.keys.get(key)
        if spelling is not None:
            name, fold = spelling
            if len(values) != 1 or name in said:
                return _products(reading, part)
            said[name] = part_name(name, values[0] if fold == "none" else folded(values[0], fold))
    found = [said[key] for key in reading.singles if key in said]
    for keys in reading.joined:
        parts = [said[key] for key in keys if key in said]
        if len(parts) == len(keys):
            found.append(", ".join(parts))
    return found


def _products(reading: ScopeSpec, part: ScopeMap) -> list[str]:
    """The names where a key may have several values."""
    pieces = _parts_by_key(reading, part)
    found = [name for key in reading.singles for name in pieces.get(key, ())]
    for keys in reading.joined:
        parts = [pieces[key] for key in keys if key in pieces]
        if len(parts) == len(keys):
            found += map(", ".join, islice(product(*parts), SCOPES_MAX + 1))
    return found


def _names_of_keys(domain: RulePack) -> dict[str, tuple[str, CaseFold]]:
    """How the keys of a pack's documents are called and folded."""
    table: dict[str, tuple[str, CaseFold]] = {}
    for key, spec in domain.keys.items():
        name = spec.rename or key
        table[key] = (name, spec.fold if spec.fold != "none" else domain.keys.get(name, spec).fold)
    return table


def _clause(rule: Rule, kind: str) -> Clause:
    return Clause(kind, rule.name, rule.differ_on)


def _too_many(document: Document) -> InvalidDocument:
    return InvalidDocument("scope_count", f"it would join more than {SCOPES_MAX} scopes", document.id)


_NO_TYPES: RulesByType = {}


def folded(value: str, fold: CaseFold) -> str:
    """The value in the case that its key is compared in."""
    if fold == "lower":
        return value.lower()
    return value.upper() if fold == "upper" else value


def canonical(value: object) -> str:
    """One spelling for equal JSON values."""
    return msgspec.json.encode(value, order="sorted").decode()
