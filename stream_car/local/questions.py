"""The calls that ask, for whoever can be asked.

Promise: each is one question to what is built, whole and of one moment.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

from stream_car.local.projection import Built
from stream_car.queries.answers import (
    Answer,
    Audit,
    Evidence,
    Explanation,
    Frontier,
    History,
    Rejected,
    Resolution,
    Told,
)
from stream_car.queries.limits import DEPTH
from stream_car.queries.read_options import ReadOptions
from stream_car.queries.scopes import Parts

T = TypeVar("T")
Question = Callable[[Built, ReadOptions], Coroutine[object, object, T]]


class Questions:
    """What an engine can be asked; how it answers is up to `_ask`."""

    def _ask(self, question: Question[T]) -> T:
        raise NotImplementedError

    def query(
        self, text: str, *, k: int = 5, depth: int = DEPTH, as_of: int | None = None, budget: int | None = None
    ) -> Answer:
        """The documents in force for a question, best first, each with the path that leads to it.

        Once it has read `budget` keys it looks at no further anchor; the certificate says what was left out.
        """
        return self._ask(lambda built, _: built.queries.query(text, k=k, depth=depth, as_of=as_of, budget=budget))

    def relevance(self, text: str, k: int = 5) -> tuple[Evidence, ...]:
        """What plain search would answer, void or not: Stage 1 alone."""
        return self._ask(lambda built, _: built.queries.search(text, k))

    def resolve(self, names: Sequence[str], *, as_of: int | None = None) -> tuple[Resolution, ...]:
        """What controls these now: document ids, chunk ids (`doc#chunk`) or records."""
        return self._ask(lambda built, _: built.queries.resolve(names, as_of=as_of))

    def check(
        self, ids: Sequence[str], *, question: str | None = None, depth: int = 20, as_of: int | None = None
    ) -> Audit:
        """Whether a retrieved set is safe by Theorem 4, and what would repair it."""
        return self._ask(lambda built, _: built.queries.check(ids, question=question, depth=depth, as_of=as_of))

    def frontier(self, parts: Parts, *, as_of: int | None = None) -> tuple[Frontier, ...]:
        """The active members of every scope that has these `key=value` pairs."""
        return self._ask(lambda built, _: built.scopes.frontier(parts, as_of=as_of))

    def history(self, parts: Parts) -> tuple[History, ...]:
        """The timeline of every scope that has these pairs: from when each member held, and what ended it."""
        return self._ask(lambda built, _: built.scopes.history(parts))

    def changes(
        self, parts: Parts | None = None, *, after: int = 0, limit: int = 1000, behind: str = ""
    ) -> tuple[Told, ...]:
        """Frontier changes in the order in which they happened, from the one after `min_revisions` on.

        `behind` is the position of a change to go on from instead.
        """
        return self._ask(lambda built, _: built.scopes.changes(parts, after=after, limit=limit, behind=behind))

    def explain(self, name: str, *, as_of: int | None = None) -> Explanation:
        """Why a document is or is not active, and what controls it."""
        return self._ask(lambda built, _: built.scopes.explain(name, as_of=as_of))

    def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[Rejected, ...]:
        """Input that was refused, with its bytes, oldest first."""
        return self._ask(lambda built, _: built.scopes.rejected(after=after, limit=limit))

    def pending(self) -> tuple[tuple[str, int, int], ...]:
        """Documents that wait for their time: id, revision, time."""
        return self._ask(lambda built, _: built.scopes.pending())
