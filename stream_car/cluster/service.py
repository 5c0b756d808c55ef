"""The service of a query worker: documents go to Kafka, answers come from the index and from Redis.

Promise: calls mean what they mean on the embedded engine. Every answer is of one cut, or says that it is not.
Nothing is asked of it before its index has caught up.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import TypeVar

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.api.messages import PackText, Progress, Rules, Seen, Standing
from stream_car.api.messages import Waiting as Due
from stream_car.cluster.cancel import ended
from stream_car.cluster.change_feed import Changes, ManyTellers
from stream_car.cluster.connections import Works
from stream_car.cluster.indexer import Feeder
from stream_car.cluster.publishing import Publishing
from stream_car.cluster.rejected import Refusals
from stream_car.cluster.shared_log import Reading
from stream_car.errors import Halted, InvalidRequest, NotVisible, Unavailable
from stream_car.ports import ShardId, SnapshotReader
from stream_car.processing.effects import Future
from stream_car.processing.headers import Header
from stream_car.processing.state import HEADER, decode_value
from stream_car.queries.answers import (
    After,
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
from stream_car.queries.cache import ManyShardsCache
from stream_car.queries.limits import DEPTH
from stream_car.queries.queries import Queries
from stream_car.queries.read_options import DEFAULT_OPTIONS, ReadOptions
from stream_car.queries.scopes import ScopeQueries
from stream_car.queries.shards import ManyShards, ShardMoved, ValueSource
from stream_car.queries.snapshot import Snapshot
from stream_car.settings import ServerSettings
from stream_car.subscriptions.broadcast import Broadcast
from stream_car.subscriptions.events import Event, Filter
from stream_car.subscriptions.hub import SubscriptionHub
from stream_car.subscriptions.lookup_cache import LookupCache
from stream_car.subscriptions.subscription import SubscriptionSources
from stream_car.version import __version__

EXACT_S = 0.5  # how long an answer is read again before it is given with a reservation
PAUSE_S = 0.005
AGAIN_S = 0.5

T = TypeVar("T")


class Sleeping:
    """Implements `ports.RetryPolicy` by the clock."""

    def __init__(self, seconds: float) -> None:
        self.deadline = time.monotonic() + seconds

    async def wait(self) -> bool:
        """A few milliseconds later."""
        await asyncio.sleep(PAUSE_S)
        return time.monotonic() < self.deadline


class PatientQueries(Queries):
    """Questions to shards that move on their own: without other orders they are asked again for a while."""

    async def read_consistently(
        self,
        as_of: int | None,
        ask: Callable[[Snapshot], Awaitable[T]],
        options: ReadOptions = DEFAULT_OPTIONS,
        *,
        source: Callable[[], ValueSource] | None = None,
    ) -> T:
        """As `Queries` does; what could not be seen in time is `NotVisible`."""
        patient = options if options.retry is not None else ReadOptions(options.min_revisions, Sleeping(EXACT_S))
        try:
            return await super().read_consistently(as_of, ask, patient, source=source)
        except InvalidRequest as refused:
            if refused.code in ("not_visible", "pending"):
                raise NotVisible(refused.code, str(refused)) from refused
            raise


class ServersService:
    """Implements `api.service.Service`. Use it as an asynchronous context manager; `begin` comes first."""

    def __init__(
        self,
        works: Works,
        views: SnapshotReader,
        reading: Reading,
        index: TantivyIndex,
        keys: SqliteKeys,
        settings: ServerSettings,
    ) -> None:
        self.works = works
        self.index = index
        self.ruleset = works.plan.ruleset
        self.bell = Broadcast()
        self.feeder = Feeder(index, keys, views, reading.feeding("documents"), self.ruleset, works.partitions)
        self.tellings = Changes(works, reading.log("changes"), self.bell)
        shards = ManyShards(views, works.partitions)
        self.cache = ManyShardsCache()
        self.queries = PatientQueries(
            shards=shards, index=index, ruleset=self.ruleset, generation=works.generation, cache=self.cache
        )
        rejected = reading.log("rejected")
        self.refusals = Refusals(rejected)
        self.scopes = ScopeQueries(self.queries, change_log=self.tellings, log=rejected, partitions=works.partitions)
        sources = SubscriptionSources(
            shards=shards,
            listing=keys,
            change_log=self.tellings,
            index=index,
            ruleset=self.ruleset,
            generation=works.generation,
            shards_with_changes=works.partitions.frontiers,
            settle=self.feeder.settle,
            lookups=LookupCache(asyncio.Lock()),
        )
        self.subscriptions = SubscriptionHub(
            ManyTellers(sources, self.tellings),
            self.bell,
            limit=settings.subscriptions_max,
            heartbeat_s=settings.heartbeat_s,
        )
        self._publishing = Publishing(works, views, reading.log("documents"), self.feeder)
        self._views = views
        self.began_at: list[int] = []  # what a kept index had of each partition
        self._has_fed = False
        self._trouble: Halted | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Go on with the index that is there. Raises `Halted` (`generation`) where the workers go by other rules."""
        await self.feeder.begin()
        self.began_at = list(self.feeder.fed)

    async def __aenter__(self) -> "ServersService":
        self._tasks = [asyncio.create_task(self._kept_up(task)) for task in (self._feed(), self.tellings.run())]
        return self

    async def __aexit__(self, *_: object) -> None:
        await ended(*self._tasks)

    async def _kept_up(self, task: Coroutine[object, object, None]) -> None:
        """Where a task that nothing can do without ends, nothing is answered any more, and it is said why."""
        try:
            await task
        except Halted as halted:
            self._trouble = halted
        except Exception as error:
            self._trouble = Halted("bug", f"{type(error).__name__}: {error}; start this query worker again")

    async def _feed(self) -> None:
        """Catch up, then keep up; a server that is away is waited for, other rules end it."""
        while True:
            try:
                while await self.feeder.catch_up():
                    pass
                self._has_fed = True
                await self.feeder.run()
            except (Unavailable, ShardMoved):
                await asyncio.sleep(AGAIN_S)

    def end(self) -> None:
        """Let those go who listen."""
        self.subscriptions.end()

    @property
    def is_ready(self) -> bool:
        """Whether the index has caught up and changes are told."""
        return self._has_fed and self.tellings.is_open and self._trouble is None and not self.feeder.is_ahead

    def _require_ready(self) -> None:
        if self._trouble is not None:
            raise Unavailable(str(self._trouble), self._trouble.code)
        if self.feeder.is_ahead:
            raise Unavailable("state in Redis was lost and is being built anew from Kafka", "catching_up")
        if not self.is_ready:
            done, what = sum(self.feeder.fed), "documents are in the index so far; ask again when it has caught up"
            raise Unavailable(f"{done} {what}", "catching_up")

    async def replay(
        self, only: Sequence[int], mended: Mapping[int, bytes], *, trial: bool = False
    ) -> tuple[Replayed, ...]:
        """Not here: what was refused lies in a topic of its own."""
        raise InvalidRequest(
            "not_here",
            "over Kafka and Redis nothing is replayed from here; mend what was refused and publish it again",
        )

    async def rebuild(
        self,
        packs: Sequence[str] = (),
        texts: Sequence[PackText] = (),
        *,
        future: Future | None = None,
        dry_run: bool = False,
    ) -> Progress:
        """Not here: many workers share these rules."""
        raise InvalidRequest(
            "not_here",
            "workers over Kafka and Redis do not change their rules while they run; each starts with its own",
        )

    async def rebuilding(self) -> Progress:
        """None is ever begun here."""
        return Progress()

    async def require_ready(self) -> None:
        """Raises `Unavailable` until the index has caught up."""
        self._require_ready()
        await self.status()

    async def publish(self, documents: Sequence[bytes]) -> Published:
        """Keep documents durably and wait until they are applied; a receipt for each, in order."""
        return await self._publishing.publish(documents)

    # Questions

    async def _waiting(self, after: Sequence[Seen], timeout_ms: int) -> ReadOptions:
        """What an answer must have seen, and what is left of its time; the index has it. Raises `NotVisible`."""
        self._require_ready()
        if not after:
            return DEFAULT_OPTIONS
        seen = [After(id=one.id, revision=one.revision) for one in after]
        patience = Sleeping(timeout_ms / 1000)
        waiting = ReadOptions(seen, patience)

        async def look(reader: Snapshot) -> dict[int, int]:
            found: dict[int, int] = {}
            for one in seen:
                held = await reader.document(one.id)
                home = self.works.partitions.of_id(one.id)
                found[home] = max(found.get(home, 0), held.offset if held is not None else 0)
            return found

        upto = await self.queries.read_consistently(None, look, waiting)
        if not await self._publishing.has_applied(upto, patience.deadline):
            raise NotVisible("not_visible", "not every revision asked for has come into the index in time; ask again")
        return waiting

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
        waiting = await self._waiting(after, timeout_ms)
        return await self.queries.query(text, k=k, depth=depth, as_of=as_of, budget=budget, options=waiting)

    async def relevance(self, text: str, k: int = 5) -> tuple[Evidence, ...]:
        """What plain search would answer, void or not."""
        self._require_ready()
        return await self.queries.search(text, k)

    async def resolve(
        self, names: Sequence[str], *, as_of: int | None = None, after: Sequence[Seen] = (), timeout_ms: int = 5000
    ) -> tuple[Resolution, ...]:
        """What controls these now: document ids, chunk ids or records."""
        waiting = await self._waiting(after, timeout_ms)
        return await self.queries.resolve(names, as_of=as_of, options=waiting)

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
        waiting = await self._waiting(after, timeout_ms)
        return await self.queries.check(ids, question=question, depth=depth, as_of=as_of, options=waiting)

    async def frontier(self, parts: Mapping[str, str], *, as_of: int | None = None) -> tuple[Frontier, ...]:
        """The active members of every scope that has these `key=value` pairs."""
        self._require_ready()
        return await self.scopes.frontier(parts, as_of=as_of)

    async def history(self, parts: Mapping[str, str]) -> tuple[History, ...]:
        """The timeline of every scope that has these pairs."""
        self._require_ready()
        return await self.scopes.history(parts)

    async def explain(self, name: str, *, as_of: int | None = None) -> Explanation:
        """Why a document is or is not active, and what controls it."""
        self._require_ready()
        return await self.scopes.explain(name, as_of=as_of)

    async def changes(
        self, parts: Mapping[str, str] | None = None, *, after: int = 0, limit: int = 1000, behind: str = ""
    ) -> tuple[Told, ...]:
        """Frontier changes, shard by shard, each shard's in order, from the one after `min_revisions` on."""
        self._require_ready()
        return await self.scopes.changes(parts, after=after, limit=limit, behind=behind)

    async def subscribe(
        self, selection: Filter, *, after: str | None = None, snapshot: bool | None = None
    ) -> AsyncIterator[Sequence[Event]]:
        """What is in force now, then every change of it; from a cursor on without the former."""
        self._require_ready()
        return await self.subscriptions.subscribe(selection, after, snapshot)

    async def rejected(self, *, after: int = 0, limit: int = 100) -> tuple[Rejected, ...]:
        """Input that was refused, with its bytes, oldest first; `offset` is its place among the refused."""
        return tuple(one.shown() for one in await self.refusals.listed(after=after, limit=limit))

    async def pending(self) -> tuple[Due, ...]:
        """Documents that wait for their time, the next one due first."""
        return tuple(Due(id=name, revision=revision, time=due) for name, revision, due in await self.scopes.pending())

    async def rules(self) -> Rules:
        """The rules in force."""
        return Rules(generation=self.works.generation, domains=self.ruleset.packs)

    async def status(self) -> Standing:
        """Where the service stands: what all intake shards together have applied. Raises `Unavailable`."""
        self._require_ready()
        places = [ShardId("intake", q) for q in range(self.works.partitions.intakes)]
        found = await self._views.peek({place: [HEADER] for place in places})
        headers = [decode_value(HEADER, found[place][1].get(HEADER)) for place in places]
        known = [header for header in headers if isinstance(header, Header)]
        counts: dict[str, int] = {}
        for header in known:
            for name, count in header.counts.items():
                counts[name] = counts.get(name, 0) + count
        return Standing(
            version=__version__,
            generation=self.works.generation,
            next_offset=sum(found[place][0] for place in places),
            cursor=await self.subscriptions.cursor(),
            changes_from=max(await self.subscriptions.source.deleted_up_to()) + 1,
            documents=sum(header.documents for header in known),
            waiting=sum(header.pending for header in known),
            outcomes=dict(sorted(counts.items())),
            subscriptions=len(self.subscriptions),
            lag=await self.subscriptions.lag(),
        )
