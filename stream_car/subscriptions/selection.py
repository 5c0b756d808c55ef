"""Which changes and documents a subscription selects: pure functions of what is known of them.

Promise: a document is selected by its own id, types and scopes, whichever scope a change came from.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.documents import Document, ScopeMap
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import RECORD, scope_parts
from stream_car.core.stored import Entry, StoredDocument
from stream_car.queries.listed_kinds import ListedKinds
from stream_car.queries.scope_values import has_parts, values_by_key
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


class RecordEdition(Struct, frozen=True, gc=False):
    """A document as an edition of a record; without a `body` if it is not present any more.

    `parts` are its scope maps as its rule pack spells them.
    """

    entry: Entry
    body: Document | None = None
    scopes: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    parts: tuple[ScopeMap, ...] = ()


def normalize(selection: Selection, ruleset: Ruleset) -> Selection:
    """A selection with its scope parts spelled as in the names of scopes."""
    return replace(selection, scope=frozenset(ruleset.normalize_part(key, value) for key, value in selection.scope))


class SelectionMatcher:
    """Decides what a normalized selection selects under a rule set."""

    def __init__(self, selection: Selection, ruleset: Ruleset) -> None:
        self.selection = selection
        self.ruleset = ruleset
        self.values = values_by_key(selection.scope)
        self.kinds = ListedKinds(only=selection.only, material=selection.material)

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
        return not selection.scope or any(has_parts(scope, self.values) for scope in stored.scopes)

    def selects_outcome(self, outcome: str) -> bool:
        """Return whether a change with this outcome is sent."""
        return self.kinds.has_outcome(outcome)

    def selects_edition(self, edition: RecordEdition, record: str, scope: str) -> bool:
        """Return whether an edition of a record is selected. One without a body is, by the scope of its change."""
        selection, ids = self.selection, {record, edition.entry.id, *edition.records}
        if (selection.ids and selection.ids.isdisjoint(ids)) or not self._selects_type(edition.entry.type):
            return False
        if edition.body is None and not edition.scopes:
            return has_parts(scope, self.values)
        return self.is_about(edition)

    def is_about(self, edition: RecordEdition) -> bool:
        """Return whether an edition of a record has the selected values in one of its scopes, if any are selected."""
        if not self.values or any(has_parts(name, self.values) for name in edition.scopes):
            return True
        return any(
            all(not values.isdisjoint(parts.get(key, ())) for key, values in self.values.items())
            for parts in edition.parts
        )

    def was_selected(self, mention: Mention, scope: str) -> bool:
        """Return whether a document that is absent or no longer selected may have been selected in this scope."""
        selection, parts = self.selection, scope_parts(scope)
        is_named = (
            not selection.ids or mention.id in selection.ids or (parts[0][0] == RECORD and parts[0][1] in selection.ids)
        )
        if not is_named or not has_parts(scope, self.values):
            return False
        types = [kind for kind in mention.types if kind]
        return any(self._selects_type(kind) for kind in types) if types else bool(selection.ids)

    def _selects_type(self, kind: str) -> bool:
        selection = self.selection
        if selection.types and kind not in selection.types:
            return False
        pack = self.ruleset.pack_of.get(kind)
        return not selection.rules or (pack is not None and pack.name in selection.rules)
