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
VULNERABILITY = "vulnerability"  # the scope key that names a vulnerability
DOCUMENT_BYTES = 1_000  # a document that says nothing of versions
NAME_BYTES = 100
DECODED_FACTOR = 8  # how much larger decoded ranges are than their JSON


class DocumentStatements(Struct, frozen=True):
    """What a document says of versions, the names by which people ask for it, and those of its vulnerabilities.

    `names` are as they were published, `folded_names` as names are compared.
    """

    versions: VersionStatements
    aliases: frozenset[str]
    names: tuple[str, ...]
    folded_names: frozenset[str]


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
        names = self._vulnerability_names(body)
        statements = DocumentStatements(
            versions=read_statements(body.attributes),
            aliases=frozenset(alias for alias, _ in self.ruleset.aliases(body)),
            names=names,
            folded_names=frozenset(self.ruleset.normalize_part(VULNERABILITY, name)[1] for name in names),
        )
        written = msgspec.json.encode([body.attributes[name] for name in JUDGES if name in body.attributes])
        size = DOCUMENT_BYTES + DECODED_FACTOR * len(written) + NAME_BYTES * (len(statements.aliases) + len(names))
        _, replaced = self._statements.pop((body.id, body.revision), (None, 0))
        self._statements[body.id, body.revision] = statements, size
        self.size += size - replaced
        while self.size > self.bytes_max:
            _, (_, evicted) = self._statements.popitem(last=False)
            self.size -= evicted
        return statements

    def _vulnerability_names(self, body: Document) -> tuple[str, ...]:
        """Return the names of its vulnerabilities, as they were published."""
        return tuple(
            dict.fromkeys(
                value
                for scope_map in body.scope
                for key, values in scope_map.items()
                if self.ruleset.normalize_part(key, "")[0] == VULNERABILITY
                for value in values
            )
        )
