"""Vectors of documents, in an SQLite file beside the text index, made by a thread of its own.

Promise: `put` only notes a document; a thread encodes what is noted, in batches, and until then the
document counts as behind. What a crash cuts off is fed again: `position` says from where.
A file of another encoder is begun anew at position 0. Search is exact.
Cost: `put` about 5 us; a search one product over all vectors, about 10 ms at 10^5 of 384 numbers.
"""

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy
from numpy.typing import NDArray

from stream_car.files.database import connect, remove, translated
from stream_car.ports import Encoder

CURE = "reset the index, it is rebuilt from the log"
BATCH = 32  # texts encoded at once

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS meta (encoder TEXT, position INTEGER)",
    "CREATE TABLE IF NOT EXISTS waiting (number INTEGER PRIMARY KEY, id TEXT UNIQUE, words TEXT)",
    "CREATE TABLE IF NOT EXISTS vectors (id TEXT PRIMARY KEY, vector BLOB) WITHOUT ROWID",
)
_DONE = "DELETE FROM waiting WHERE number = ? AND id = ? AND words = ?"
_Floats = NDArray[numpy.float32]


class Vectors:
    """`id -> vector`, kept up to date behind the caller's back."""

    def __init__(self, path: Path, encoder: Encoder) -> None:
        self._path = path
        self._encoder = encoder
        self._changed = threading.Condition()
        self._ends = False
        self.failure: Exception | None = None
        self.version = 0
        self._open()
        self._thread = threading.Thread(target=self._work, name="encoder", daemon=True)
        self._thread.start()

    def _open(self) -> None:
        with translated(self._path, CURE):
            self._connection = connect(self._path, synchronous="FULL")
            for statement in _SCHEMA:
                self._connection.execute(statement)
            kept = self._connection.execute("SELECT encoder, position FROM meta").fetchone()
            if kept is None or kept[0] != self._encoder.name:
                for table in ("meta", "waiting", "vectors"):
                    self._connection.execute(f"DELETE FROM {table}")
                self._connection.execute("INSERT INTO meta VALUES (?, 0)", (self._encoder.name,))
                kept = (self._encoder.name, 0)
            self.position: int = kept[1]
            rows: list[tuple[str, bytes]] = self._connection.execute("SELECT id, vector FROM vectors").fetchall()
            self._behind: int = self._connection.execute("SELECT COUNT(*) FROM waiting").fetchone()[0]
        self._at: dict[str, int] = {}
        self._names: list[str | None] = []
        self._matrix: _Floats = numpy.zeros((0, 0), dtype=numpy.float32)
        for name, vector in rows:
            self._set(name, vector)

    def apply(self, texts: Iterable[tuple[str, str]], dropped: Iterable[str], position: int) -> None:
        """Note documents to be encoded, forget others; all input before `position` is now noted."""
        with self._changed, translated(self._path, CURE):
            self._begin()
            self._forget(dropped)
            for name, words in texts:
                self._forget([name])
                self._connection.execute("INSERT INTO waiting (id, words) VALUES (?, ?)", (name, words))
                self._behind += 1
            self._connection.execute("UPDATE meta SET position = ?", (position,))
            self.position = position
            self._changed.notify_all()

    def _begin(self) -> None:
        if not self._connection.in_transaction:
            self._connection.execute("BEGIN IMMEDIATE")

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._behind -= self._connection.execute("DELETE FROM waiting WHERE id = ?", (name,)).rowcount
            at = self._at.pop(name, None)
            if at is not None:
                self._names[at] = None
                self._matrix[at] = 0.0
                self._connection.execute("DELETE FROM vectors WHERE id = ?", (name,))
                self.version += 1

    def _set(self, name: str, vector: bytes) -> None:
        numbers = numpy.frombuffer(vector, dtype="<f4")
        at = len(self._names)
        if at == len(self._matrix):
            grown = numpy.zeros((max(1024, 2 * at), len(numbers)), dtype=numpy.float32)
            if at:
                grown[:at] = self._matrix[:at]
            self._matrix = grown
        self._matrix[at] = numbers
        self._names.append(name)
        self._at[name] = at

    def _work(self) -> None:
        try:
            while self._encode_some():
                pass
        except Exception as error:
            with self._changed:
                self.failure = error
                self._changed.notify_all()

    def _encode_some(self) -> bool:
        with self._changed:
            while not self._behind and not self._ends:
                self._changed.wait()
            if self._ends:
                return False
            rows: list[tuple[int, str, str]] = self._connection.execute(
                "SELECT number, id, words FROM waiting ORDER BY number LIMIT ?", (BATCH,)
            ).fetchall()
        vectors = self._encoder.encode([words for _, _, words in rows])
        with self._changed:
            self._begin()
            for row, vector in zip(rows, vectors, strict=True):
                name = row[1]
                if self._connection.execute(_DONE, row).rowcount:  # otherwise it was replaced meanwhile
                    self._connection.execute("INSERT INTO vectors VALUES (?, ?)", (name, vector))
                    self._set(name, vector)
                    self._behind -= 1
            self._connection.execute("COMMIT")
            self.version += 1
            self._changed.notify_all()
        return True

    def pending(self) -> int:
        """Documents whose vectors are still to come."""
        with self._changed:
            return self._behind

    def settle(self) -> None:
        """Wait until no vector is behind. Raises what the encoder raised."""
        with self._changed:
            self._changed.wait_for(lambda: not self._behind or self.failure is not None)
            if self.failure is not None:
                raise self.failure

    def cosines(self, text: str, names: Sequence[str], depth: int) -> dict[str, float]:
        """How near the named documents are to a text, as far as they have vectors, and the `depth` nearest of all."""
        [asked] = self._encoder.encode([text])
        with self._changed:
            if not self._at:
                return {}
            count = len(self._names)
            near = self._matrix[:count] @ numpy.frombuffer(asked, dtype="<f4")
            best = numpy.argpartition(-near, min(depth, count) - 1)[:depth].tolist() if depth else []
            found = {self._names[at]: at for at in best} | {name: self._at[name] for name in names if name in self._at}
            return {name: round(float(near[at]), 5) for name, at in found.items() if name is not None}

    def flush(self) -> None:
        """Keep what was noted and encoded, durably."""
        with self._changed, translated(self._path, CURE):
            if self._connection.in_transaction:
                self._connection.execute("COMMIT")

    def reset(self) -> None:
        """Forget everything."""
        with self._changed:
            self._connection.close()
            remove(self._path)
            self.version += 1
            self._open()

    def close(self) -> None:
        """Let the thread end and keep everything."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        self._thread.join()
        self.flush()
        self._connection.close()
