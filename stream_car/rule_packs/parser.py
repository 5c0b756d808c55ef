"""Parse the text of one rule pack, and list everything that is wrong with it.

Promise: parsing never stops at the first problem, and each problem is a text that says what to change. Problems
that can only be judged together with other packs are left to `consistency`.
"""

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product
from typing import Literal, cast
from unicodedata import is_normalized

from stream_car.core.rule_pack import UPDATED, CaseFold, Key, Rule, RulePack
from stream_car.core.rules import fold_case
from stream_car.core.scope_names import RECORD, RESERVED_KEYS
from stream_car.suggest import did_you_mean, join_names

Table = Mapping[str, object]
ParsedPack = tuple[RulePack | None, tuple[str, ...]]  # the pack, if there is one, and the problems

_PACK_FIELDS = (
    "name",
    "description",
    "anchor_types",
    "editions",
    "edition_outcomes",
    "ending_states",
    "material",
    "types",
    "states",
    "keys",
    "rules",
    "fixed",
)
_KEY_FIELDS = ("fold", "rename", "by_name")
_RULE_FIELDS = ("name", "superseding", "superseded", "scope", "effect", "differ_on", "outcome", "material", "follows")
_FOLDS = ("none", "lower", "upper")
_EFFECTS = ("supersede", "amend")
_FORBIDDEN_CHARACTERS = frozenset('=,"\\')


