"""tantivy's writer, whose commits run in a thread of their own.

Promise: rows that arrive during a commit wait in a queue. After the commit they are passed to tantivy in order, a few
with each row that arrives, and belong to the next commit. The caller need not wait for a commit; `finish` raises its
error. Use the writer from one thread at a time. Cost: a commit takes 50-100 ms, nearly all of it outside Python.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import tantivy

from stream_car.adapters.search.schema import CURE, MARK, Statistics, statistics_row
from stream_car.errors import Halted, StreamCarError

_HEAP = 100_000_000
_PASSED_ON = 3  # queued rows that are passed on with each row that arrives
_THREADS = 1  # keeps up with a publisher, and makes half as many segments as two threads would


class Writer:
    """Adds and deletes rows, and commits them."""

    def __init__(self, index: tantivy.Index) -> None:
        self._writer = index.writer(_HEAP, _THREADS)
        self._queue: deque[tuple[str | None, tantivy.Document | None]] = deque()  # deleted id, or added row
        self._commit: Future[None] | None = None
        self._thread = ThreadPoolExecutor(1, "index-commit")

    def delete(self, document_id: str) -> None:
        """Delete the rows of a document."""
        self._enqueue(document_id, None)

    def add(self, row: tantivy.Document) -> None:
        """Add a row."""
        self._enqueue(None, row)

    def _enqueue(self, document_id: str | None, row: tantivy.Document | None) -> None:
        self._queue.append((document_id, row))
        if self._commit is None:
            self._pass_on(_PASSED_ON)

    def _pass_on(self, limit: int) -> None:
        for _ in range(min(limit, len(self._queue))):
            document_id, row = self._queue.popleft()
            if document_id is not None:
                self._writer.delete_documents_by_term("id", document_id)
            if row is not None:
                self._writer.add_document(row)

    @property
    def is_committing(self) -> bool:
        """Whether a commit was begun for which `finish` has not been called."""
        return self._commit is not None

    @property
    def is_commit_done(self) -> bool:
        """Whether a commit was begun for which `finish` would not wait."""
        return self._commit is not None and self._commit.done()

    def begin(self, statistics: Statistics, before_commit: Callable[[], None]) -> None:
        """Begin to commit every row so far, and the statistics that they lead to.

        The thread of the commit calls `before_commit` first.
        """
        with translate_write_errors():
            self._pass_on(len(self._queue))
            self._writer.delete_documents_by_term("mark", MARK)
            self._writer.add_document(statistics_row(statistics))
        self._commit = self._thread.submit(self._run, before_commit)

    def _run(self, before_commit: Callable[[], None]) -> None:
        before_commit()
        self._writer.commit()

    def finish(self) -> None:
        """Wait for the commit. Raises its error."""
        if self._commit is not None:
            commit, self._commit = self._commit, None
            with translate_write_errors():
                commit.result()

    def close(self) -> None:
        """Wait for the commit and for merges, and close the files."""
        self._thread.shutdown()
        with translate_write_errors():
            self._writer.wait_merging_threads()


@contextmanager
def translate_read_errors() -> Iterator[None]:
    """Raise tantivy's errors as `Halted`: if it cannot read its own files, they are not as it wrote them."""
    try:
        yield
    except BaseException as error:
        if _is_tantivy_error(error):
            raise Halted("damaged", f"The text index cannot be read ({error}). {CURE}") from error
        raise


@contextmanager
def translate_write_errors() -> Iterator[None]:
    """Raise tantivy's errors as ours.

    A writer that failed stays unusable. What it did not commit is indexed again from the log.
    """
    try:
        yield
    except BaseException as error:
        if _is_tantivy_error(error):
            raise StreamCarError(f"The text index cannot be written ({error}). Free disk space and restart.") from error
        raise


def _is_tantivy_error(error: BaseException) -> bool:
    """Return whether tantivy raised it. Its panics are not an `Exception`, and their class cannot be imported."""
    return isinstance(error, (ValueError, RuntimeError, OSError)) or type(error).__name__ == "PanicException"
