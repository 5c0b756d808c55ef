"""Rules as data, and a set of rule packs compiled for look-up.

Promise: nothing here decides supersession; it says which types void which, in which scopes a
document takes part, and what those scopes are called. Cost: one dictionary look-up a question.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import product
from typing import Literal

import msgspec
from msgspec import Struct

from stream_car.core.documents import Document, ScopeMap
from stream_car.errors import InvalidDocument

LINK = "document"  # the scope `document=<id>` holds those who void that id by name
AMENDED = "amended"  # the scope `amended=<id>` holds those who amend that id by name
RECORD = "record"  # every document that has this key joins `record=<value>`
RESERVED_KEYS = frozenset({LINK, AMENDED})
SCOPES_MAX = 1024

Keys = tuple[str, ...]
Fold = Literal["none", "lower", "upper"]


class Rule(Struct, frozen=True, kw_only=True):
    """Later documents of one type void (or amend) earlier ones of another in one scope."""

    name: str
    superseding_type: str
    superseded_type: str
    scope_keys: Keys
    effect: Literal["supersede", "amend"] = "supersede"
    differ_on: tuple[str, ...] = ()


class Key(Struct, frozen=True, kw_only=True):
    """How a scope key is read: its case folding, and the name it is known under."""

    fold: Fold = "none"
    rename: str | None = None


class Domain(Struct, frozen=True, kw_only=True):
    """A rule pack. Folding, renaming and fixed values apply to the types that it declares."""

    name: str
    types: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    anchor_types: tuple[str, ...] = ()  # empty: every type may be an anchor
    keys: Mapping[str, Key] = {}
    fixed: Mapping[str, Mapping[str, tuple[str, ...]]] = {}  # type -> key -> values
    description: str = ""
    type_descriptions: Mapping[str, str] = {}


class Clause(Struct, frozen=True, gc=False):
    """Some documents of `type` void through `rule`; `differ_on` names attributes that must differ."""

    type: str
    rule: str
    differ_on: tuple[str, ...]


class Bearing(Struct, frozen=True, gc=False):
    """What a type means in the scopes of one key set."""

    victims: tuple[Clause, ...] = ()  # the types that it voids
    voiders: tuple[Clause, ...] = ()  # the types that void it
    attributes: tuple[str, ...] = ()  # what its entries must say there, sorted


_QUOTED = frozenset('",=\\')


def part_name(key: str, value: str) -> str:
    """`key=value`; a value with a comma, an equals sign or a quote is written as a JSON string."""
    if not _QUOTED.isdisjoint(value) or value[:1] == " " or value[-1:] == " ":
        return f"{key}={msgspec.json.encode(value).decode()}"
    return f"{key}={value}"


def scope_name(pairs: Iterable[tuple[str, str]]) -> str:
    """A scope's identity: its sorted pairs, `cve=CVE-1, package=axios`."""
    return ", ".join(part_name(key, value) for key, value in sorted(pairs))


