"""Rules as packs give them, and what they come to for each type. Values only; `rules` compiles them."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

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
    amenders: tuple[Clause, ...] = ()  # the types that amend it
    amended: tuple[Clause, ...] = ()  # the types that it amends
    attributes: tuple[str, ...] = ()  # what its entries must say there, sorted
    is_plain: bool = True  # no `differ_on` rule voids it, or any of its victims


Bearings = Mapping[str, Bearing]  # by type, for the scopes of one key set
Pieces = dict[str, list[str]]  # by key, the `key=value` parts that names of scopes are made of


class Reading(Struct, frozen=True, gc=False):
    """How the scope maps of a type are read: its rules' key sets, its pack's names and folding, its fixed values."""

    singles: Keys  # the key sets of one key
    joined: tuple[Keys, ...]  # the others
    keys: Mapping[str, tuple[str, Fold]]  # as the publisher writes it -> as rules know it
    fixed: Pieces


NOTHING = Bearing()
