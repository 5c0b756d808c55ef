"""One data directory, shared by many callers on one event loop: what `stream-car serve` runs.

Promise: an answer is of one moment, and publishers never wait for one. Short questions are answered at once: SQLite and
tantivy answer in a millisecond or so, and Python would not run two at a time anyway. Long ones continue in pieces, over
a read transaction that begins with their first rest, see `long_queries`.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from msgspec import Struct

from stream_car.api import requests as r
from stream_car.api.base_service import Question, View, answers
from stream_car.errors import Halted, StreamCarError
from stream_car.local.change_feed import LocalChangeFeed
from stream_car.local.data_directory import DataDirectory
from stream_car.local.group_commit import GroupCommit
from stream_car.local.long_queries import LongQueries, RunningQuery
from stream_car.local.projection import Projection
from stream_car.local.service import LocalService, not_visible
from stream_car.ports import Message
from stream_car.processing.receipts import Receipt
from stream_car.queries import answers as a
from stream_car.queries.fair_scheduling import OneThread, SpareTime, Turns
from stream_car.queries.read_options import MinRevision, Pace, ReadOptions, StageTimer, no_timer
from stream_car.subscriptions.hub import SubscriptionHub

DELETE_S = 10.0  # between two looks for changes that are older than what is kept
DELETE_MAX = 1000  # changes deleted at a time
BUILD_MAX = 64  # records applied, or documents compared, before questions get their turn
QUIET_BUILD_MAX = 256  # the same without questions
BUILD_TURNS = 4
PREPARE_S = 0.01

T = TypeVar("T")


class _Switched(Exception):
    """Another generation answers by now."""


class _PaceOfGeneration(Struct, frozen=True):
    """A pace that ends the question when another generation answers. Implements `queries.read_options.Pace`."""

    pace: Pace
    directory: DataDirectory
    projection: Projection

    @property
    def is_due(self) -> bool:
        return self.pace.is_due

    async def rest(self) -> None:
        await self.pace.rest()
        if self.directory.projection is not self.projection:
            raise _Switched


class ConcurrentService(LocalService):
    """Implements `api.service.Service` for many callers. Use it as an asynchronous context manager."""

    accepts_paths = False

    def __init__(
        self,
        directory: DataDirectory,
        *,
        subscriptions_max: int = 1000,
        heartbeat_s: float = 15.0,
        changes_kept: int = 1_000_000,
        timer: StageTimer = no_timer,
    ) -> None:
        super().__init__(directory)
        self.changes_kept = changes_kept
        self._timer = timer
        self._replaying = asyncio.Lock()
        self._reading_feeds = asyncio.Lock()
        self.group_commit = GroupCommit(directory, timer)
        self.spare_time = SpareTime(lambda: self.group_commit.is_busy)
        self.long_queries = LongQueries(self.spare_time)
        self._side_thread = OneThread(self.long_queries)
        feed = LocalChangeFeed(directory, Turns(self.spare_time))
        self.hub = SubscriptionHub(feed, self.broadcast, limit=subscriptions_max, heartbeat_s=heartbeat_s)
        self._tasks: list[asyncio.Task[None]] = []
        self._rebuild_task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "ConcurrentService":
        self.directory.on_receipts = self._deliver
        self._tasks = [asyncio.create_task(self.group_commit.run()), asyncio.create_task(self._delete_changes())]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._rebuild_task is not None:
            self._rebuild_task.cancel()
            await asyncio.gather(self._rebuild_task, return_exceptions=True)
        self.directory.on_receipts = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def require_ready(self) -> str:
        self.group_commit.require_alive()
        self.directory.header()
        return await super().require_ready()

    def _deliver(self, receipts: Sequence[Receipt]) -> None:
        self.group_commit.deliver(receipts)
        self.broadcast.notify()

    async def _delete_changes(self) -> None:
        """Delete changes that are older than what is kept, a few at a time; a failing disk is tried again."""
        while True:
            await asyncio.sleep(DELETE_S)
            with suppress(StreamCarError):
                while self.directory.delete_changes(self.changes_kept, DELETE_MAX):
                    await asyncio.sleep(0)

    async def write(self, messages: Sequence[Message], client: str | None = None) -> Sequence[Receipt]:
        return await self.group_commit.publish(messages, client)

    async def publish_feed(self, request: r.Publish) -> a.Published:
        async with self._reading_feeds:  # what a feed has seen is committed after its publication
            return await super().publish_feed(request)

    async def rest(self) -> None:
        await asyncio.sleep(0)

    async def compute(self, work: Callable[[], T]) -> T:
        return await self._side_thread.run(work)

    @answers(r.Replay)
    async def replay(self, request: r.Replay) -> tuple[a.Replayed, ...]:
        async with self._replaying:  # or two callers would send the same
            return await super().replay(request)

    async def read(
        self,
        question: Question[T],
        *,
        min_revisions: Sequence[MinRevision] = (),
        timeout_ms: int = 0,
    ) -> T:
        await self._wait_until_visible(min_revisions, timeout_ms)
        with self.begin_query() as running:
            answer = await self._read(question, running)
        if not running.is_long:
            self.group_commit.expect_questions()
        return answer

    def begin_query(self) -> RunningQuery:
        """Return the pace of a question that begins now."""
        return RunningQuery(self.long_queries)

    async def _read(self, question: Question[T], pace: Pace) -> T:
        while True:
            projection = self.directory.prepare_read()
            options = ReadOptions(pace=_PaceOfGeneration(pace, self.directory, projection), timer=self._timer)
            try:
                return await question(View(projection.queries, projection.scopes, options))
            except _Switched:
                continue
            except Halted as halted:
                projection = self.directory.recover(halted)
                return await question(View(projection.queries, projection.scopes))

    async def _wait_until_visible(self, min_revisions: Sequence[MinRevision], timeout_ms: int) -> None:
        """Wait for these revisions. Raises `NotVisible`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        signal = self.broadcast.listen()
        missing = self.invisible(min_revisions)
        while missing:
            remaining = deadline - loop.time()
            if remaining <= 0:
                raise not_visible(missing)
            await self.broadcast.wait(signal, remaining)
            signal = self.broadcast.listen()
            missing = self.invisible(missing)

    # Rebuilds

    @answers(r.Rebuild)
    async def rebuild(self, request: r.Rebuild) -> a.RebuildStatus:
        status = await super().rebuild(request)
        self._rebuild_task = asyncio.create_task(self._run_rebuild())
        return status

    @answers(r.GetRebuildStatus)
    async def rebuild_status(self, request: r.GetRebuildStatus) -> a.RebuildStatus:
        return self.rebuilding.status

    async def _run_rebuild(self) -> None:
        """Build between questions, then switch at once. Its end is reported when nothing remains of it."""
        error: BaseException | None = asyncio.CancelledError()
        try:
            await self._build()
            if self.rebuilding.status.dry_run:
                while self.rebuilding.compare(BUILD_MAX):
                    await _rest()
            else:
                self.rebuilding.switch()
                self.broadcast.notify()
            error = None
        except Exception as failure:
            error = failure
        finally:
            await asyncio.to_thread(self.rebuilding.finish, error)

    async def _build(self) -> None:
        """All but the last few records, which the switch applies: waiting for none would race the publishers."""
        while self.rebuilding.build(BUILD_MAX if self.group_commit.has_questions else QUIET_BUILD_MAX):
            await _rest()
        while not self.rebuilding.is_prepared():
            await asyncio.sleep(PREPARE_S)


async def _rest() -> None:
    for _ in range(BUILD_TURNS):
        await asyncio.sleep(0)
