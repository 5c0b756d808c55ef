"""SQLite on disk as a user would build it: triggers keep the rules, FTS5 keeps the words.

Write-ahead log, synchronous FULL, one transaction for a thousand documents. Easier: one scope per document, rules that
do not compare attributes, no links; documents are decoded without checks, and what was sent is not kept; no hash over
the log, no checksum over rows; a change has neither rule nor cause, and nobody gets a receipt.
"""

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from benchmarks.speed.rivals import rule_pairs
from benchmarks.speed.rivals.sqlite import SCHEMA
from stream_car.processing.fold import Fold

BATCH = 1000  # documents in one transaction

_TEXTS = """
ALTER TABLE document ADD COLUMN title TEXT;
ALTER TABLE document ADD COLUMN text TEXT;
ALTER TABLE document ADD COLUMN source TEXT;
CREATE VIRTUAL TABLE words USING fts5(title, text, content='document', content_rowid='rowid');
CREATE TRIGGER indexed AFTER INSERT ON document BEGIN
  INSERT INTO words(rowid, title, text) VALUES (NEW.rowid, NEW.title, NEW.text);
END;
CREATE TRIGGER reindexed AFTER UPDATE OF title, text ON document BEGIN
  INSERT INTO words(words, rowid, title, text) VALUES ('delete', OLD.rowid, OLD.title, OLD.text);
  INSERT INTO words(rowid, title, text) VALUES (NEW.rowid, NEW.title, NEW.text);
END;
"""

_UPSERT = """
INSERT INTO document(id, rank, scope, type, time, active, title, text, source) VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE
  SET rank = excluded.rank, scope = excluded.scope, type = excluded.type, time = excluded.time, active = 0,
      title = excluded.title, text = excluded.text, source = excluded.source
  WHERE excluded.rank > document.rank
"""


class _Document(Struct):
    id: str
    type: str
    time: datetime
    scope: list[dict[str, list[str]]]
    title: str = ""
    text: str = ""
    source: str = ""
    revision: int = 1


class SqliteSearch:
    """A database in a file, with the rules of a fold."""

    def __init__(self, path: Path, fold: Fold) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.executescript(
            f"PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-65536; {SCHEMA} {_TEXTS}"
        )
        self._connection.executemany("INSERT INTO rule VALUES (?, ?)", rule_pairs(fold))
        self._keys = {
            name: rule.scope_keys
            for rule in fold.ruleset.rules.values()
            for name in (rule.superseding_type, rule.superseded_type)
        }
        self._decode = msgspec.json.Decoder(_Document).decode

    def publish(self, lines: Iterable[bytes]) -> None:
        """Store documents, one per line, and commit each batch durably."""
        remaining = iter(lines)
        while batch := list(islice(remaining, BATCH)):
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(_UPSERT, map(self._row, batch))
            self._connection.execute("COMMIT")

    def _row(self, line: bytes) -> tuple[str | int, ...]:
        document = self._decode(line)
        member = document.scope[0]
        keys = self._keys.get(document.type, ())
        scope = ", ".join([f"{key}={member[key][0] if key in member else '*'}" for key in keys])
        time = int(document.time.timestamp() * 1e6)
        rank = 2 * document.revision
        return document.id, rank, scope, document.type, time, document.title, document.text, document.source

    def query(self, word: str) -> list[str]:
        """Return the ids of some active documents with a word."""
        rows = self._connection.execute(
            "SELECT id FROM words JOIN document ON document.rowid = words.rowid WHERE words MATCH ? AND active LIMIT 5",
            (word,),
        )
        return [str(name) for (name,) in rows.fetchall()]

    def superseded(self) -> set[str]:
        """Return the ids of the documents that a rule voids."""
        rows = self._connection.execute("SELECT id FROM document WHERE scope <> '' AND NOT active").fetchall()
        return {str(name) for (name,) in rows}

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
