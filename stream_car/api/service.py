"""What every way to run Stream-CAR offers to those who ask: the calls of the library, awaited.

Promise: a call means the same whoever implements it; the embedded engine does, and so can a worker
that queries over other back ends. Times are microseconds UTC. Bad requests raise `InvalidRequest`,
what cannot be done now another `StreamCarError`.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

from stream_car.api.messages import PackText, Progress, Rules, Seen, Standing, Waiting
from stream_car.processing.effects import Future
from stream_car.queries.answers import (
    Answer,
    Audit,
    Evidence,
    Explanation,
    Frontier,
    History,
    Published,
    Rejected,
    Replayed,
    Resolution,
    Told,
)
from stream_car.queries.limits import DEPTH
from stream_car.subscriptions.events import Event, Filter


class Service(Protocol):
    """Publish, and ask what is in force.

    With `min_revisions`, an answer is given only when it sees these revisions; `NotVisible` at the deadline.
    """

    async def publish(self, documents: Sequence[bytes]) -> Published:
        """Keep documents durably and apply them; a receipt for each, in order. Bad input is no error."""
        ...

    async def query(
        self,
        text: str,
        *,
        k: int = 5,
        depth: int = DEPTH,
        as_of: int | None = None,
        budget: int | None = None,
        after: Sequence[Seen] = (),
        timeout_ms: int = 5000,
    ) -> Answer:
        """The documents in force for a question, best first, each with the path that leads to it.

        Once it has read `budget` keys it looks at no further anchor; the certificate says what was left out.
        """
        ...

    async def relevance(self, text: str, k: int = 5) -> tuple[Evidence, ...]:
        """What plain search would answer, void or not."""
        ...

    async def resolve(
        self, names: Sequence[str], *, as_of: int | None = None, after: Sequence[Seen] = (), timeout_ms: int = 5000
    ) -> tuple[Resolution, ...]:
        """What controls these now: document ids, chunk ids or records."""
        ...

    async def check(
        self,
        ids: Sequence[str],
        *,
        question: str | None = None,
        depth: int = 20,
        as_of: int | None = None,
        after: Sequence[Seen] = (),
        timeout_ms: int = 5000,
    ) -> Audit:
        """Whether a retrieved set is safe by Theorem 4, and what would repair it."""
        ...

    async def frontier(self, parts: Mapping[str, str], *, as_of: int | None = None) -> tuple[Frontier, ...]:
        """The active members of every scope that has these `key=value` pairs."""
        ...

    async def history(self, parts: Mapping[str, str]) -> tuple[History, ...]:
        """The timeline of every scope that has these pairs."""
        ...

    async def changes(
        self, parts: Mapping[str, str] | None = None, *, after: int = 0, limit: int = 1000, behind: str = ""
    ) -> tuple[Told, ...]:
        """Frontier changes in the order in which they happened, from the one after `min_revisions` on.

        Where many shards tell them, one shard after the other; `behind` is the position of a change to go on from.
        """
        ...

    async def explain(self, name: str, *, as_of: int | None = None) -> Explanation:
        """Why a document is or is not active, and what controls it."""
        ...

    async def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[Rejected, ...]:
        """Input that was refused, with its bytes, oldest first."""
        ...

    async def pending(self) -> tuple[Waiting, ...]:
        """Documents that wait for their time, the next one due first."""
        ...

    async def subscribe(
        self, selection: Filter, *, after: str | None = None, snapshot: bool | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        """What is in force now, then every change of it; from a cursor on without the former.

        Close the iterator when you have heard enough. Raises `InvalidRequest`: `cursor`, `cursor_ahead`.
        """
        ...

    async def rules(self) -> Rules:
        """The rules in force."""
        ...

    async def status(self) -> Standing:
        """Where the service stands."""
        ...

    async def replay(
        self, only: Sequence[int], mended: Mapping[int, bytes], *, trial: bool = False
    ) -> tuple[Replayed, ...]:
        """Send refused input again, each at most once: as it came, or with mended bytes by offset.

        What would be refused again is not sent. Raises `InvalidRequest` (`offset`) for one that was not refused.
        """
        ...

    async def rebuild(
        self,
        packs: Sequence[str] = (),
        texts: Sequence[PackText] = (),
        *,
        future: Future | None = None,
        dry_run: bool = False,
    ) -> Progress:
        """Begin to build under other rules, beside the old ones, and to switch to them at once in the end.

        Raises `InvalidRules`, `InvalidRequest` (`rebuild_running`).
        """
        ...

    async def rebuilding(self) -> Progress:
        """How far a rebuild is, or how the last one ended."""
        ...

    async def require_ready(self) -> None:
        """Raises `StreamCarError` where it does not publish and answer."""
        ...
