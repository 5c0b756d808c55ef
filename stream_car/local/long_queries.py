"""Long questions share the time that short ones and publishers leave.

Promise: a question that has computed for `FIRST_S` is long. It continues in pieces, in turn with other long ones, and
holds nothing that a publisher or another question needs. Beyond a number of long questions, more are rejected.
"""

from time import perf_counter, thread_time
from types import TracebackType

from stream_car.queries.fair_scheduling import PIECE_S, LongWork, SpareTime

FIRST_S = 0.005  # of computing, before a question counts as long


class LongQueries(LongWork):
    """The long questions that run."""

    def __init__(self, spare_time: SpareTime) -> None:
        super().__init__()
        self.spare_time = spare_time


class RunningQuery:
    """One question while it is answered. Implements `queries.read_options.Pace`; use it as a context manager."""

    def __init__(self, queries: LongQueries) -> None:
        self.is_long = False
        self._queries = queries
        self._has_piece = False
        self._begin = perf_counter()  # costs a tenth of `thread_time`, and is never behind it
        self._computing_begin = thread_time()

    @property
    def is_due(self) -> bool:
        if self.is_long:
            return self._queries.spare_time.held_s >= PIECE_S
        return perf_counter() - self._begin >= FIRST_S and thread_time() - self._computing_begin >= FIRST_S

    async def rest(self) -> None:
        """Wait for the next turn. Raises `Overloaded`."""
        if not self.is_long:
            self._queries.begin()
            self.is_long = True
        self._end_piece()
        await self._queries.spare_time.begin_piece()
        self._has_piece = True

    def _end_piece(self) -> None:
        if self._has_piece:
            self._has_piece = False
            self._queries.spare_time.end_piece()

    def __enter__(self) -> "RunningQuery":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_piece()
        if self.is_long:
            self._queries.end()
