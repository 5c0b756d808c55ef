"""What documents say of versions, decoded once for many questions.

Promise: a revision of a document never changes, so what it says is kept by `(id, revision)`. Whether the document is in
force is not kept: every question reads that again. Memory: at most `bytes_max`, by estimate.
"""

from collections import OrderedDict

import msgspec
from msgspec import Struct

from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.core.stored import Entry
from stream_car.versions.judge import JUDGES, VersionStatements, read_statements

BYTES_MAX = 32 << 20
DOCUMENT_BYTES = 1_000  # a document that says nothing of versions
DECODED_FACTOR = 8  # how much larger decoded ranges are than their JSON


class DocumentStatements(Struct, frozen=True):
    """What a document says of versions, and the names by which people ask for it."""

    versions: VersionStatements
    aliases: frozenset[str]


class StatementsCache:
    """The statements of one index. The least recently used are evicted first."""

    def __init__(self, ruleset: Ruleset, bytes_max: int = BYTES_MAX) -> None:
        self.ruleset = ruleset
        self.bytes_max = bytes_max
        self.size = 0
        self._statements: OrderedDict[tuple[str, int], tuple[DocumentStatements, int]] = OrderedDict()

    def find(self, entry: Entry) -> DocumentStatements | None:
        """Return what this revision of a document says, if it is in the cache."""
        key = entry.id, entry.revision
        cached = self._statements.get(key)
        if cached is None:
            return None
        self._statements.move_to_end(key)
        return cached[0]

    def read(self, body: Document) -> DocumentStatements:
        """Decode what a document says, and keep it."""
        statements = DocumentStatements(
            versions=read_statements(body.attributes),
            aliases=frozenset(alias for alias, _ in self.ruleset.aliases(body)),
        )
        written = msgspec.json.encode([body.attributes[name] for name in JUDGES if name in body.attributes])
        size = DOCUMENT_BYTES + DECODED_FACTOR * len(written)
        _, replaced = self._statements.pop((body.id, body.revision), (None, 0))
        self._statements[body.id, body.revision] = statements, size
        self.size += size - replaced
        while self.size > self.bytes_max:
            _, (_, evicted) = self._statements.popitem(last=False)
            self.size -= evicted
        return statements