def scope_parts(scope: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a scope's name; the inverse of `scope_name`.

    Raises `ValueError` where the text is no scope name.
    """
    return tuple(_parts(scope))


def _parts(scope: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(scope):
        key, equals, rest = scope[at:].partition("=")
        if not equals or not key.strip():
            raise ValueError(f"expected key=value, got {scope[at:]!r}")
        if rest.startswith('"'):
            end = _closing_quote(rest)
            value = msgspec.json.decode(rest[: end + 1].encode(), type=str)
            after = rest[end + 1 :]
            if after and not after.startswith(","):
                raise ValueError(f"expected a comma after {value!r}")
            at += len(key) + 1 + end + 1
        else:
            value = rest.split(",", 1)[0]
            at += len(key) + 1 + len(value)
        yield key.strip(), value
        if at < len(scope):
            at += 1  # the comma
            while at < len(scope) and scope[at] == " ":
                at += 1


def _closing_quote(text: str) -> int:
    at = 1
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == '"':
            return at
        else:
            at += 1
    raise ValueError("a quoted value does not end")


def link_scope(name: str) -> str:
    """The scope of those who void the document or record called `name`."""
    return part_name(LINK, name)


def record_scope(name: str) -> str:
    """The scope of the editions of a record."""
    return part_name(RECORD, name)


def amended_scope(name: str) -> str:
    """The scope of those who amend the document or record called `name`."""
    return part_name(AMENDED, name)


class Ruleset:
    """Domains compiled for look-up. Equal contents have an equal `digest`, whatever their order."""

    def __init__(self, domains: Iterable[Domain]) -> None:
        self.domains = tuple(sorted(domains, key=lambda domain: domain.name))
        self.rules = {rule.name: rule for domain in self.domains for rule in domain.rules}
        self.domain_of = {kind: domain for domain in self.domains for kind in domain.types}
        self._bearings: dict[tuple[str, str], Bearing] = {}
        self._key_sets: dict[str, tuple[Keys, ...]] = {}
        self._voidable: dict[str, frozenset[Keys]] = {}
        for kind in self.domain_of:
            self._compile(kind)

    def _compile(self, kind: str) -> None:
        mine = [rule for rule in self.rules.values() if kind in (rule.superseding_type, rule.superseded_type)]
        self._key_sets[kind] = tuple(sorted({rule.scope_keys for rule in mine} | {(RECORD,)}))
        voided = {r.scope_keys for r in mine if r.superseded_type == kind and r.effect == "supersede"}
        self._voidable[kind] = frozenset(voided)
        for keys in self._key_sets[kind]:
            rules = sorted(
                (rule for rule in mine if rule.scope_keys == keys and rule.effect == "supersede"),
                key=lambda rule: rule.name,
            )
            self._bearings[", ".join(sorted(keys)), kind] = Bearing(
                tuple(_clause(r, r.superseded_type) for r in rules if r.superseding_type == kind),
                tuple(_clause(r, r.superseding_type) for r in rules if r.superseded_type == kind),
                tuple(sorted({name for rule in rules for name in rule.differ_on})),
            )

    @cached_property
    def digest(self) -> str:
        """Names the generation: a hash of everything that can change an answer."""
        rows = msgspec.json.encode(self.domains, order="sorted")
        return hashlib.sha256(rows).hexdigest()[:16]

    def knows(self, kind: str) -> bool:
        """Whether some loaded pack declares this type."""
        return kind in self.domain_of

    def bearing(self, scope: str, kind: str) -> Bearing:
        """What `kind` voids, and what voids it, in a scope of this name."""
        return self._bearings.get((keys_of(scope), kind), _NOTHING)

    def said(self, scope: str, document: Document) -> tuple[str, ...]:
        """The values, as canonical JSON, of the attributes that rules compare in this scope."""
        names = self.bearing(scope, document.type).attributes
        return tuple(canonical(document.attributes.get(name)) for name in names) if names else ()

    def is_voidable(self, scope: str, kind: str) -> bool:
        """Whether a rule can void documents of `kind` in this scope."""
        return bool(self.bearing(scope, kind).voiders)

    def anchor_types(self) -> frozenset[str]:
        """The types that Stage 1 may return."""
        return frozenset(t for d in self.domains for t in (d.anchor_types or d.types))

    def read_part(self, kind: str | None, key: str, value: str) -> tuple[str, str]:
        """A scope part as this type's pack reads it; without a type, as any pack that knows the key does."""
        domains = [self.domain_of[kind]] if kind is not None else self.domains
        for domain in domains:
            spec = domain.keys.get(key)
            if spec is not None:
                name = spec.rename or key
                return name, folded(value, domain.keys.get(name, spec).fold if spec.fold == "none" else spec.fold)
        return key, value

    def read_scope(self, document: Document) -> tuple[dict[str, tuple[str, ...]], ...]:
        """The scope maps of a document after its pack's renaming, folding and fixed values."""
        kind = document.type
        fixed = self.domain_of[kind].fixed.get(kind, {})
        return tuple(self._read_map(kind, part, fixed) for part in document.scope or ((fixed and ({},)) or ()))

    def _read_map(self, kind: str, part: ScopeMap, fixed: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        read: dict[str, dict[str, None]] = {key: dict.fromkeys(values) for key, values in fixed.items()}
        for key, values in part.items():
            for value in values:
                name, text = self.read_part(kind, key, value)
                read.setdefault(name, {})[text] = None
        return {key: tuple(values) for key, values in read.items()}

    def scopes(self, document: Document) -> tuple[str, ...]:
        """The names of the scopes that a document joins by its rules, sorted; links apart.

        Raises `InvalidDocument` (`scope_count`) where they are more than 1,024.
        """
        found: set[str] = set()
        maps = self.read_scope(document)
        for part in maps:
            for keys in self._key_sets[document.type]:
                values = [part.get(key, ()) for key in keys]
                if all(values):
                    count = 1
                    for some in values:
                        count *= len(some)
                    if count > SCOPES_MAX:
                        raise _too_many(document)
                    found.update(scope_name(zip(keys, chosen, strict=True)) for chosen in product(*values))
                    if len(found) > SCOPES_MAX:
                        raise _too_many(document)
        return tuple(sorted(found))

    def lacking(self, document: Document) -> tuple[str, ...]:
        """The keys of the type's rules that no scope map of the document has."""
        have = {key for part in self.read_scope(document) for key in part}
        wanted = {key for keys in self._key_sets[document.type] for key in keys if key != RECORD}
        return tuple(sorted(wanted - have))


def _clause(rule: Rule, kind: str) -> Clause:
    return Clause(kind, rule.name, rule.differ_on)


def _too_many(document: Document) -> InvalidDocument:
    return InvalidDocument("scope_count", f"it would join more than {SCOPES_MAX} scopes", document.id)


_NOTHING = Bearing()


def keys_of(scope: str) -> str:
    """The keys of a scope's name, as one string."""
    if '"' in scope:
        return ", ".join(key for key, _ in scope_parts(scope))
    if ", " not in scope:
        return scope.partition("=")[0]
    return ", ".join(part.partition("=")[0] for part in scope.split(", "))


def folded(value: str, fold: Fold) -> str:
    """The value in the case that its key is compared in."""
    if fold == "lower":
        return value.lower()
    return value.upper() if fold == "upper" else value


def canonical(value: object) -> str:
    """One spelling for equal JSON values."""
    return msgspec.json.encode(value, order="sorted").decode()


__all__ = [
    "AMENDED",
    "LINK",
    "RECORD",
    "RESERVED_KEYS",
    "Bearing",
    "Clause",
    "Domain",
    "Key",
    "Rule",
    "Ruleset",
    "amended_scope",
    "canonical",
    "keys_of",
    "link_scope",
    "part_name",
    "record_scope",
    "scope_name",
    "scope_parts",
]
