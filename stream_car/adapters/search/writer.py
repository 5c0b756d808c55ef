"""tantivy's writer, whose commits run in a thread of their own.

Promise: what is handed over while a commit goes on is held, and given to tantivy in its order after the
commit, a little with everything that comes: it belongs to the next one. Whoever commits need not wait;
`finish` tells of a failure.
Not to be used from several threads at once. Cost: a commit takes 50-100 ms, nearly all of it outside Python.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import tantivy

from stream_car.adapters.search.schema import CURE, MARK, mark
from stream_car.errors import Halted, StreamCarError

_HEAP = 100_000_000
_GIVEN = 3  # of what was held, with everything that comes
_THREADS = 1  # keeps up with a publisher, and makes half as many segments as two would


class Writer:
    """Adds and deletes rows, and commits them."""

    def __init__(self, index: tantivy.Index) -> None:
        self._writer = index.writer(_HEAP, _THREADS)
        self._held: deque[tuple[str | None, tantivy.Document | None]] = deque()  # deleted id, or added row
        self._commit: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "index-commit")

    def delete(self, name: str) -> None:
        """Take the rows of this id away."""
        self._hand_over(name, None)

    def add(self, row: tantivy.Document) -> None:
        """Put a row in."""
        self._hand_over(None, row)

    def _hand_over(self, name: str | None, row: tantivy.Document | None) -> None:
        self._held.append((name, row))
        if self._commit is None:
            self._give(_GIVEN)

    def _give(self, most: int) -> None:
        for _ in range(min(most, len(self._held))):
            name, row = self._held.popleft()
            if name is not None:
                self._writer.delete_documents_by_term("id", name)
            if row is not None:
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
            self._give(len(self._held))
            self._writer.delete_documents_by_term("mark", MARK)
            self._writer.add_document(mark(position))
        self._commit = self._thread.submit(self._run, first)

    def _run(self, first: Callable[[], None]) -> None:
        first()
        self._writer.commit()

    def finish(self) -> None:
        """Wait for the commit."""
        if self._commit is not None:
            commit, self._commit = self._commit, None
            with writing():
                commit.result()

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
