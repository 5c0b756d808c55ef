"""What the text index receives of the records that were applied: decided here, for every back end.

Promise: of each id, the current revision if it is accepted, none if it is retracted; of scopes, every one that a
statement ever named, so that they stay listed.
"""

from collections.abc import Iterable

from stream_car.codec import content_digest
from stream_car.core.documents import Document, Statement
from stream_car.core.rules import Ruleset
from stream_car.core.stored import StoredDocument
from stream_car.ports import IndexedDocument
from stream_car.processing.effects import DecodedRecord, Effects
from stream_car.processing.fold import DIGEST_BYTES
from stream_car.processing.shard import AppliedRecord

CURRENT = frozenset({"accepted", "pending", "retracted"})  # outcomes after which a statement is the current one


class IndexBatch:
    """What goes to the index together: the current state of each id, and every scope that was named."""

    def __init__(self, ruleset: Ruleset) -> None:
        self.scopes: set[str] = set()
        self._ruleset = ruleset
        self._by_id: dict[str, IndexedDocument | None] = {}

    @property
    def documents(self) -> list[IndexedDocument]:
        """Documents to add or replace."""
        return [document for document in self._by_id.values() if document is not None]

    @property
    def removed(self) -> list[str]:
        """Ids to remove."""
        return [name for name, document in self._by_id.items() if document is None]

    def add_applied(self, applied: Iterable[AppliedRecord[DecodedRecord, Effects]]) -> None:
        """Add records that were just applied, in the order of the log."""
        for record in applied:
            statement = record.decoded.statement
            if record.effects.outcome in CURRENT and statement is not None:
                self._add(statement, record.decoded.scopes)

    def add_stored(self, decoded: DecodedRecord, stored: StoredDocument | None) -> None:
        """Add a record that was applied earlier, if it is still the current one of its id: if `stored` came from it."""
        if decoded.statement is None:
            return
        self.scopes.update(decoded.scopes)
        if stored is not None and stored.offset == decoded.at.offset:
            self._add(decoded.statement, stored.scopes)

    def _add(self, statement: Statement, scopes: tuple[str, ...]) -> None:
        self.scopes.update(scopes)
        if isinstance(statement, Document):
            self._by_id[statement.id] = IndexedDocument(
                document=statement,
                scopes=scopes,
                anchor=statement.type in self._ruleset.anchor_types,
                aliases=self._ruleset.aliases(statement),
            )
        else:
            self._by_id[statement.id] = None


def is_indexed(stored: StoredDocument | None, document: Document | None) -> bool:
    """Return whether an index that has this document of an id, or none, has what the state has of it."""
    if stored is None or stored.retracted:
        return document is None
    return document is not None and content_digest(document)[:DIGEST_BYTES] == stored.digest
