"""The terms of documents by number, in an SQLite file beside the text index. Scores are computed from them.

Promise: a number is given out once and names one revision of a document. A document is found before it is flushed, and
lost in a crash until then: the index flushes it before it moves its own position. Changed bytes raise `Halted`.
Documents that were flushed before a crash, but that no commit of the index refers to, stay until the index is reset: a
few thousand at most.
Cost: about 4 us to store a document, 3 us to read one.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from stream_car.adapters.checkpoints import checkpoint
from stream_car.adapters.database import (
    add_checksum,
    connect,
    require_unchanged,
    seal_database,
    strip_checksum,
    sync_log,
    translate_errors,
)
from stream_car.errors import Halted, StreamCarError
from stream_car.ranking.bm25 import DocumentTerms

CURE = "Delete the folder of the index; it is rebuilt from the log."

_CHUNK = 500  # numbers in one statement
_UNFLUSHED_MAX = 500  # documents; keeps every flush short
_SCHEMA = "CREATE TABLE IF NOT EXISTS analysed (number INTEGER PRIMARY KEY, id TEXT, length INTEGER, words BLOB)"


class StoredTerms(Struct, frozen=True, gc=False):
    """The number of a document, its id, and its terms."""

    number: int
    id: str
    terms: DocumentTerms


class TermStore:
    """`number -> terms` on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        require_unchanged(path, CURE)
        with translate_errors(path, CURE):
            self._connection = connect(path, synchronous="NORMAL", mapped=True)
            try:
                self._connection.execute(_SCHEMA)
                row: tuple[int | None] = self._connection.execute("SELECT MAX(number) FROM analysed").fetchone()
            except BaseException:
                self._connection.close()
                raise
        self._last = row[0] or 0
        self._unflushed = 0

    def add(self, documents: Iterable[tuple[str, DocumentTerms]]) -> list[int]:
        """Store documents by id, and return the number of each, in order."""
        first = self._last + 1
        rows = [
            (number, document_id, terms.length, _encode(document_id, terms))
            for number, (document_id, terms) in enumerate(documents, first)
        ]
        with translate_errors(self._path, CURE):
            self._begin()
            self._connection.executemany("INSERT INTO analysed VALUES (?, ?, ?, ?)", rows)
        self._last += len(rows)
        self._unflushed += len(rows)
        if self._unflushed >= _UNFLUSHED_MAX:
            self.flush()
        return [row[0] for row in rows]

    def remove(self, numbers: Iterable[int]) -> None:
        """Delete documents. Unknown numbers are ignored."""
        with translate_errors(self._path, CURE):
            self._begin()
            self._connection.executemany("DELETE FROM analysed WHERE number = ?", [(number,) for number in numbers])

    def get(self, numbers: Sequence[int]) -> list[StoredTerms]:
        """Return the documents with these numbers, in any order.

        Raises `Halted` (`damaged`) if one is missing or has changed.
        """
        documents: list[StoredTerms] = []
        for start in range(0, len(numbers), _CHUNK):
            chunk = numbers[start : start + _CHUNK]
            marks = ",".join("?" * len(chunk))
            with translate_errors(self._path, CURE):
                rows: list[tuple[int, str, int, bytes]] = self._connection.execute(
                    f"SELECT number, id, length, words FROM analysed WHERE number IN ({marks})",
                    chunk,
                ).fetchall()
            documents += [
                StoredTerms(number, document_id, _decode(document_id, length, stored))
                for number, document_id, length, stored in rows
            ]
        if len(documents) < len(numbers):
            raise Halted("damaged", f"The file {self._path.name} lacks documents that the text index has. {CURE}")
        return documents

    @property
    def last(self) -> int:
        """The number that was given out last."""
        return self._last

    def length(self, number: int) -> int:
        """Return the number of terms of a document. Raises `Halted` (`damaged`) if it is missing or has changed."""
        return self.get([number])[0].terms.length

    def _begin(self) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def flush(self) -> None:
        """Commit the additions. They survive a power cut after the next `sync`."""
        self._unflushed = 0
        with translate_errors(self._path, CURE):
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def sync(self) -> None:
        """Make the flushed additions durable. Another thread may call this."""
        sync_log(self._path)

    def checkpoint(self) -> None:
        """Copy the flushed additions from the write-ahead log into the file. Another thread may call this."""
        checkpoint(self._path)

    def close(self) -> None:
        """Flush if the disk allows it, and close the file."""
        with suppress(StreamCarError, sqlite3.Error):
            self.flush()
        with translate_errors(self._path, CURE):
            self._connection.close()
        seal_database(self._path)


def _encode(document_id: str, terms: DocumentTerms) -> bytes:
    return add_checksum(_name(document_id, terms.length), f"{terms.text}\n{terms.names}".encode())


def _name(document_id: str, length: int) -> bytes:
    return f"{length} {document_id}".encode()


def _decode(document_id: str, length: int, stored: bytes) -> DocumentTerms:
    value = strip_checksum(_name(document_id, length), stored)
    if value is None:
        raise Halted("damaged", f"The terms of document {document_id!r} are damaged. {CURE}")
    text, _, names = value.decode().partition("\n")
    return DocumentTerms(text, names, length)
