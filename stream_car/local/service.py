"""The service over the embedded engine: one process, one event loop, no server beside it.

Promise: calls are those of the engine, and what one sees is of one moment. Questions are answered on
the loop, the short ones each at once: SQLite and tantivy answer in a millisecond or so, and Python would not run two at
a time anyway. Long ones go on in a lane of their own, see `lane`.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeVar

from stream_car.api.messages import PackText, Progress, Rules, Seen, Standing, Waiting
from stream_car.errors import NotVisible, StreamCarError
from stream_car.local.background_rebuild import Rebuilding
from stream_car.local.change_feed import Folder
from stream_car.local.engine import Engine
from stream_car.local.group_commit import Publisher
from stream_car.local.long_queries import Lane
from stream_car.local.questions import Question
from stream_car.ports import Message
from stream_car.processing.effects import Future
from stream_car.processing.receipts import Receipt
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
from stream_car.queries.fair_scheduling import SpareTime, Turns
from stream_car.queries.limits import DEPTH
from stream_car.queries.read_options import StageTimer, untimed
from stream_car.subscriptions.broadcast import Broadcast
from stream_car.subscriptions.events import Event, Filter
from stream_car.subscriptions.hub import SubscriptionHub
from stream_car.version import __version__

NAMES_SHORT = 32
TEXT_SHORT = 500  # characters; a question beyond one of these goes into the lane at once
K_SHORT = 20
FORGET_S = 10.0
FORGET_AT_ONCE = 1000

T = TypeVar("T")


class EmbeddedService:
    """Implements `api.service.Service`. Use it as an asynchronous context manager."""

    def __init__(
        self,
        engine: Engine,
        *,
        subscriptions_max: int = 1000,
        heartbeat_s: float = 15.0,
        changes_kept: int = 1_000_000,
        timed: StageTimer = untimed,
    ) -> None:
        self.engine = engine
        self.bell = Broadcast()
        self._replaying = asyncio.Lock()
        still = asyncio.Lock()
        spare = SpareTime(lambda: self.publisher.is_wanted)
        self.lane = Lane(spare, still)
        self.publisher = Publisher(engine, still, timed)
        self._timed = timed
        changing = Folder(engine, Turns(spare))
        self.subscriptions = SubscriptionHub(changing, self.bell, limit=subscriptions_max, heartbeat_s=heartbeat_s)
        self.rebuilds = Rebuilding(engine, self.bell, still, lambda: self.publisher.is_asked)
        self.changes_kept = changes_kept
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "EmbeddedService":
        self.engine.heard = self._hear
        self._tasks = [asyncio.create_task(self.publisher.run()), asyncio.create_task(self._forget())]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.rebuilds.stop()
        self.engine.heard = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _forget(self) -> None:
        """Let go of changes that are older than what is kept, a few at a time; what a disk refuses is tried again."""
        while True:
            await asyncio.sleep(FORGET_S)
            with suppress(StreamCarError):
                while self.engine.forget_changes(self.changes_kept, FORGET_AT_ONCE):
                    await asyncio.sleep(0)

    def _hear(self, receipts: Sequence[Receipt]) -> None:
        self.publisher.hear(receipts)
        self.bell.notify()

    async def replay(
        self, only: Sequence[int], mended: Mapping[int, bytes], *, trial: bool = False
    ) -> tuple[Replayed, ...]:
        """Send refused input again, each at most once: as it came, or with mended bytes by offset."""
        if not only and not mended:
            return ()
        async with self._replaying:  # or two would send the same
            plan = self.engine.replaying(mended, only)
            sent = {} if trial else plan.sent
            receipts = await self.publisher.publish(list(sent.values()))
        return plan.told(dict(zip(sent, receipts, strict=True)))

    async def rebuild(
        self,
        packs: Sequence[str] = (),
        texts: Sequence[PackText] = (),
        *,
        future: Future | None = None,
        dry_run: bool = False,
    ) -> Progress:
        """Begin to build under other rules, beside the old ones, and to switch to them at once in the end."""
        return self.rebuilds.begin(packs, texts, future, dry_run=dry_run)

    async def rebuilding(self) -> Progress:
        """How far a rebuild is, or how the last one ended."""
        return self.rebuilds.progress()

    async def require_ready(self) -> None:
        """Raises `StreamCarError` where it does not publish and answer."""
        self.publisher.require_alive()
        self.engine.header()

    async def publish(self, documents: Sequence[bytes]) -> Published:
        """Keep documents durably and apply them; a receipt for each, in order. Bad input is no error."""
        return Published(receipts=tuple(await self.publisher.publish([Message(value=value) for value in documents])))

    async def _see(self, after: Sequence[Seen], timeout_ms: int) -> None:
        """Wait until these revisions are visible. Raises `NotVisible`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        heard = self.bell.listen()
        lacking = [seen for seen in after if not self._is_visible(seen)]
        while lacking:
            left = deadline - loop.time()
            if left <= 0:
                named = ", ".join(f"revision {seen.revision} of {seen.id}" for seen in lacking[:3])
                raise NotVisible("not_visible", f"{named} did not become visible in {timeout_ms} ms; was it accepted?")
            await self.bell.wait(heard, left)
            heard = self.bell.listen()
            lacking = [seen for seen in lacking if not self._is_visible(seen)]

    def _is_visible(self, seen: Seen) -> bool:
        standing = self.engine.standing(seen.id)
        if standing is None or standing.revision < seen.revision:
            return False
        if standing.pending is not None:
            raise NotVisible(
                "pending", f"revision {standing.revision} of {seen.id} waits for its time; see /v1/pending"
            )
        return True

    async def _ask(self, question: Question[T], *, is_long: bool = False) -> T:
        """The answer: at once if it is short, in the lane if it is long."""
        if not is_long:
            self.publisher.give_way()
        async with self.lane.turn(is_long=is_long) as turn:
            return await self.engine.gently(question, turn.give_way, self._timed)

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
        """The documents in force for a question, best first, each with the path that leads to it."""
        await self._see(after, timeout_ms)
        return await self._ask(
            lambda built, waiting: built.queries.query(
                text, k=k, depth=depth, as_of=as_of, budget=budget, options=waiting
            ),
            is_long=_is_long(text, k, depth),
        )

    async def relevance(self, text: str, k: int = 5) -> tuple[Evidence, ...]:
        """What plain search would answer, void or not."""
        return await self._ask(
            lambda built, waiting: built.queries.search(text, k, options=waiting), is_long=_is_long(text, k)
        )

    async def resolve(
        self, names: Sequence[str], *, as_of: int | None = None, after: Sequence[Seen] = (), timeout_ms: int = 5000
    ) -> tuple[Resolution, ...]:
        """What controls these now."""
        await self._see(after, timeout_ms)
        return await self._ask(
            lambda built, waiting: built.queries.resolve(names, as_of=as_of, options=waiting),
            is_long=len(names) > NAMES_SHORT,
        )

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
        await self._see(after, timeout_ms)
        return await self._ask(
            lambda built, waiting: built.queries.check(
                ids, question=question, depth=depth, as_of=as_of, options=waiting
            ),
            is_long=len(ids) > NAMES_SHORT or _is_long(question or "", 1, depth),
        )

    async def frontier(self, parts: Mapping[str, str], *, as_of: int | None = None) -> tuple[Frontier, ...]:
        """The active members of every scope that has these `key=value` pairs."""
        return await self._ask(lambda built, waiting: built.scopes.frontier(parts, as_of=as_of, options=waiting))

    async def history(self, parts: Mapping[str, str]) -> tuple[History, ...]:
        """The timeline of every scope that has these pairs."""
        return await self._ask(lambda built, waiting: built.scopes.history(parts, options=waiting))

    async def changes(
        self, parts: Mapping[str, str] | None = None, *, after: int = 0, limit: int = 1000, behind: str = ""
    ) -> tuple[Told, ...]:
        """Frontier changes in the order in which they happened, from the one after `min_revisions` on."""
        return self.engine.changes(parts, after=after, limit=limit, behind=behind)

    async def explain(self, name: str, *, as_of: int | None = None) -> Explanation:
        """Why a document is or is not active, and what controls it."""
        return await self._ask(lambda built, waiting: built.scopes.explain(name, as_of=as_of, options=waiting))

    async def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[Rejected, ...]:
        """Input that was refused, with its bytes, oldest first."""
        return self.engine.rejected(after=after, limit=limit)

    async def pending(self) -> tuple[Waiting, ...]:
        """Documents that wait for their time, the next one due first."""
        return tuple(Waiting(id=name, revision=revision, time=time) for name, revision, time in self.engine.pending())

    async def subscribe(
        self, selection: Filter, *, after: str | None = None, snapshot: bool | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        """What is in force now, then every change of it; from a cursor on without the former."""
        return await self.subscriptions.subscribe(selection, after, snapshot)

    async def rules(self) -> Rules:
        """The rules in force."""
        return Rules(generation=self.engine.generation, domains=self.engine.ruleset.packs)

    async def status(self) -> Standing:
        """Where the service stands."""
        engine = self.engine
        header = engine.header()
        return Standing(
            version=__version__,
            generation=engine.generation,
            next_offset=engine.next_offset,
            cursor=f"{engine.generation}:{engine.last_change()}",
            changes_from=engine.deleted_up_to() + 1,
            documents=header.documents,
            waiting=header.pending,
            outcomes=dict(sorted(header.counts.items())),
            subscriptions=len(self.subscriptions),
            lag=await self.subscriptions.lag(),
        )


def _is_long(text: str, k: int, depth: int = DEPTH) -> bool:
    """Whether a question asks for so much that it may keep others waiting."""
    return len(text) > TEXT_SHORT or k > K_SHORT or depth > DEPTH
