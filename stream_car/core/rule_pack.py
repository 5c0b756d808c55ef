"""Rules as packs give them. Values only; `rules` compiles them for look-up.

Promise: a folder keeps them under these names (`generation.json`), and other programs read them. This module is never
compiled, for mypyc drops the options of a class.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Keys = tuple[str, ...]
CaseFold = Literal["none", "lower", "upper"]


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

    fold: CaseFold = "none"
    rename: str | None = None


class RulePack(Struct, frozen=True, kw_only=True):
    """A rule pack. Folding, renaming and fixed values apply to the types that it declares."""

    name: str
    types: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    anchor_types: tuple[str, ...] = ()  # empty: every type may be an anchor
    keys: Mapping[str, Key] = {}
    fixed: Mapping[str, Mapping[str, tuple[str, ...]]] = {}  # type -> key -> values
    description: str = ""
    type_descriptions: Mapping[str, str] = {}
