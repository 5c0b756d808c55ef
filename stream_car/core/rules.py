"""Rules as data, and rule packs compiled for look-up.

Promise: nothing here decides supersession. A `Ruleset` says which types void which, which scopes a
document is in, and what those scopes are called. Cost: one dictionary look-up per call.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice, product

import msgspec

from stream_car.core.derived_rules import derived_rules
from stream_car.core.documents import Document, ScopeMap, Value
from stream_car.core.rule_pack import REPLACED, UPDATED, CaseFold, Keys, Rule, RulePack
from stream_car.core.scope_names import RECORD, keys_of, link_scope, part_name, record_scope
from stream_car.errors import InvalidDocument


class Clause(Value, frozen=True):
    """The other side of a rule: a type, the rule's name, and the attributes that must differ."""

    type: str
    rule: str
    differ_on: tuple[str, ...]


class TypeRules(Value, frozen=True):
    """What the rules say of one type in the scopes of one key set."""

    supersedes: tuple[Clause, ...] = ()  # the types that it voids
    superseded_by: tuple[Clause, ...] = ()  # the types that void it
    amended_by: tuple[Clause, ...] = ()  # the types that amend it
    amends: tuple[Clause, ...] = ()  # the types that it amends
    compared: tuple[str, ...] = ()  # the attributes whose values its entries carry there, sorted
    is_plain: bool = True  # no rule with `differ_on` voids this type, or a type that it voids


RulesByType = Mapping[str, TypeRules]  # for the scopes of one key set
PartsByKey = dict[str, list[str]]  # by key, the `key=value` parts from which scope names are made


class ScopeSpec(Value, frozen=True):
    """How the scope maps of a type become scope names."""

    singles: Keys  # its rules' key sets of one key
    joined: tuple[Keys, ...]  # its rules' key sets of several keys
    keys: Mapping[str, tuple[str, CaseFold]]  # key as published -> key as in the rules, and case folding
    fixed: PartsByKey  # the fixed values of its pack


NO_RULES = TypeRules()
SCOPES_MAX = 1024  # scopes of one document


