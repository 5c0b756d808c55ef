"""Rule packs as they are loaded. `rules` compiles them for look-up.

Promise: values only. A data directory stores them under these names (`generation.json`), and other programs read
them. This module is never compiled, because mypyc drops the `Struct` options of a class.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Keys = tuple[str, ...]
CaseFold = Literal["none", "lower", "upper"]

REPLACED = "replaced"  # the outcome under a link, or under a rule that names none
UPDATED = "updated"  # the outcome of an edition whose state is the same
PUBLISHED = "published"  # the outcome of a record that is new to a subscriber
REVISED = "revised"  # the outcome of an edition that changes nothing material
BASE_ENDED = "base_ended"  # the outcome of an amendment that ends because what it amends has ended


class Rule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Later documents of one type void (or amend) earlier documents of another in the same scope.

    `outcome` is the domain's word for what became of the earlier document, such as `fixed`. If the attributes in
    `material` are the same in both documents, and at least one is there, the outcome is `REVISED` instead. Neither
    field decides what voids what.

    `follows` says what becomes of an amendment when what it amends is voided: it ends, too, or it stays. `None`, not
    decided, means that it stays.
    """

    name: str
    superseding_type: str
    superseded_type: str
    scope_keys: Keys
    effect: Literal["supersede", "amend"] = "supersede"
    differ_on: tuple[str, ...] = ()
    outcome: str = ""
    material: tuple[str, ...] = ()
    follows: bool | None = None


class Key(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a scope key is read: the case folding of its values, and the name that rules use for it.

    With `by_name`, people may ask for a document by a value of this key. It decides nothing.
    """

    fold: CaseFold = "none"
    rename: str | None = None
    by_name: bool = False


class RulePack(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A set of types and rules. Folding, renaming and fixed values apply to the types that it declares.

    `states` has for a type what its documents say of their record, such as `withdrawn`. A state of `ending_states`
    means that the record no longer holds, although the document that says so is in force.
    """

    name: str
    types: tuple[str, ...]
    rules: tuple[Rule, ...] = ()
    anchor_types: tuple[str, ...] = ()  # empty: every type may be an anchor
    keys: Mapping[str, Key] = {}
    fixed: Mapping[str, Mapping[str, tuple[str, ...]]] = {}  # type -> key -> values
    description: str = ""
    type_descriptions: Mapping[str, str] = {}
    states: Mapping[str, str] = {}  # type -> state
    ending_states: tuple[str, ...] = ()
