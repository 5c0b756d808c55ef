"""One pack's text becomes a domain, and a list of everything that is wrong with it.

Promise: reading never stops at the first problem; each problem is one sentence that says what to
change. What needs other packs to be judged is left to `agreement`.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Literal, cast
from unicodedata import is_normalized

from stream_car.core.rule_pack import CaseFold, Key, Rule, RulePack
from stream_car.core.rules import folded
from stream_car.core.scope_names import RECORD, RESERVED_KEYS
from stream_car.rule_packs.suggestions import listed, meant

Table = Mapping[str, object]

TOP = ("name", "description", "anchor_types", "editions", "types", "keys", "rules", "fixed")
IN_KEY = ("fold", "rename")
IN_RULE = ("name", "superseding", "superseded", "scope", "effect", "differ_on")
FOLDS = ("none", "lower", "upper")
EFFECTS = ("supersede", "amend")
FORBIDDEN = frozenset('=,"\\')


def read(text: str, source: str) -> tuple[RulePack | None, tuple[str, ...]]:
    """The pack that the text describes, as far as it can be read, and what is wrong with it.

    There is no pack at all where the text is no TOML.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        where = str(error).replace("at end of document", f"at line {text.count(chr(10)) + 1}, the end")
        return None, (f"{source}: this is not TOML: {where}",)
    reader = _Reader(source)
    return reader.domain(table), tuple(dict.fromkeys(reader.problems))