class Ruleset:
    """Rule packs compiled for look-up. Equal packs in any order have an equal `digest`."""

    def __init__(self, packs: Iterable[RulePack]) -> None:
        self.packs = tuple(sorted(packs, key=lambda pack: pack.name))
        stated = [rule for pack in self.packs for rule in pack.rules]
        self.derived = derived_rules(stated)  # the rules that no pack states, because `follows` implies them
        self.rules = {rule.name: rule for rule in (*stated, *self.derived)}
        self.pack_of = {type_name: pack for pack in self.packs for type_name in pack.types}
        self._rules_by_keys: dict[str, dict[str, TypeRules]] = {}
        self._key_names = {pack.name: _key_names(pack) for pack in self.packs}
        self._naming_keys = {pack.name: _naming_keys(pack) for pack in self.packs}
        self._scope_specs = {type_name: self._scope_spec(type_name, pack) for type_name, pack in self.pack_of.items()}
        for type_name in self.pack_of:
            self._compile(type_name)
        self._by_first_key: dict[str, list[tuple[tuple[str, ...], RulesByType]]] = {}
        for keys, by_type in self._rules_by_keys.items():
            first, *others = keys.split(", ")
            self._by_first_key.setdefault(first, []).append((tuple(f", {key}=" for key in others), by_type))
        self._compares_nothing = {name for name in self.pack_of if not any(r.compared for r in self._all_rules(name))}
        self.amendable_types = {name for name in self.pack_of if any(r.amended_by for r in self._all_rules(name))}
        # the types that Stage 1 may return
        self.anchor_types = frozenset(name for pack in self.packs for name in (pack.anchor_types or pack.types))
        self.digest = _digest(self.packs, self.derived)
        # what becomes of a document that a rule voids if something material has changed; that of links is `REPLACED`
        self.outcomes = {rule.name: _outcome(rule) for rule in self.rules.values()}
        # what documents of a type say of their record, and the place of that among the states of their pack
        self.states = {name: state for pack in self.packs for name, state in pack.states.items()}
        self.state_ranks = {name: rank for pack in self.packs for rank, name in enumerate(pack.states)}
        # the types that say that their record no longer holds
        self.ending_types = {name for name, state in self.states.items() if state in self.pack_of[name].ending_states}
        # the scope keys that some rule uses or some pack declares
        self.known_keys = frozenset(
            {RECORD, *(key for rule in self.rules.values() for key in rule.scope_keys)}.union(
                *(pack.keys for pack in self.packs)
            )
        )
        self._voidable = {name for name in self.pack_of if any(r.superseded_by for r in self._all_rules(name))}

    def key_sets(self, type_name: str) -> tuple[Keys, ...]:
        """Return the key sets of the rules about a type, and that of its record."""
        key_sets = {
            tuple(sorted(rule.scope_keys))
            for rule in self.rules.values()
            if type_name in (rule.superseding_type, rule.superseded_type)
        }
        return tuple(sorted(key_sets | {(RECORD,)}))

    def _scope_spec(self, type_name: str, pack: RulePack) -> ScopeSpec:
        key_sets = self.key_sets(type_name)
        wanted = {key for key_set in key_sets for key in key_set}
        as_published: dict[str, tuple[str, CaseFold]] = {key: (key, "none") for key in wanted}
        readings = as_published | self._key_names[pack.name]
        keys = {key: (name, fold) for key, (name, fold) in readings.items() if name in wanted}
        fixed = {
            key: [part_name(key, value) for value in values]
            for key, values in pack.fixed.get(type_name, {}).items()
            if key in wanted
        }
        singles = tuple(key_set[0] for key_set in key_sets if len(key_set) == 1)
        return ScopeSpec(singles, tuple(key_set for key_set in key_sets if len(key_set) > 1), keys, fixed)

    def _compile(self, type_name: str) -> None:
        by_name = sorted(self.rules.values(), key=lambda rule: rule.name)
        supersede = [rule for rule in by_name if rule.effect == "supersede"]
        amend = [rule for rule in by_name if rule.effect == "amend"]
        for keys in self.key_sets(type_name):
            rules = [rule for rule in supersede if tuple(sorted(rule.scope_keys)) == keys]
            amending = [rule for rule in amend if tuple(sorted(rule.scope_keys)) == keys]
            own = [rule for rule in rules if type_name in (rule.superseding_type, rule.superseded_type)]
            voided = {rule.superseded_type for rule in own if rule.superseding_type == type_name}
            self._rules_by_keys.setdefault(", ".join(keys), {})[type_name] = TypeRules(
                tuple(_clause(r, r.superseded_type) for r in own if r.superseding_type == type_name),
                tuple(_clause(r, r.superseding_type) for r in own if r.superseded_type == type_name),
                tuple(_clause(r, r.superseding_type) for r in amending if r.superseded_type == type_name),
                tuple(_clause(r, r.superseded_type) for r in amending if r.superseding_type == type_name),
                tuple(sorted({name for rule in own for name in rule.differ_on})),
                not any(rule.differ_on for rule in rules if rule.superseded_type in {type_name, *voided}),
            )

    def _all_rules(self, type_name: str) -> list[TypeRules]:
        return [by_type[type_name] for by_type in self._rules_by_keys.values() if type_name in by_type]

    def knows(self, type_name: str) -> bool:
        """Return whether a loaded pack declares this type."""
        return type_name in self.pack_of

    def rules_by_type(self, scope: str) -> RulesByType:
        """Return what each type voids, and what voids it, in a scope of this name."""
        if '"' in scope:
            return self._rules_by_keys.get(keys_of(scope), _NO_TYPES)
        commas = scope.count(", ")  # an unquoted value contains none
        for others, by_type in self._by_first_key.get(scope.partition("=")[0], ()):
            if len(others) == commas:
                for other in others:
                    if other not in scope:
                        break
                else:
                    return by_type
        return _NO_TYPES

    def type_rules(self, scope: str, type_name: str) -> TypeRules:
        """Return what a type voids, and what voids it, in a scope of this name."""
        return self.rules_by_type(scope).get(type_name, NO_RULES)

    def compared_values(self, scopes: Sequence[str], document: Document) -> tuple[tuple[str, ...], ...]:
        """Return for each scope the values, as canonical JSON, that rules compare there; empty if there are none."""
        if document.type in self._compares_nothing:
            return ()
        values = tuple(
            tuple(
                canonical_json(document.attributes.get(name)) for name in self.type_rules(scope, document.type).compared
            )
            for scope in scopes
        )
        return values if any(values) else ()

    def counts_elsewhere(self, scopes: Sequence[str], type_name: str) -> tuple[int, ...]:
        """Return for each scope in how many of the others a rule could void this type; empty if in none."""
        if len(scopes) < 2 or type_name not in self._voidable:
            return ()
        voidable = [bool(self.type_rules(scope, type_name).superseded_by) for scope in scopes]
        total = sum(voidable)
        return tuple(total - own for own in voidable) if total else ()

    def normalize_part(self, key: str, value: str) -> tuple[str, str]:
        """Return a `key=value` pair of a query as the rules spell it, read by a pack that knows the key."""
        for readings in self._key_names.values():
            if key in readings:
                name, fold = readings[key]
                return name, fold_case(value, fold)
        return key, value

    def scopes(self, document: Document) -> tuple[str, ...]:
        """Return the names of the scopes that a document joins by its rules, sorted; without link scopes.

        Raises `InvalidDocument` (`scope_count`) if there are more than 1,024.
        """
        spec = self._scope_specs[document.type]
        names: list[str] = []
        for scope_map in document.scope or ({},):
            names += _scope_names(spec, scope_map)
        if len(names) < 2:
            return tuple(names)
        distinct = tuple(sorted(set(names)))
        if len(distinct) > SCOPES_MAX:
            raise _too_many_scopes(document)
        return distinct

    def spelt_scope(self, document: Document) -> tuple[ScopeMap, ...]:
        """Return the scope maps of a document as its pack spells keys and values, also of keys that no rule uses."""
        pack = self.pack_of[document.type]
        readings = self._key_names[pack.name]
        fixed = pack.fixed.get(document.type, {})
        maps: list[ScopeMap] = []
        for scope_map in document.scope or ({},):
            spelt: dict[str, tuple[str, ...]] = dict(fixed)
            for key, values in scope_map.items():
                name, fold = readings.get(key, (key, "none"))
                folded = (fold_case(value, fold) for value in values)
                spelt[name] = tuple(dict.fromkeys((*spelt.get(name, ()), *folded)))
            maps.append(spelt)
        return tuple(maps)

    def names_of(self, documents: Iterable[Document]) -> ScopeMap:
        """Return the names in these documents, by key: the values of keys that their packs mark with `by_name`."""
        names: dict[str, tuple[str, ...]] = {}
        for document in documents:
            keys = self.pack_of[document.type].keys
            for scope_map in self.spelt_scope(document):
                for key in sorted(scope_map.keys() & {key for key, spec in keys.items() if spec.by_name}):
                    names[key] = tuple(dict.fromkeys((*names.get(key, ()), *scope_map[key])))
        return names

    def aliases(self, document: Document) -> tuple[tuple[str, str], ...]:
        """Return the names by which people may ask for a document, each with the scope that it stands for.

        They are the values of keys with `by_name`, at most 1,024. The scope is that of the document's record, or
        without a record the link scope of its id.
        """
        folds = self._naming_keys[self.pack_of[document.type].name]
        if not folds:
            return ()
        names = (
            fold_case(value, folds[key])
            for scope_map in document.scope
            for key in scope_map.keys() & folds.keys()
            for value in scope_map[key]
        )
        records = document.records
        scope = record_scope(records[0]) if records else link_scope(document.id)
        return tuple([(name, scope) for name in dict.fromkeys(islice(names, SCOPES_MAX))])

    def aliases_spelt(self, name: str) -> tuple[str, ...]:
        """Return how `aliases` may spell a name."""
        folds = {fold for keys in self._naming_keys.values() for fold in keys.values()}
        return tuple(dict.fromkeys(fold_case(name, fold) for fold in sorted(folds)))

    def missing_keys(self, document: Document) -> tuple[str, ...]:
        """Return the scope keys that rules of its type use and that no scope map of the document has."""
        spec = self._scope_specs[document.type]
        present = {spec.keys[key][0] for scope_map in document.scope for key in scope_map if key in spec.keys}
        wanted = {*spec.singles, *chain.from_iterable(spec.joined)} - {RECORD}
        return tuple(sorted(wanted - present - spec.fixed.keys()))

    def unknown_keys(self, document: Document) -> tuple[str, ...]:
        """Return the scope keys of a document that no pack mentions, so that they do nothing."""
        return tuple(dict.fromkeys(key for pairs in document.scope for key in pairs if key not in self.known_keys))