def parse_pack(text: str, source: str) -> ParsedPack:
    """Return the pack that the text describes, as far as it can be read, and what is wrong with it.

    If the text is not TOML there is no pack. `source` names the text in problems, usually by its path.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = str(error).replace("at end of document", f"at line {text.count(chr(10)) + 1}, the end")
        return None, (f"{source}: The text is not TOML: {place}.",)
    parser = _Parser(source)
    return parser.pack(table), tuple(dict.fromkeys(parser.problems))


class _Parser:
    """Collects the problems of one source while its tables are parsed."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[str] = []
        self.undeclared: dict[str, list[str]] = {}  # keys, and what uses each

    def report(self, problem: str) -> None:
        self.problems.append(f"{self.source}: {problem[:1].upper()}{problem[1:]}")

    def pack(self, table: Table) -> RulePack:
        self.check_fields(table, _PACK_FIELDS, "the pack")
        name = self.name(table, "the pack", "pack")
        types = self.types(table)
        keys = self.keys(self.table(table, "keys", "[keys.NAME]"))
        states = self.states(self.table(table, "states", "[states]"), types)
        rules = (*self.rules(table, keys), *self.editions(table, tuple(types), states))
        if not types and not rules:
            self.report("the pack has neither types nor rules. Declare types under [types], or add [[rules]].")
        anchor_types = self.strings(table, "anchor_types", "`anchor_types`", default=())
        for anchor in anchor_types:
            self.check_type(anchor, "`anchor_types` names", types)
        fixed = self.fixed(self.table(table, "fixed", "[fixed.TYPE]"), tuple(types), keys)
        self.report_undeclared(keys)
        return RulePack(
            name=name or self.source,
            types=tuple(types),
            rules=rules,
            anchor_types=anchor_types,
            keys=keys,
            fixed=fixed,
            description=self.text(table, "description", "the pack", required=False),
            type_descriptions=types,
            states=states,
            ending_states=self.ending_states(table, states),
        )

    def types(self, table: Table) -> dict[str, str]:
        descriptions: dict[str, str] = {}
        for name, description in self.table(table, "types", "[types]").items():
            self.check_name(name, "type")
            if not isinstance(description, str):
                self.report(f'the type {name!r} needs a description of one sentence. Write {name} = "...".')
            descriptions[name] = description if isinstance(description, str) else ""
        return descriptions

    def states(self, table: Table, types: Iterable[str]) -> dict[str, str]:
        for name in table:
            self.check_type(name, "[states] names", types)
        return {name: self.label(table, name, "[states]") for name in table}

    def ending_states(self, table: Table, states: Mapping[str, str]) -> tuple[str, ...]:
        names = self.strings(table, "ending_states", "`ending_states`", default=())
        for name in names:
            if name not in states.values():
                hint = did_you_mean(name, states.values())
                self.report(f"`ending_states` names {name!r}, which [states] gives to no type.{hint}")
        return names

    def label(self, table: Table, field: str, owner: str) -> str:
        """Return a state or an outcome: one word, so that programs can compare it."""
        value = self.text(table, field, owner)
        if value:
            self.check_name(value, "state" if owner == "[states]" else "outcome")
        return value

    def keys(self, table: Table) -> dict[str, Key]:
        keys = {}
        for name in table:
            self.check_name(name, "key")
            spec = self.table(table, name, f"[keys.{name}]")
            self.check_fields(spec, _KEY_FIELDS, f"the key {name!r}")
            fold = self.choice(spec, "fold", _FOLDS, f"the key {name!r}")
            rename = self.text(spec, "rename", f"the key {name!r}", required=False) or None
            keys[name] = Key(fold=cast(CaseFold, fold), rename=rename, by_name=self.flag(spec, "by_name", name))
        for name, key in keys.items():
            self.check_key(name, key, keys)
        return keys

    def flag(self, spec: Table, field: str, key: str) -> bool:
        value = spec.get(field, False)
        if value is True and "rename" in spec:
            self.report(f"the key {key!r} is renamed. Give `{field}` to the key {spec['rename']!r} instead.")
        elif not isinstance(value, bool):
            self.report(f"{field!r} of the key {key!r} must be true or false.")
        return value is True

    def check_key(self, name: str, key: Key, keys: Mapping[str, Key]) -> None:
        if name in RESERVED_KEYS or key.rename in RESERVED_KEYS:
            word = name if name in RESERVED_KEYS else key.rename
            self.report(f"the key {word!r} is reserved for explicit links. Choose another name.")
        elif name == RECORD and key != Key():
            self.report(f"the key {RECORD!r} names editions and is always read as written. Remove [keys.{RECORD}].")
        elif key.rename == RECORD:
            self.report(f"the key {name!r} cannot be renamed to {RECORD!r}. Let the publisher write {RECORD!r}.")
        elif key.rename == name:
            self.report(f"the key {name!r} is renamed to itself. Remove `rename`.")
        elif key.rename is not None:
            self.check_target(name, key, keys.get(key.rename), keys)

    def check_target(self, name: str, key: Key, target: Key | None, keys: Mapping[str, Key]) -> None:
        if target is None:
            hint = did_you_mean(key.rename or "", keys)
            self.report(
                f"the key {name!r} is renamed to {key.rename!r}, which is not declared. Add [keys.{key.rename}].{hint}"
            )
        elif target.rename is not None:
            self.report(
                f"the key {name!r} is renamed to {key.rename!r}, which is itself renamed. "
                f"Rename {name!r} to {target.rename!r} directly."
            )
        elif key.fold not in ("none", target.fold):
            self.report(
                f"the key {name!r} is folded to {key.fold!r} but renamed to {key.rename!r}, which is folded "
                f"to {target.fold!r}. Remove `fold` from [keys.{name}]."
            )

    def rules(self, table: Table, keys: Mapping[str, Key]) -> tuple[Rule, ...]:
        rows = table.get("rules", [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            self.report("`rules` must be a list of tables. Begin every rule with [[rules]].")
            return ()
        return tuple(self.rule(row, number, keys) for number, row in enumerate(rows, 1))

    def rule(self, row: Table, number: int, keys: Mapping[str, Key]) -> Rule:
        name = self.name(row, f"rule {number}", "rule")
        label = f"the rule {name!r}" if name else f"rule {number}"
        self.check_fields(row, _RULE_FIELDS, label)
        scope = self.strings(row, "scope", f"`scope` of {label}")
        for key in scope:
            self.check_key_use(key, label, keys)
        if len(set(scope)) < len(scope):
            self.report(f"{label} names a key of its scope twice. Write each key once.")
        effect = cast(Literal["supersede", "amend"], self.choice(row, "effect", _EFFECTS, label))
        differ_on = self.strings(row, "differ_on", f"`differ_on` of {label}", default=())
        if effect == "amend" and differ_on:
            self.report(f"{label} amends, so `differ_on` would have no effect. Remove `differ_on` or `effect`.")
        if effect == "amend" and ("outcome" in row or "material" in row):
            self.report(f"{label} amends, so nothing becomes of the earlier document. Remove `outcome` and `material`.")
        follows = row.get("follows")
        if effect != "amend" and follows is not None:
            self.report(f'{label} supersedes, so `follows` would have no effect. Remove it, or add effect = "amend".')
        elif not isinstance(follows, bool | None):
            self.report(f"'follows' of {label} must be true or false.")
        return Rule(
            name=name,
            superseding_type=self.text(row, "superseding", label),
            superseded_type=self.text(row, "superseded", label),
            scope_keys=tuple(sorted(set(scope))),
            effect=effect,
            differ_on=tuple(sorted(set(differ_on))),
            outcome=self.label(row, "outcome", label) if "outcome" in row else "",
            material=self.strings(row, "material", f"`material` of {label}", default=()),
            follows=follows if isinstance(follows, bool) else None,
        )

    def check_key_use(self, key: str, user: str, keys: Mapping[str, Key]) -> None:
        """Report a key that a rule or a fixed value names if documents can never have it."""
        if key in RESERVED_KEYS:
            self.report(f"{user} uses the key {key!r}, which is reserved for explicit links. Choose another key.")
        elif key == RECORD:
            return
        elif key not in keys:
            self.undeclared.setdefault(key, []).append(user)
        elif (rename := keys[key].rename) is not None:
            self.report(f"{user} uses the key {key!r}, which is renamed to {rename!r}. Write {rename!r}.")

    def report_undeclared(self, keys: Mapping[str, Key]) -> None:
        """Report each key that is used and not declared, once, with all that uses it."""
        for key, users in self.undeclared.items():
            names = list(dict.fromkeys(users))
            verb = "uses" if len(names) == 1 else "use"
            hint = did_you_mean(key, keys)
            self.report(f"{', '.join(names)} {verb} the key {key!r}, which is not declared. Add [keys.{key}].{hint}")

    def editions(self, table: Table, types: Sequence[str], states: Mapping[str, str]) -> tuple[Rule, ...]:
        """Return the rules of the groups of editions: every ordered pair of a group voids over `record`.

        A flat list is one group. The outcome of an edition is the state that it brings.
        """
        groups = table.get("editions", [])
        if isinstance(groups, list) and all(isinstance(item, str) for item in groups):
            groups = [groups]
        if not isinstance(groups, list) or not all(_is_strings(group) for group in groups):
            self.report('write `editions` as a list of types, or as a list of such lists: editions = ["advisory"].')
            return ()
        names = [name for group in groups for name in group]
        for name in dict.fromkeys(names):
            self.check_type(name, "`editions` names", types)
            if names.count(name) > 1:
                self.report(f"`editions` names {name!r} twice. A type belongs to only one group of editions.")
        known = [[name for name in group if name in types] for group in groups]
        pairs = dict.fromkeys(pair for group in known for pair in product(group, repeat=2))
        outcomes = {
            (later, earlier): states[later] if states.get(later, "") not in ("", states.get(earlier)) else UPDATED
            for later, earlier in pairs
        }
        outcomes |= self.edition_outcomes(self.table(table, "edition_outcomes", "[edition_outcomes.TYPE]"), pairs)
        material = self.strings(table, "material", "`material`", default=())
        return tuple(_edition_rule(pair, outcomes[pair], material) for pair in pairs)

    def edition_outcomes(self, table: Table, pairs: Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Return the outcomes that are given for pairs of types: `[edition_outcomes.LATER]` has `EARLIER = "..."`."""
        outcomes = {}
        for later in table:
            header = f"[edition_outcomes.{later}]"
            row = self.table(table, later, header)
            for earlier in row:
                if (later, earlier) in pairs:
                    outcomes[later, earlier] = self.label(row, earlier, header)
                else:
                    self.report(f"{header} names {earlier!r}, but `editions` has no group with both. Add them there.")
        return outcomes

    def fixed(
        self, table: Table, types: Sequence[str], keys: Mapping[str, Key]
    ) -> dict[str, dict[str, tuple[str, ...]]]:
        fixed = {}
        for type_name in table:
            self.check_type(type_name, f"[fixed.{type_name}] names the type", types)
            values = self.table(table, type_name, f"[fixed.{type_name}]")
            fixed[type_name] = {key: self.fixed_values(type_name, key, values, keys) for key in values}
        return fixed

    def fixed_values(self, type_name: str, key: str, table: Table, keys: Mapping[str, Key]) -> tuple[str, ...]:
        header = f"[fixed.{type_name}]"
        self.check_key_use(key, header, keys)
        if key == RECORD:
            self.report(
                f"{header} cannot fix {RECORD!r}: all its documents would be editions of one record. Remove it."
            )
        values = self.strings(table, key, f"{key!r} in {header}")
        for value in values:
            if value != value.strip() or not value.isprintable():
                self.report(f"{header} has the value {value!r}. Write it without outer spaces or control characters.")
        fold = keys[key].fold if key in keys else "none"
        return tuple(dict.fromkeys(fold_case(value, fold) for value in values))

    def check_type(self, name: str, user: str, types: Iterable[str]) -> None:
        if name not in types:
            self.report(f"{user} {name!r}, which [types] does not declare.{did_you_mean(name, types)}")

    def check_fields(self, table: Table, allowed: Sequence[str], owner: str) -> None:
        for name in table:
            if name not in allowed:
                hint = did_you_mean(name, allowed)
                self.report(f"{owner} has no field {name!r}. It may have {join_names(allowed)}.{hint}")

    def table(self, parent: Table, name: str, header: str) -> Table:
        value = parent.get(name, {})
        if isinstance(value, dict):
            return value
        self.report(f"{name!r} must be a table. Begin it with {header}.")
        return {}

    def name(self, table: Table, owner: str, what: str) -> str:
        value = self.text(table, "name", owner)
        if value:
            self.check_name(value, what)
        return value

    def text(self, table: Table, field: str, owner: str, *, required: bool = True) -> str:
        if field not in table and not required:
            return ""
        value = table.get(field)
        if value is None or (required and value == ""):
            self.report(f'{owner} has {"an empty" if field in table else "no"} {field!r}. Write {field} = "...".')
        elif not isinstance(value, str):
            self.report(f'{field!r} of {owner} must be text. Write {field} = "...".')
        return value if isinstance(value, str) else ""

    def choice(self, table: Table, field: str, allowed: Sequence[str], owner: str) -> str:
        value = table.get(field, allowed[0])
        if value in allowed:
            return str(value)
        hint = did_you_mean(str(value), allowed)
        self.report(f"{field!r} of {owner} is {value!r}. It must be {join_names(allowed, 'or')}.{hint}")
        return allowed[0]

    def strings(self, table: Table, field: str, what: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        value = table.get(field, default)
        if value == default and default is not None:
            return default
        if not _is_strings(value):
            self.report(f'{what} must be a list of names. Write {field} = ["..."].')
            return ()
        strings = cast(list[str], value)
        if default is None and not strings:
            self.report(f"{what} is empty. Name at least one.")
        if not all(strings):
            self.report(f"{what} contains an empty name. Remove it.")
        return tuple(string for string in strings if string)

    def check_name(self, name: str, what: str) -> None:
        if not name:
            self.report(f"a {what} has an empty name. Give it a name.")
        elif _FORBIDDEN_CHARACTERS & set(name) or any(c.isspace() or not c.isprintable() for c in name):
            self.report(f"the {what} {name!r} may not contain spaces, commas, quotes, backslashes or '='. Rename it.")
        elif not is_normalized("NFC", name):
            self.report(f"the {what} {name!r} must be written in Unicode form NFC, as documents are. Type it again.")


def _edition_rule(pair: tuple[str, str], outcome: str, material: tuple[str, ...]) -> Rule:
    """Return the rule by which a later document of a record voids an earlier one."""
    later, earlier = pair
    return Rule(
        name=f"edition-{later}" if later == earlier else f"edition-{later}-of-{earlier}",
        superseding_type=later,
        superseded_type=earlier,
        scope_keys=(RECORD,),
        outcome=outcome,
        material=material,
    )


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast(Iterable[object], value))
