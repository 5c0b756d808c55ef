"""Documents as they are scored, by number, in an SQLite file beside the text index.

Promise: a number is given once and names one document as it stood; what is not yet flushed is found,
and is lost in a crash, so the index flushes it before it moves its own position. What was flushed and the index never
came to refer to, for there was a crash, stays until the index is reset: some thousand documents at the most. Bytes that
are not those that were kept raise `Halted`. Cost: about 4 us to keep a document, 3 us to read one.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from stream_car.errors import Halted, StreamCarError
from stream_car.files.checkpoints import checkpoint
from stream_car.files.database import connect, guarded, sync_log, translated, unguarded
from stream_car.ranking.bm25 import DocumentTerms

CURE = "reset the index, it is rebuilt from the log"

_AT_ONCE = 500  # numbers in one statement
_FLUSHED = 500  # documents, after which nobody has to wait long for a flush
_SCHEMA = "CREATE TABLE IF NOT EXISTS analysed (number INTEGER PRIMARY KEY, id TEXT, length INTEGER, words BLOB)"


class Numbered(Struct, frozen=True, gc=False):
    """A document's number, its id, and what its score depends on."""

    number: int
    id: str
    analysed: DocumentTerms


class AnalysedTexts:
    """`number -> analysed text` on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with translated(path, CURE):
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
        """Keep documents; the number of each, in order."""
        first = self._last + 1
        rows = [(number, name, said.length, _bytes(name, said)) for number, (name, said) in enumerate(documents, first)]
        with translated(self._path, CURE):
            self._begin()
            self._connection.executemany("INSERT INTO analysed VALUES (?, ?, ?, ?)", rows)
        self._last += len(rows)
        self._unflushed += len(rows)
        if self._unflushed >= _FLUSHED:
            self.flush()
        return [row[0] for row in rows]

    def remove(self, numbers: Iterable[int]) -> None:
        """Forget documents; of an unknown number, nothing."""
        with translated(self._path, CURE):
            self._begin()
            self._connection.executemany("DELETE FROM analysed WHERE number = ?", [(number,) for number in numbers])

    def get(self, numbers: Sequence[int]) -> list[Numbered]:
        """The documents of these numbers, in any order. Raises `Halted` where one is missing or damaged."""
        found: list[Numbered] = []
        for start in range(0, len(numbers), _AT_ONCE):
            some = numbers[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            with translated(self._path, CURE):
                rows: list[tuple[int, str, int, bytes]] = self._connection.execute(
                    f"SELECT number, id, length, words FROM analysed WHERE number IN ({marks})",
                    some,
                ).fetchall()
            found += [Numbered(number, name, _read(name, length, kept)) for number, name, length, kept in rows]
        if len(found) < len(numbers):
            raise Halted("damaged", f"{self._path.name} lacks documents that the text index has; {CURE}")
        return found

    def _begin(self) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def flush(self) -> None:
        """Keep what was added; it survives a power cut from the next `sync` on."""
        self._unflushed = 0
        with translated(self._path, CURE):
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def sync(self) -> None:
        """Make what was flushed durable; another thread may call this."""
        sync_log(self._path)

    def checkpoint(self) -> None:
        """Bring what was flushed into the file; another thread may call this."""
        checkpoint(self._path)

    def close(self) -> None:
        """Flush, as far as the disk allows, and let go of the file."""
        with suppress(StreamCarError, sqlite3.Error):
            self.flush()
        with translated(self._path, CURE):
            self._connection.close()


def _bytes(name: str, said: DocumentTerms) -> bytes:
    return guarded(name.encode(), f"{said.text}\n{said.names}".encode())


def _read(name: str, length: int, kept: bytes) -> DocumentTerms:
    value = unguarded(name.encode(), kept)
    if value is None:
        raise Halted("damaged", f"the words of document {name!r} are damaged; {CURE}")
    text, _, names = value.decode().partition("\n")
    return DocumentTerms(text, names, length)