def _parts_by_key(spec: ScopeSpec, scope_map: ScopeMap) -> PartsByKey:
    """Return the parts of one scope map, with the fixed ones, for the keys that rules use; each part once."""
    parts_by_key: PartsByKey = dict(spec.fixed)
    for key, values in scope_map.items():
        if key in spec.keys:
            name, fold = spec.keys[key]
            parts = [part_name(name, fold_case(value, fold)) for value in values]
            parts_by_key[name] = list(dict.fromkeys((*parts_by_key.get(name, ()), *parts)))
    return parts_by_key


def _scope_names(spec: ScopeSpec, scope_map: ScopeMap) -> list[str]:
    """Return the names of the scopes that one scope map joins.

    The usual case, one value per key, has a short path. If there are more than `SCOPES_MAX`, only enough names are
    made to show that.
    """
    if spec.fixed:
        return _scope_names_of_product(spec, scope_map)
    part_of: dict[str, str] = {}
    for key, values in scope_map.items():
        reading = spec.keys.get(key)
        if reading is not None:
            name, fold = reading
            if len(values) != 1 or name in part_of:
                return _scope_names_of_product(spec, scope_map)
            part_of[name] = part_name(name, values[0] if fold == "none" else fold_case(values[0], fold))
    names = [part_of[key] for key in spec.singles if key in part_of]
    for keys in spec.joined:
        parts = [part_of[key] for key in keys if key in part_of]
        if len(parts) == len(keys):
            names.append(", ".join(parts))
    return names


