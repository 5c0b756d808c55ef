"""Which changes and documents a subscriber asked for: pure functions of what is known of them.

Promise: a document is asked for by its own id, types and scopes, whichever scope a change came from.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import RECORD, scope_parts
from stream_car.core.stored import StoredDocument
from stream_car.subscriptions.events import Filter


class Mention(Struct, frozen=True, gc=False):
    """A document that a change speaks of."""

    id: str
    why: str
    rule: str
    types: tuple[str, ...] = ()
    revision: int = 0
    time: int = 0
    order: int = 0


def read(selection: Filter, ruleset: Ruleset) -> Filter:
    """A selection with its scope parts named and spelled as in the names of scopes, however they were written."""
    return replace(selection, parts=frozenset(ruleset.normalize_part(key, value) for key, value in selection.parts))


class FilterMatcher:
    """A selection, read by the rules."""

    def __init__(self, selection: Filter, ruleset: Ruleset) -> None:
        self.filter = selection
        self.ruleset = ruleset

    def matches_any(self, members: Iterable[tuple[str, str]]) -> bool:
        """Whether one of these is asked for: id and type; of the target of a link only the id is known."""
        chosen = self.filter
        if not (chosen.ids or chosen.types or chosen.domains):
            return True
        return any(
            (not chosen.ids or name in chosen.ids) and (not kind or self._is_chosen_type(kind))
            for name, kind in members
        )

    def matches(self, held: StoredDocument) -> bool:
        """Whether a document is what the subscriber asked for: those without a scope cannot be followed."""
        return held.is_present and bool(held.scopes) and self.is_selected(held)

    def is_selected(self, held: StoredDocument) -> bool:
        """Whether its id, its type and its scopes are."""
        chosen, name = self.filter, held.entry.id
        if chosen.ids and name not in chosen.ids and chosen.ids.isdisjoint(held.records):
            return False
        if not self._is_chosen_type(held.type):
            return False
        return not chosen.parts or any(has_parts(scope, chosen.parts) for scope in held.scopes)

    def was_selected(self, one: Mention, scope: str) -> bool:
        """Whether the subscriber may know a document that is gone, or is no longer what it asked for."""
        chosen, parts = self.filter, scope_parts(scope)
        is_named = not chosen.ids or one.id in chosen.ids or (parts[0][0] == RECORD and parts[0][1] in chosen.ids)
        if not is_named or not chosen.parts <= set(parts):
            return False
        types = [kind for kind in one.types if kind]
        return any(self._is_chosen_type(kind) for kind in types) if types else bool(chosen.ids)

    def _is_chosen_type(self, kind: str) -> bool:
        chosen = self.filter
        if chosen.types and kind not in chosen.types:
            return False
        domain = self.ruleset.pack_of.get(kind)
        return not chosen.domains or (domain is not None and domain.name in chosen.domains)


def has_parts(scope: str, parts: frozenset[tuple[str, str]]) -> bool:
    """Whether a scope's name has all these pairs."""
    return not parts or parts <= set(scope_parts(scope))
