"""The service of a query worker: documents go to Kafka, answers come from the text index and from Redis.

Promise: every answer is of one cut, or says that it is not. The cut includes what the topics had when this process
began, and every publication for which this process has given a receipt. Nothing is answered before the index has caught
up. If Kafka has deleted records that the state or the index lacks, every answer says so (`lost_history`).
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.api import requests as r
from stream_car.api.base_service import BaseService, Question, View, answers
from stream_car.api.replay_plan import ReplayPlan
from stream_car.cluster.cancel import cancel
from stream_car.cluster.change_feed import ChangeTail, ClusterChangeFeed
from stream_car.cluster.connections import TOPICS, Connections
from stream_car.cluster.indexer import Indexer
from stream_car.cluster.publishing import Publisher
from stream_car.cluster.quarantine import ClusterQuarantine
from stream_car.cluster.rejected import RejectedTopic
from stream_car.cluster.shared_log import KafkaReaders
from stream_car.cluster.state_check import LOOK_S, StateCheck
from stream_car.core.rules import Ruleset
from stream_car.errors import Halted, InvalidRequest, NotVisible, Unavailable, Unsupported
from stream_car.ports import Message, Record, ShardId, SnapshotReader
from stream_car.processing.headers import Header
from stream_car.processing.quarantine import Quarantine
from stream_car.processing.receipts import Receipt
from stream_car.processing.state import HEADER, decode_value
from stream_car.queries import answers as a
from stream_car.queries.cache import ManyShardsCache
from stream_car.queries.fair_scheduling import LongWork, OneThread, YieldingPace
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import DEFAULT_OPTIONS, MinRevision, ReadOptions, mark_incomplete
from stream_car.queries.scopes import ScopeQueries
from stream_car.queries.shards import ManyShards, ShardMoved, ValueSource
from stream_car.queries.snapshot import Snapshot
from stream_car.settings import ServerSettings
from stream_car.subscriptions.broadcast import Broadcast
from stream_car.subscriptions.hub import Subscriber, SubscriptionHub
from stream_car.subscriptions.lookup_cache import LookupCache
from stream_car.subscriptions.subscription import SubscriptionSources
from stream_car.version import __version__

# Requests that raise `Unsupported`, and what to do instead; docs/reference/back-ends.md lists them.
UNSUPPORTED: Mapping[type[Struct], str] = {
    r.Rebuild: "Workers over Kafka and Redis do not change their rules while they run; start workers and query workers "
    "with other rules under another --namespace.",
}
# Fields of requests that do.
UNSUPPORTED_FIELDS: Mapping[tuple[type[Struct], str], str] = {
    (r.Publish, "format"): "Query workers do not remember how far a feed was read. Use `stream-car publish --format "
    "NAME FILE --url URL`, which remembers it on your side.",
}
EXACT_S = 0.5  # how long an answer is read again before it is given as not exact
PAUSE_S = 0.005
PAUSE_MAX_S = 0.04
RETRY_S = 0.5
CATCHING_UP = "State in Redis was lost and is being rebuilt from Kafka; try again later."
LOST_HISTORY = "Kafka has deleted records that are needed to build the state: deploy/runbook.md has the steps to take."

T = TypeVar("T")
_log = logging.getLogger(__name__)


class TimedRetries:
    """Implements `ports.RetryPolicy` by the clock. Pauses double up to `PAUSE_MAX_S`."""

    def __init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds
        self._pause_s = PAUSE_S

    async def wait(self) -> bool:
        if time.monotonic() >= self.deadline:
            return False
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, PAUSE_MAX_S)
        return True


class RetryingQueries(Queries):
    """Questions to shards that move on their own: unless told otherwise, they are read again for a while."""

    exact_s = EXACT_S

    async def read_consistently(
        self,
        as_of: int | None,
        ask: Callable[[Snapshot], Awaitable[T]],
        options: ReadOptions = DEFAULT_OPTIONS,
        *,
        source: Callable[[], ValueSource] | None = None,
    ) -> T:
        """As in `Queries`; what could not be seen in time is `NotVisible`."""
        retrying = replace(options, retry=options.retry or TimedRetries(self.exact_s))
        if source is None and isinstance(self.shards, ManyShards):  # what is published meanwhile need not be seen
            source = partial(self.shards.source, self.shards.required)
        try:
            return await super().read_consistently(as_of, ask, retrying, source=source)
        except InvalidRequest as error:
            if error.code in ("not_visible", "pending"):
                raise NotVisible(error.code, str(error)) from error
            raise


class ClusterService(BaseService):
    """Implements `api.service.Service`. Use it as an asynchronous context manager, after `begin`."""

    def __init__(
        self,
        connections: Connections,
        snapshots: SnapshotReader,
        readers: KafkaReaders,
        index: TantivyIndex,
        keys: SqliteKeys,
        settings: ServerSettings,
    ) -> None:
        self.connections = connections
        self.index = index
        self.broadcast = Broadcast()
        self._ruleset = connections.plan.ruleset
        partitions = connections.partitions
        documents, signatures = readers.dedicated("documents"), connections.signatures
        self.indexer = Indexer(index, keys, snapshots, documents, self._ruleset, partitions, signatures)
        self.change_tail = ChangeTail(connections, readers.shared("changes"), self.broadcast)
        shards = ManyShards(snapshots, partitions)
        self.cache = ManyShardsCache()
        self.queries = RetryingQueries(
            shards=shards, index=index, ruleset=self._ruleset, generation=connections.generation, cache=self.cache
        )
        self.rejected_topic = RejectedTopic(
            readers.shared("rejected"), readers.shared("documents"), snapshots, self._ruleset, partitions, signatures
        )
        self.scopes = ScopeQueries(
            self.queries, change_log=self.change_tail, log=readers.shared("documents"), partitions=partitions
        )
        sources = SubscriptionSources(
            shards=shards,
            listing=keys,
            change_log=self.change_tail,
            index=index,
            ruleset=self._ruleset,
            generation=connections.generation,
            shards_with_changes=partitions.frontiers,
            settle=self.indexer.settle,
            lookups=LookupCache(asyncio.Lock()),
            record_lookups=LookupCache(asyncio.Lock()),
        )
        self.hub = SubscriptionHub(
            ClusterChangeFeed(sources, self.change_tail),
            self.broadcast,
            limit=settings.subscriptions_max,
            heartbeat_s=settings.heartbeat_s,
        )
        self._shards = shards
        self._turn = asyncio.Lock()  # of long questions
        self.long_work = LongWork()
        self._side_thread = OneThread(self.long_work)
        self._state = StateCheck(shards, {hop: readers.shared(topic) for hop, topic in TOPICS.items()})
        self._publisher = Publisher(connections, snapshots, self.indexer, shards)
        self._quarantine = ClusterQuarantine(connections, snapshots, readers)
        self._snapshots = snapshots
        self.began_at: list[int] = []  # what a stored index had of each partition
        self._failure: Halted | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Continue with the stored index. Raises `Halted` (`generation`) if the workers have other rules."""
        await self.indexer.begin()
        self.began_at = list(self.indexer.indexed)
        await self._state.begin()
        self._note_lost()

    async def __aenter__(self) -> "ClusterService":
        tasks = (self._index, self.change_tail.run, self._check_state)
        self._tasks = [asyncio.create_task(self._watch(task)) for task in tasks]
        return self

    async def __aexit__(self, *_: object) -> None:
        await cancel(*self._tasks)

    async def end_cursor(self) -> str:
        """Return the cursor after the last change in the topic, which this process need not have read yet."""
        journal = self.connections.journal()
        numbers = [await journal.last(shard) for shard in range(self.connections.partitions.frontiers)]
        return self.hub.cursor_text(self.generation, tuple(numbers))

    async def _watch(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run a task that answers depend on: if it dies, stop answering and report why."""
        try:
            await task()
        except Halted as halted:
            self._failure = halted
        except Exception as error:
            self._failure = Halted("bug", f"{type(error).__name__}: {error}; restart this query worker.")

    async def _index(self) -> None:
        """Catch up, then keep up; a server that is away is waited for, other rules end it."""
        while True:
            try:
                await self.indexer.run()
            except (Unavailable, ShardMoved):
                await asyncio.sleep(RETRY_S)

    async def _check_state(self) -> None:
        """Compare the state with the topics again and again."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await self._state.look()
            except Unavailable:
                continue
            self._note_lost()

    def _note_lost(self) -> None:
        lost = {shard.shard for shard in self._state.lost if shard.hop == "intake"}
        if lost - self.indexer.lost:
            _log.warning("%s Intake shards: %s.", LOST_HISTORY, ", ".join(map(str, sorted(lost))))
        self.indexer.lost = lost
        self.queries.exact_s = 0.0 if self.has_lost_history else EXACT_S  # waiting does not bring it back

    @property
    def has_lost_history(self) -> bool:
        """Whether Kafka has deleted records of which the state or the index lacks what followed."""
        return bool(self._state.lost) or self.indexer.has_lost_history

    @property
    def ruleset(self) -> Ruleset:
        return self._ruleset

    @property
    def generation(self) -> str:
        return self.connections.generation

    @property
    def can_answer(self) -> bool:
        """Whether the index has caught up and is complete, and changes arrive."""
        indexer = self.indexer
        is_complete = indexer.has_caught_up and indexer.is_proven and not indexer.is_ahead
        return is_complete and self.change_tail.is_open and self._failure is None

    async def require_ready(self) -> str:
        """Raise `Unavailable` unless state, index and changes have what the topics had, and nothing was lost."""
        self._require_answers()
        await self._state.look()
        self._note_lost()
        if self.has_lost_history:
            raise Unavailable(LOST_HISTORY, "lost_history")
        if self._state.fallen_back:
            raise Unavailable(CATCHING_UP, "catching_up")
        if self._state.lagging:
            hop, shard = min(self._state.lagging)
            raise Unavailable(
                f"The state is catching up: {hop} shard {shard} has not applied what the topics had when this process "
                "began. Check that `stream-car worker` is running.",
                "catching_up",
            )
        await self.status(r.GetStatus())
        return ""

    def _require_answers(self) -> None:
        if self._failure is not None:
            raise Unavailable(str(self._failure), self._failure.code)
        if self.indexer.is_ahead:
            raise Unavailable(CATCHING_UP, "catching_up")
        if not self.can_answer:
            count = sum(self.indexer.indexed)
            raise Unavailable(f"The index is catching up: {count} documents so far; try again later.", "catching_up")

    async def read(
        self,
        question: Question[T],
        *,
        min_revisions: Sequence[MinRevision] = (),
        timeout_ms: int = 0,
    ) -> T:
        with YieldingPace(self._turn, self.long_work) as pace:
            options = await self._wait_until_indexed(min_revisions, timeout_ms, pace)
            return await self._read(question, options)

    async def compute(self, work: Callable[[], T]) -> T:
        return await self._side_thread.run(work)

    async def _read(self, question: Question[T], options: ReadOptions) -> T:
        if not self.has_lost_history:
            return await question(View(self.queries, self.scopes, options))
        try:
            marked = mark_incomplete(await question(View(self.queries, self.scopes, options)), "lost_history")
        except InvalidRequest as error:
            if error.code != "in_flight":
                raise
            marked = None
        if marked is None:  # an answer without a field for it
            raise Unavailable(LOST_HISTORY, "lost_history")
        return marked

    async def _wait_until_indexed(
        self, min_revisions: Sequence[MinRevision], timeout_ms: int, pace: YieldingPace
    ) -> ReadOptions:
        """Wait until the index has these revisions; what remains to be seen, and in which time. Raises `NotVisible`."""
        self._require_answers()
        if not min_revisions:
            return ReadOptions(pace=pace)
        retries = TimedRetries(timeout_ms / 1000)
        options = ReadOptions(min_revisions, retries, pace)

        async def offsets(snapshot: Snapshot) -> dict[int, int]:
            last: dict[int, int] = {}
            for wanted in min_revisions:
                stored = await snapshot.document(wanted.id)
                home = self.connections.partitions.of_id(wanted.id)
                last[home] = max(last.get(home, 0), stored.offset if stored is not None else 0)
            return last

        up_to = await self.queries.read_consistently(None, offsets, options)
        if not await self.indexer.wait_for(up_to, retries.deadline):
            raise NotVisible("not_visible", "Not every revision reached the index in time; try again.")
        return options

    async def open_subscription(self, request: r.Subscribe, client: str = "") -> Subscriber:
        self._require_answers()
        if self.has_lost_history:
            raise Unavailable(LOST_HISTORY, "lost_history")
        return await super().open_subscription(request, client)

    async def write(self, messages: Sequence[Message], client: str | None = None) -> Sequence[Receipt]:
        return await self._publisher.publish(messages)

    async def plan_replay(self, corrected: Mapping[int, bytes], offsets: Collection[int]) -> ReplayPlan:
        return await self.rejected_topic.plan_replay(corrected, offsets)

    async def quarantines(self) -> Mapping[ShardId, Quarantine]:
        return await self._quarantine.read()

    async def logged_record(self, shard_id: ShardId, offset: int) -> Record:
        return await self._quarantine.record(shard_id, offset)

    async def require_droppable(self, shard_id: ShardId) -> None:
        await self._quarantine.require_droppable(shard_id)

    async def drop_from_quarantine(self, shard_id: ShardId, offset: int) -> None:
        await self._quarantine.drop(shard_id, offset)

    @answers(r.GetRejected)
    async def rejected(self, request: r.GetRejected) -> tuple[a.Rejected, ...]:
        return await self.rejected_topic.list_from(request.after, request.limit)

    async def publish_feed(self, request: r.Publish) -> a.Published:
        raise Unsupported(UNSUPPORTED_FIELDS[r.Publish, "format"])

    @answers(r.Rebuild)
    async def rebuild(self, request: r.Rebuild) -> a.RebuildStatus:
        raise Unsupported(UNSUPPORTED[r.Rebuild])

    @answers(r.GetRebuildStatus)
    async def rebuild_status(self, request: r.GetRebuildStatus) -> a.RebuildStatus:
        return a.RebuildStatus()

    @answers(r.GetStatus)
    async def status(self, request: r.GetStatus) -> a.Status:
        """What all intake shards together have applied. Raises `Unavailable`."""
        self._require_answers()
        shards = [ShardId("intake", shard) for shard in range(self.connections.partitions.intakes)]
        snapshot = await self._snapshots.peek({shard: [HEADER] for shard in shards})
        fallen_back = [shard for shard in shards if self._shards.has_fallen_back(shard, [snapshot[shard][0]])]
        if fallen_back and not self._state.lost:
            raise Unavailable(CATCHING_UP, "catching_up")
        quarantined = await self.quarantined_count()
        reasons: list[a.Incomplete] = ["lost_history"] if self.has_lost_history else []
        reasons += ["quarantined"] if quarantined else []
        values = (decode_value(HEADER, snapshot[shard][1].get(HEADER)) for shard in shards)
        headers = [value for value in values if isinstance(value, Header)]
        outcomes = Counter[str]()
        for header in headers:
            outcomes.update(header.counts)
        return a.Status(
            version=__version__,
            generation=self.connections.generation,
            next_offset=sum(snapshot[shard][0] for shard in shards),
            cursor=await self.hub.cursor(),
            changes_from=max(await self.hub.source.deleted_up_to()) + 1,
            documents=sum(header.documents for header in headers),
            pending=sum(header.pending for header in headers),
            outcomes=dict(sorted(outcomes.items())),
            subscriptions=len(self.hub),
            lag=await self.hub.lag(),
            quarantined=quarantined,
            reasons=tuple(reasons),
        )