class _Reader:
    """Gathers the problems of one source while its tables are read."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.problems: list[str] = []

    def say(self, problem: str) -> None:
        self.problems.append(f"{self.source}: {problem}")

    def domain(self, table: Table) -> RulePack:
        self.known(table, TOP, "a pack")
        name = self.name(table, "the pack", "pack")
        types = self.types(table)
        keys = self.keys(self.table(table, "keys", "[keys.NAME]"))
        rules = (*self.rules(table, keys), *self.editions(table, tuple(types)))
        if not types and not rules:
            self.say("declare types under [types], or add [[rules]]; the pack has neither")
        anchors = self.strings(table, "anchor_types", "`anchor_types`", default=())
        for anchor in anchors:
            if anchor not in types:
                self.say(f"anchor_types names {anchor!r}, which [types] does not declare{meant(anchor, types)}")
        return RulePack(
            name=name or self.source,
            types=tuple(types),
            rules=rules,
            anchor_types=anchors,
            keys=keys,
            fixed=self.fixed(self.table(table, "fixed", "[fixed.TYPE]"), tuple(types), keys),
            description=self.text(table, "description", "the pack", needed=False),
            type_descriptions=types,
        )

    def types(self, table: Table) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, about in self.table(table, "types", "[types]").items():
            self.named(name, "type")
            if not isinstance(about, str):
                self.say(f'describe the type {name!r} in one sentence: {name} = "..."')
            found[name] = about if isinstance(about, str) else ""
        return found

    def keys(self, table: Table) -> dict[str, Key]:
        found = {}
        for name in table:
            self.named(name, "key")
            spec = self.table(table, name, f"[keys.{name}]")
            self.known(spec, IN_KEY, f"the key {name!r}")
            fold = self.one_of(spec, "fold", FOLDS, f"the key {name!r}")
            rename = self.text(spec, "rename", f"the key {name!r}", needed=False) or None
            found[name] = Key(fold=cast(CaseFold, fold), rename=rename)
        for name, key in found.items():
            self.check_key(name, key, found)
        return found

    def check_key(self, name: str, key: Key, keys: Mapping[str, Key]) -> None:
        if name in RESERVED_KEYS or key.rename in RESERVED_KEYS:
            word = name if name in RESERVED_KEYS else key.rename
            self.say(f"the key {word!r} is reserved for explicit links; choose another name")
        elif name == RECORD and key != Key():
            self.say(f"the key {RECORD!r} names editions and is always read as written; remove [keys.{RECORD}]")
        elif key.rename == RECORD:
            self.say(f"the key {name!r} cannot be renamed to {RECORD!r}; let the publisher write {RECORD!r}")
        elif key.rename == name:
            self.say(f"the key {name!r} is renamed to itself; remove `rename`")
        elif key.rename is not None:
            self.check_target(name, key, keys.get(key.rename), keys)

    def check_target(self, name: str, key: Key, target: Key | None, keys: Mapping[str, Key]) -> None:
        if target is None:
            hint = meant(key.rename or "", keys)
            self.say(
                f"the key {name!r} is renamed to {key.rename!r}, which is not declared: add [keys.{key.rename}]{hint}"
            )
        elif target.rename is not None:
            self.say(
                f"the key {name!r} is renamed to {key.rename!r}, which is itself renamed: "
                f"rename {name!r} to {target.rename!r} at once"
            )
        elif key.fold not in ("none", target.fold):
            self.say(
                f"the key {name!r} is folded {key.fold!r} but becomes {key.rename!r}, which is folded "
                f"{target.fold!r}: remove `fold` from [keys.{name}]"
            )

    def rules(self, table: Table, keys: Mapping[str, Key]) -> tuple[Rule, ...]:
        rows = table.get("rules", [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            self.say("write every rule as a table of its own that begins with [[rules]]")
            return ()
        return tuple(self.rule(row, number, keys) for number, row in enumerate(rows, 1))

    def rule(self, row: Table, number: int, keys: Mapping[str, Key]) -> Rule:
        name = self.name(row, f"rule {number}", "rule")
        called = f"the rule {name!r}" if name else f"rule {number}"
        self.known(row, IN_RULE, called)
        scope = self.strings(row, "scope", f"`scope` of {called}")
        for key in scope:
            self.used(key, called, keys)
        if len(set(scope)) < len(scope):
            self.say(f"{called} names a key of its scope twice; write each once")
        effect = cast(Literal["supersede", "amend"], self.one_of(row, "effect", EFFECTS, called))
        differ_on = self.strings(row, "differ_on", f"`differ_on` of {called}", default=())
        if effect == "amend" and differ_on:
            self.say(f"{called} amends, and voids nothing that could differ; remove `differ_on` or `effect`")
        return Rule(
            name=name,
            superseding_type=self.text(row, "superseding", called),
            superseded_type=self.text(row, "superseded", called),
            scope_keys=tuple(sorted(set(scope))),
            effect=effect,
            differ_on=tuple(sorted(set(differ_on))),
        )

    def used(self, key: str, user: str, keys: Mapping[str, Key]) -> None:
        """A key that a rule or a fixed value names must mean something when documents are read."""
        if key in RESERVED_KEYS:
            self.say(f"{user} uses the key {key!r}, which is reserved for explicit links; choose another")
        elif key == RECORD:
            return
        elif key not in keys:
            self.say(f"{user} uses the key {key!r}, which is not declared: add [keys.{key}]{meant(key, keys)}")
        elif (name := keys[key].rename) is not None:
            self.say(f"{user} uses the key {key!r}, which is renamed to {name!r}: write {name!r}")

    def editions(self, table: Table, types: Sequence[str]) -> tuple[Rule, ...]:
        """Every ordered pair of a group voids over `record`; a flat list is one group."""
        groups = table.get("editions", [])
        if isinstance(groups, list) and all(isinstance(item, str) for item in groups):
            groups = [groups]
        if not isinstance(groups, list) or not all(_is_strings(group) for group in groups):
            self.say('write `editions` as a list of types, or a list of such lists: editions = ["advisory"]')
            return ()
        names = [name for group in groups for name in group]
        for name in dict.fromkeys(names):
            if name not in types:
                self.say(f"editions names {name!r}, which [types] does not declare{meant(name, types)}")
            if names.count(name) > 1:
                self.say(f"editions names {name!r} twice; a type belongs to one group of editions")
        known = [[name for name in group if name in types] for group in groups]
        pairs = dict.fromkeys(pair for group in known for pair in product(group, repeat=2))
        return tuple(edition(later, earlier) for later, earlier in pairs)

    def fixed(
        self, table: Table, types: Sequence[str], keys: Mapping[str, Key]
    ) -> dict[str, dict[str, tuple[str, ...]]]:
        found = {}
        for kind in table:
            if kind not in types:
                self.say(f"[fixed.{kind}] is for a type that [types] does not declare{meant(kind, types)}")
            values = self.table(table, kind, f"[fixed.{kind}]")
            found[kind] = {key: self.fixed_values(kind, key, values, keys) for key in values}
        return found

    def fixed_values(self, kind: str, key: str, values: Table, keys: Mapping[str, Key]) -> tuple[str, ...]:
        self.used(key, f"[fixed.{kind}]", keys)
        if key == RECORD:
            self.say(f"[fixed.{kind}] cannot fix {RECORD!r}: all its documents would be editions of one record")
        some = self.strings(values, key, f"{key!r} in [fixed.{kind}]")
        for value in some:
            if value != value.strip() or not value.isprintable():
                self.say(f"[fixed.{kind}] has the value {value!r}: write it without outer spaces or control characters")
        fold = keys[key].fold if key in keys else "none"
        return tuple(dict.fromkeys(folded(value, fold) for value in some))

    def known(self, table: Table, names: Sequence[str], where: str) -> None:
        for name in table:
            if name not in names:
                self.say(f"{where} has no field {name!r}; it may have {listed(names)}{meant(name, names)}")

    def table(self, parent: Table, name: str, header: str) -> Table:
        value = parent.get(name, {})
        if isinstance(value, dict):
            return value
        self.say(f"{name!r} must be a table: begin it with {header}")
        return {}

    def name(self, table: Table, where: str, what: str) -> str:
        value = self.text(table, "name", where)
        if value:
            self.named(value, what)
        return value

    def text(self, table: Table, field: str, where: str, *, needed: bool = True) -> str:
        if field not in table and not needed:
            return ""
        value = table.get(field)
        if value is None or (needed and value == ""):
            self.say(f'{where} has {"an empty" if field in table else "no"} {field!r}; write {field} = "..."')
        elif not isinstance(value, str):
            self.say(f'{field!r} of {where} must be text; write {field} = "..."')
        return value if isinstance(value, str) else ""

    def one_of(self, table: Table, field: str, allowed: Sequence[str], where: str) -> str:
        value = table.get(field, allowed[0])
        if value in allowed:
            return str(value)
        self.say(f"{field} of {where} is {value!r}; it must be {listed(allowed, 'or')}{meant(str(value), allowed)}")
        return allowed[0]

    def strings(self, table: Table, field: str, what: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        value = table.get(field, default)
        if value == default and default is not None:
            return default
        if not _is_strings(value):
            self.say(f'{what} must be a list of names: {field} = ["..."]')
            return ()
        found = cast(list[str], value)
        if default is None and not found:
            self.say(f"{what} is empty; name at least one")
        if not all(found):
            self.say(f"{what} holds an empty name; remove it")
        return tuple(value for value in found if value)

    def named(self, name: str, what: str) -> None:
        if not name:
            self.say(f"a {what} has an empty name; give it one")
        elif FORBIDDEN & set(name) or any(c.isspace() or not c.isprintable() for c in name):
            self.say(f"the {what} {name!r} may not contain spaces, commas, quotes, backslashes or '='; rename it")
        elif not is_normalized("NFC", name):
            self.say(f"the {what} {name!r} must be written in Unicode form NFC, as documents are; type it again")


def edition(later: str, earlier: str) -> Rule:
    """A later statement of one record voids the former."""
    return Rule(
        name=f"edition-{later}" if later == earlier else f"edition-{later}-of-{earlier}",
        superseding_type=later,
        superseded_type=earlier,
        scope_keys=(RECORD,),
    )


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in cast(Iterable[object], value))
