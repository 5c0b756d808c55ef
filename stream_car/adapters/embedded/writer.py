"""tantivy's writer, whose commits run in a thread of their own.

Promise: what is handed over while a commit goes on is held, and given to tantivy in its order once the
commit has ended: it belongs to the next one. Whoever commits need not wait; `finish` tells of a failure.
Not to be used from several threads at once. Cost: a commit takes 50-100 ms, nearly all of it outside Python.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import tantivy

from stream_car.adapters.embedded.rows import CURE, MARK, mark
from stream_car.errors import Halted, StreamCarError

_HEAP = 100_000_000
_THREADS = 1  # keeps up with a publisher, and makes half as many segments as two would


class Writer:
    """Adds and deletes rows, and commits them."""

    def __init__(self, index: tantivy.Index) -> None:
        self._writer = index.writer(_HEAP, _THREADS)
        self._held: list[tuple[str | None, tantivy.Document | None]] = []  # deleted id, or added row
        self._commit: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "index-commit")

    def delete(self, name: str) -> None:
        """Take the rows of this id away."""
        if self._commit is not None:
            self._held.append((name, None))
        else:
            self._writer.delete_documents_by_term("id", name)

    def add(self, row: tantivy.Document) -> None:
        """Put a row in."""
        if self._commit is not None:
            self._held.append((None, row))
        else:
            self._writer.add_document(row)

    @property
    def is_committing(self) -> bool:
        """Whether a commit was begun whose end nobody has asked for yet."""
        return self._commit is not None

    @property
    def is_through(self) -> bool:
        """Whether a commit was begun and `finish` would not wait."""
        return self._commit is not None and self._commit.done()

    def begin(self, position: int, first: Callable[[], None]) -> None:
        """Commit all that was handed over, with the position it reaches, after calling `first` in that thread."""
        with writing():
            self._writer.delete_documents_by_term("mark", MARK)
            self._writer.add_document(mark(position))
        self._commit = self._thread.submit(self._run, first)

    def _run(self, first: Callable[[], None]) -> None:
        first()
        self._writer.commit()

    def finish(self) -> None:
        """Wait for the commit, and hand over what was held meanwhile."""
        if self._commit is None:
            return
        commit, self._commit = self._commit, None
        held, self._held = self._held, []
        with writing():
            try:
                commit.result()
            finally:
                for name, row in held:
                    if name is not None:
                        self._writer.delete_documents_by_term("id", name)
                    if row is not None:
                        self._writer.add_document(row)

    def close(self) -> None:
        """Wait for the commit and for merges, and let go of the files."""
        self._thread.shutdown()
        with writing():
            self._writer.wait_merging_threads()


@contextmanager
def reading() -> Iterator[None]:
    """Whatever tantivy raises while it reads its own files means that they are not as it wrote them."""
    try:
        yield
    except BaseException as error:
        if _is_tantivys(error):
            raise Halted("damaged", f"the text index cannot be read ({error}); {CURE}") from error
        raise


@contextmanager
def writing() -> Iterator[None]:
    """A writer that has failed once stays unusable; what it had not committed is fed again from the log."""
    try:
        yield
    except BaseException as error:
        if _is_tantivys(error):
            raise StreamCarError(f"the text index cannot be written ({error}); free disk space and restart") from error
        raise


def _is_tantivys(error: BaseException) -> bool:
    """Its panics are no `Exception`, and their class cannot be imported."""
    return isinstance(error, (ValueError, RuntimeError, OSError)) or type(error).__name__ == "PanicException"
