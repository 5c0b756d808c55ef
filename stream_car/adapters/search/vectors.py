"""Vectors of documents in an SQLite file beside the text index. A thread of their own makes them.

Promise: `apply` only queues documents. A thread encodes them in batches; until then they are pending. What a crash
loses is indexed again: `position` says from where. A file of another encoder is emptied and starts at position 0.
Search is exact.
Cost: `apply` takes about 5 us per document. A search is one product over all vectors, about 10 ms at 10^5 vectors of
384 numbers.
"""

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy
from numpy.typing import NDArray

from stream_car.adapters.database import connect, delete_database, translate_errors
from stream_car.errors import Halted
from stream_car.ports import Encoder

CURE = "Delete the folder of the index; it is rebuilt from the log."
BATCH = 32  # texts encoded at once

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS meta (encoder TEXT, position INTEGER)",
    "CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY, id TEXT UNIQUE, words TEXT)",
    "CREATE TABLE IF NOT EXISTS vectors (id TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID",
)
_DONE = "DELETE FROM waiting WHERE number = ? AND id = ? AND words = ?"
_FLOAT_BYTES = 4
_Floats = NDArray[numpy.float32]


class Vectors:
    """`id -> vector`, brought up to date in the background."""

    def __init__(self, path: Path, encoder: Encoder) -> None:
        self._path = path
        self._encoder = encoder
        self._changed = threading.Condition()
        self._is_closing = False
        self.failure: Exception | None = None
        self.version = 0
        self._open()
        self._thread = threading.Thread(target=self._work, name="encoder", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        with translate_errors(self._path, CURE):
            self._connection = connect(self._path, synchronous="FULL")
            try:
                self._load()
            except BaseException:
                self._connection.close()
                raise

    def _load(self) -> None:
        for statement in _SCHEMA:
            self._connection.execute(statement)
        meta = self._connection.execute("SELECT encoder, position FROM meta").fetchone()
        if meta is None or meta[0] != self._encoder.name:
            for table in ("meta", "waiting", "vectors"):
                self._connection.execute(f"DELETE FROM {table}")
            self._connection.execute("INSERT INTO meta VALUES (?, 0)", (self._encoder.name,))
            meta = (self._encoder.name, 0)
        self.position: int = meta[1]
        self._pending: int = self._connection.execute("SELECT COUNT(*) FROM waiting").fetchone()[0]
        self._row_of: dict[str, int] = {}
        self._ids: list[str | None] = []  # by row; `None` where a vector was deleted
        self._matrix: _Floats = numpy.zeros((0, 0), dtype=numpy.float32)
        rows: list[tuple[str, bytes]] = self._connection.execute("SELECT id, vector FROM vectors").fetchall()
        lengths = {len(vector) for _, vector in rows}
        if len(lengths) > 1 or any(length % _FLOAT_BYTES for length in lengths):
            raise Halted("damaged", f"The vectors in {self._path.name} differ in length. {CURE}")
        for document_id, vector in rows:
            self._append(document_id, vector)

    def apply(self, texts: Iterable[tuple[str, str]], dropped: Iterable[str], position: int) -> None:
        """Queue the texts of documents by id and delete others. All input before `position` is now applied."""
        with self._changed, translate_errors(self._path, CURE):
            self._begin()
            self._delete(dropped)
            for document_id, text in texts:
                self._delete([document_id])
                self._connection.execute("INSERT INTO waiting (id, words) VALUES (?, ?)", (document_id, text))
                self._pending += 1
            self._connection.execute("UPDATE meta SET position = ?", (position,))
            self.position = position
            self._changed.notify_all()

    def _begin(self) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def _delete(self, ids: Iterable[str]) -> None:
        for document_id in ids:
            self._pending -= self._connection.execute("DELETE FROM waiting WHERE id = ?", (document_id,)).rowcount
            row = self._row_of.pop(document_id, None)
            if row is not None:
                self._ids[row] = None
                self._matrix[row] = 0.0
                self._connection.execute("DELETE FROM vectors WHERE id = ?", (document_id,))
                self.version += 1

    def _append(self, document_id: str, vector: bytes) -> None:
        numbers = numpy.frombuffer(vector, dtype="<f4")
        row = len(self._ids)
        if row == len(self._matrix):
            grown = numpy.zeros((max(1024, 2 * row), len(numbers)), dtype=numpy.float32)
            if row:
                grown[:row] = self._matrix[:row]
            self._matrix = grown
        self._matrix[row] = numbers
        self._ids.append(document_id)
        self._row_of[document_id] = row

    def _work(self) -> None:
        try:
            while self._encode_batch():
                pass
        except Exception as error:
            with self._changed:
                self.failure = error
                self._changed.notify_all()

    def _encode_batch(self) -> bool:
        """Wait for texts and encode a batch of them. Returns `False` when closing."""
        with self._changed:
            while not self._pending and not self._is_closing:
                self._changed.wait()
            if self._is_closing:
                return False
            with translate_errors(self._path, CURE):
                rows: list[tuple[int, str, str]] = self._connection.execute(
                    "SELECT number, id, words FROM waiting ORDER BY number LIMIT ?", (BATCH,)
                ).fetchall()
        vectors = self._encoder.encode([text for _, _, text in rows])  # without the lock: this takes long
        with self._changed, translate_errors(self._path, CURE):
            self._begin()
            for row, vector in zip(rows, vectors, strict=True):
                document_id = row[1]
                if self._connection.execute(_DONE, row).rowcount:  # otherwise it was replaced meanwhile
                    self._connection.execute("INSERT INTO vectors VALUES (?, ?)", (document_id, vector))
                    self._append(document_id, vector)
                    self._pending -= 1
            self._connection.execute("COMMIT")
            self.version += 1
            self._changed.notify_all()
        return True

    def pending(self) -> int:
        """Return the number of documents whose vectors are still to come."""
        with self._changed:
            return self._pending

    def settle(self) -> None:
        """Wait until every vector is made. Raises the error of the encoder, or of the file."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pending or self.failure is not None)
            if self.failure is not None:
                raise self.failure

    def cosines(
        self, text: str, ids: Sequence[str], depth: int, among: Sequence[str] | None = None
    ) -> dict[str, float]:
        """Return the cosines between a text and documents: those with these ids, and the `depth` nearest.

        The nearest are taken from all documents, or from those with the ids in `among`.

        A document without a vector has no cosine.
        """
        [vector] = self._encoder.encode([text])
        with self._changed:
            if not self._row_of:
                return {}
            count = len(self._ids)
            cosines = self._matrix[:count] @ numpy.frombuffer(vector, dtype="<f4")
            rows_among = None if among is None else [self._row_of[name] for name in among if name in self._row_of]
            distances = -cosines if rows_among is None else -cosines[rows_among]
            nearest: list[int] = []
            if depth and len(distances):
                nearest = numpy.argpartition(distances, min(depth, len(distances)) - 1)[:depth].tolist()
            if rows_among is not None:
                nearest = [rows_among[at] for at in nearest]
            rows = {self._ids[row]: row for row in nearest}
            rows |= {document_id: self._row_of[document_id] for document_id in ids if document_id in self._row_of}
            return {
                document_id: round(float(cosines[row]), 5)
                for document_id, row in rows.items()
                if document_id is not None
            }

    def flush(self) -> None:
        """Commit what was applied and encoded, durably."""
        with self._changed, translate_errors(self._path, CURE):
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def reset(self) -> None:
        """Delete everything. The position is 0 again."""
        with self._changed:
            self._connection.close()
            delete_database(self._path)
            self.version += 1
            self._open()

    def close(self) -> None:
        """End the thread, commit everything and close the file."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()
        try:
            self.flush()
        finally:
            self._connection.close()
