"""The service of one process: every request, answered from a data directory.

Promise: nothing here suspends, so the synchronous library runs it without an event loop. `ConcurrentService` shares a
directory among many callers.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import TypeVar

from stream_car.adapters.sqlite.feed_positions import FILE as FEED_POSITIONS, FeedPositionFile
from stream_car.adapters.system_clock import CLOCK_CURE, clock_notice
from stream_car.api import requests as r
from stream_car.api.base_service import BaseService, Question, View, answers
from stream_car.api.feed_publishing import publish_feed
from stream_car.api.replay_plan import ReplayPlan
from stream_car.core.rules import Ruleset
from stream_car.errors import Halted, InvalidRequest, NotVisible
from stream_car.feeds import find_format
from stream_car.local.change_feed import LocalChangeFeed
from stream_car.local.data_directory import DataDirectory
from stream_car.local.feed_checkpoint import FeedCheckpoint
from stream_car.local.rebuild import NewGeneration, RebuildRun
from stream_car.ports import Message, Record, ShardId
from stream_car.processing.quarantine import QUARANTINE, Quarantine
from stream_car.processing.receipts import Receipt
from stream_car.queries import answers as a
from stream_car.queries.read_options import MinRevision, invisible_reason
from stream_car.rule_packs import load_texts
from stream_car.subscriptions.broadcast import Broadcast
from stream_car.subscriptions.hub import Subscriber, SubscriptionHub
from stream_car.version import __version__

SHARD = ShardId("intake", 0)  # the one shard, in the words of the two-hop form
T = TypeVar("T")


class LocalService(BaseService):
    """Implements `api.service.Service` for one caller at a time."""

    accepts_paths = True  # of rule packs, in a rebuild: its caller may read the files of this process

    def __init__(self, directory: DataDirectory) -> None:
        self.directory = directory
        self.broadcast = Broadcast()
        self.hub = SubscriptionHub(LocalChangeFeed(directory), self.broadcast)
        self.rebuilding = RebuildRun()

    @property
    def ruleset(self) -> Ruleset:
        return self.directory.ruleset

    @property
    def generation(self) -> str:
        return self.directory.generation

    async def require_ready(self) -> str:
        self.directory.require_open()
        notice = clock_notice(self.directory.clock_lead)
        return f"{notice} {CLOCK_CURE}" if notice else ""

    def close(self) -> None:
        """Abandon a rebuild that is running. The directory stays open."""
        self.rebuilding.stop()

    async def read(
        self,
        question: Question[T],
        *,
        min_revisions: Sequence[MinRevision] = (),
        timeout_ms: int = 0,
    ) -> T:
        projection = self.directory.prepare_read()
        for missing in self.invisible(min_revisions):
            raise not_visible([missing])
        try:
            return await question(View(projection.queries, projection.scopes))
        except Halted as halted:
            projection = self.directory.recover(halted)
            return await question(View(projection.queries, projection.scopes))

    def invisible(self, min_revisions: Sequence[MinRevision]) -> list[MinRevision]:
        """The revisions that are not visible yet. Raises `NotVisible` for one that waits for its time."""
        return [wanted for wanted in min_revisions if not self._is_visible(wanted)]

    def _is_visible(self, wanted: MinRevision) -> bool:
        stored = self.directory.stored(wanted.id)
        if stored is None or stored.revision < wanted.revision:
            return False
        if stored.pending is not None:
            raise NotVisible(
                "pending", f"Revision {stored.revision} of {wanted.id} waits for its time; `pending` lists what does."
            )
        return True

    async def write(self, messages: Sequence[Message], client: str | None = None) -> Sequence[Receipt]:
        self.directory.require_open()
        return self.directory.publish(messages) if messages else []

    async def publish_feed(self, request: r.Publish) -> a.Published:
        async def publish(documents: Sequence[bytes]) -> Sequence[Receipt]:
            return await self.write([Message(value=value) for value in documents], request.client)

        directory = self.directory
        directory.require_open()
        form = find_format(request.format)
        with closing(FeedPositionFile(directory.path / FEED_POSITIONS, end=directory.next_offset)) as rows:
            memory = FeedCheckpoint(form.name, rows)
            strict_rules = self.ruleset if request.strict else None
            published = await publish_feed(
                form.name, request.documents, memory, publish, strict_rules=strict_rules, rest=self.rest
            )
            memory.commit(reached=directory.next_offset)
        return published

    async def rest(self) -> None:
        """Give way to others between pieces of work; there are none."""

    async def plan_replay(self, corrected: Mapping[int, bytes], offsets: Collection[int]) -> ReplayPlan:
        return self.directory.plan_replay(corrected, offsets)

    async def quarantines(self) -> Mapping[ShardId, Quarantine]:
        value = self.directory.prepare_read().value(QUARANTINE)
        return {SHARD: value} if isinstance(value, Quarantine) else {}

    async def logged_record(self, shard_id: ShardId, offset: int) -> Record:
        [record] = await self.directory.projection.log.fetch(0, offset, 1)
        return record

    async def require_droppable(self, shard_id: ShardId) -> None:
        """Do nothing: whoever has the data directory may write it."""

    async def drop_from_quarantine(self, shard_id: ShardId, offset: int) -> None:
        await self.directory.prepare_read().shard.drop_quarantined(offset)

    @answers(r.GetRejected)
    async def rejected(self, request: r.GetRejected) -> tuple[a.Rejected, ...]:
        return await self.read(
            lambda view: view.scopes.rejected(after=request.after, limit=request.limit, options=view.options)
        )

    @answers(r.Rebuild)
    async def rebuild(self, request: r.Rebuild) -> a.RebuildStatus:
        if self.rebuilding.status.is_running:
            raise InvalidRequest("rebuild_running", "Another rebuild is running; its status tells how far it is.")
        self.rebuilding.begin(self.begin_rebuild(request), dry_run=request.dry_run)
        return self.rebuilding.status

    def begin_rebuild(self, request: r.Rebuild) -> NewGeneration:
        names = [pack for pack in request.rules if isinstance(pack, str)]
        texts = {pack.name: pack.text for pack in request.rules if isinstance(pack, r.RuleText)}
        ruleset = load_texts(names, texts) if texts or (names and not self.accepts_paths) else None
        return self.directory.rebuild(names or None, ruleset=ruleset, future=request.future)

    @answers(r.GetRebuildStatus)
    async def rebuild_status(self, request: r.GetRebuildStatus) -> a.RebuildStatus:
        """Do the next step of the rebuild, and report its progress: nothing else drives it here."""
        run = self.rebuilding
        if run.status.is_running:
            try:
                if run.status.state == "building" and run.build():
                    return run.status
                if run.status.dry_run:
                    if run.compare():
                        return run.status
                else:
                    run.switch()
            except BaseException as error:
                run.finish(error)
                raise
            run.finish()
        return run.status

    async def open_subscription(self, request: r.Subscribe, client: str = "") -> Subscriber:
        self.directory.prepare_read()
        return await super().open_subscription(request, client)

    @answers(r.GetStatus)
    async def status(self, request: r.GetStatus) -> a.Status:
        directory = self.directory
        directory.prepare_read()
        header, quarantined = directory.header(), await self.quarantined_count()
        return a.Status(
            version=__version__,
            generation=directory.generation,
            next_offset=directory.next_offset,
            cursor=await self.hub.cursor(),
            changes_from=directory.changes_deleted_up_to() + 1,
            documents=header.documents,
            pending=header.pending,
            outcomes=dict(sorted(header.counts.items())),
            subscriptions=len(self.hub),
            lag=await self.hub.lag(),
            quarantined=quarantined,
            reasons=("quarantined",) if quarantined else (),
        )


def not_visible(missing: Sequence[MinRevision]) -> NotVisible:
    """The error that these revisions did not become visible in time."""
    return NotVisible("not_visible", invisible_reason(missing))
