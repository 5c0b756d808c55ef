"""Which changes and documents a subscription selects: pure functions of what is known of them.

Promise: a document is selected by its own id, types and scopes, whichever scope a change came from.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import RECORD, scope_parts
from stream_car.core.stored import StoredDocument
from stream_car.subscriptions.events import Selection


class Mention(Struct, frozen=True, gc=False):
    """A document that a change mentions."""

    id: str
    why: str
    rule: str
    types: tuple[str, ...] = ()
    revision: int = 0
    time: int = 0
    order: int = 0


def normalize(selection: Selection, ruleset: Ruleset) -> Selection:
    """A selection with its scope parts spelled as in the names of scopes."""
    return replace(selection, scope=frozenset(ruleset.normalize_part(key, value) for key, value in selection.scope))


class SelectionMatcher:
    """Decides what a normalized selection selects under a rule set."""

    def __init__(self, selection: Selection, ruleset: Ruleset) -> None:
        self.selection = selection
        self.ruleset = ruleset

    def matches_any(self, members: Iterable[tuple[str, str]]) -> bool:
        """Return whether any of these (id, type) is selected. The type is empty for the target of a link."""
        selection = self.selection
        if not (selection.ids or selection.types or selection.rules):
            return True
        return any(
            (not selection.ids or name in selection.ids) and (not kind or self._selects_type(kind))
            for name, kind in members
        )

    def matches(self, stored: StoredDocument) -> bool:
        """Return whether a document is present and selected. A document without a scope never is: it has no changes."""
        return stored.is_present and bool(stored.scopes) and self.is_selected(stored)

    def is_selected(self, stored: StoredDocument) -> bool:
        """Return whether a document, present or not, is selected by its id, type and scopes."""
        selection, name = self.selection, stored.entry.id
        if selection.ids and name not in selection.ids and selection.ids.isdisjoint(stored.records):
            return False
        if not self._selects_type(stored.type):
            return False
        return not selection.scope or any(has_parts(scope, selection.scope) for scope in stored.scopes)

    def was_selected(self, mention: Mention, scope: str) -> bool:
        """Return whether a document that is absent or no longer selected may have been selected in this scope."""
        selection, parts = self.selection, scope_parts(scope)
        is_named = (
            not selection.ids or mention.id in selection.ids or (parts[0][0] == RECORD and parts[0][1] in selection.ids)
        )
        if not is_named or not selection.scope <= set(parts):
            return False
        types = [kind for kind in mention.types if kind]
        return any(self._selects_type(kind) for kind in types) if types else bool(selection.ids)

    def _selects_type(self, kind: str) -> bool:
        selection = self.selection
        if selection.types and kind not in selection.types:
            return False
        pack = self.ruleset.pack_of.get(kind)
        return not selection.rules or (pack is not None and pack.name in selection.rules)


def has_parts(scope: str, parts: frozenset[tuple[str, str]]) -> bool:
    """Return whether the name of a scope has all these pairs."""
    return not parts or parts <= set(scope_parts(scope))