def _scope_names_of_product(spec: ScopeSpec, scope_map: ScopeMap) -> list[str]:
    """Return the names if keys may have several values: one for each combination of values."""
    parts_by_key = _parts_by_key(spec, scope_map)
    names = [part for key in spec.singles for part in parts_by_key.get(key, ())]
    for keys in spec.joined:
        alternatives = [parts_by_key[key] for key in keys if key in parts_by_key]
        if len(alternatives) == len(keys):
            names += map(", ".join, islice(product(*alternatives), SCOPES_MAX + 1))
    return names


def _key_names(pack: RulePack) -> dict[str, tuple[str, CaseFold]]:
    """Return for each key of a pack the name that rules use for it, and its case folding."""
    names: dict[str, tuple[str, CaseFold]] = {}
    for key, spec in pack.keys.items():
        name = spec.rename or key
        names[key] = (name, spec.fold if spec.fold != "none" else pack.keys.get(name, spec).fold)
    return names


def _naming_keys(pack: RulePack) -> dict[str, CaseFold]:
    """Return the keys of a pack by whose values people may ask for a document, and their case folding."""
    return {
        key: fold for key, (name, fold) in _key_names(pack).items() if name in pack.keys and pack.keys[name].by_name
    }


def _clause(rule: Rule, type_name: str) -> Clause:
    return Clause(type_name, rule.name, rule.differ_on)


def _too_many_scopes(document: Document) -> InvalidDocument:
    reason = f"The document would join more than {SCOPES_MAX} scopes. Give fewer values per scope key, or split it."
    return InvalidDocument("scope_count", reason, document.id)


_NO_TYPES: RulesByType = {}


def fold_case(value: str, fold: CaseFold) -> str:
    """Return the value in the case in which values of its key are compared."""
    if fold == "lower":
        return value.lower()
    return value.upper() if fold == "upper" else value


def canonical_json(value: object) -> str:
    """Return canonical JSON: one text for equal values."""
    return msgspec.json.encode(value, order="sorted").decode()


def _digest(packs: Sequence[RulePack], derived: Sequence[Rule]) -> str:
    """Return the digest that names a rule set in cursors, in Redis and in Kafka, so its form must never change.

    The names are spelled out here, so that a field can be renamed without a new digest. A field that is added later
    must be left out at its default value. Outcomes and states are left out altogether: they are words for what rules
    decide, so data stays as it is when they change. `follows` counts by the rules that it implies, if there are any.
    """
    form = [
        {
            "name": pack.name,
            "types": pack.types,
            "rules": [_digest_form(rule) for rule in pack.rules],
            "anchor_types": pack.anchor_types,
            "keys": {name: {"fold": key.fold, "rename": key.rename} for name, key in pack.keys.items()},
            "fixed": pack.fixed,
            "description": pack.description,
            "type_descriptions": pack.type_descriptions,
        }
        for pack in packs
    ]
    if derived:
        form.append({"derived": [_digest_form(rule) for rule in derived]})
    return hashlib.sha256(msgspec.json.encode(form, order="sorted")).hexdigest()[:16]


def _digest_form(rule: Rule) -> dict[str, object]:
    return {
        "name": rule.name,
        "superseding_type": rule.superseding_type,
        "superseded_type": rule.superseded_type,
        "scope_keys": rule.scope_keys,
        "effect": rule.effect,
        "differ_on": rule.differ_on,
    }


def _outcome(rule: Rule) -> str:
    return rule.outcome or (UPDATED if rule.scope_keys == (RECORD,) else REPLACED)
