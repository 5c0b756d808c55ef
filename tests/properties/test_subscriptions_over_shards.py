"""Subscriptions over the shards of two hops, which advance while they are read: the same as over one engine."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.journal import SqliteJournal
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.adapters.sqlite.log import SqliteLog
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.adapters.sqlite.store import SqliteStore
from stream_car.cluster.indexer import Indexer
from stream_car.cluster.shard_runner import RunnableShard
from stream_car.core import definitions, frontier
from stream_car.core.documents import Statement
from stream_car.core.rules import Ruleset
from stream_car.local.run_sync import run_sync
from stream_car.ports import Emission, Message, ShardId
from stream_car.processing.outbox import IntakeOutbox
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import FrontierFold, IntakeFold
from stream_car.queries.shards import ManyShards
from stream_car.subscriptions.events import Notice, Selection, View
from stream_car.subscriptions.subscription import SubscriptionReader, SubscriptionSources
from tests.support.engines import StoppedClock
from tests.support.followers import Follower, encode_statement, random_selection, take_small_steps, use_small_pages
from tests.support.store_views import StoreViews
from tests.support.streams import random_rules, random_stream
from tests.support.two_hop_folds import SIGNATURES

PARTS = Partitions(intakes=2, frontiers=3)


class LateJournal:
    """Implements `ports.RetainedChangeLog`; the changes of a shard arrive a little later."""

    def __init__(self, journal: SqliteJournal, random: Random) -> None:
        self.journal = journal
        self.random = random
        self.arrived = [0] * PARTS.frontiers

    async def last(self, shard: int) -> int:
        """The last change that has arrived."""
        if self.random.random() < 0.5:
            last = await self.journal.last(shard)
            self.arrived[shard] = self.random.randint(self.arrived[shard], last)
        return self.arrived[shard]

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        """Changes that have arrived."""
        emissions = await self.journal.read(shard, stream, after=after, limit=limit, key=key)
        return [emission for emission in emissions if emission.oseq <= self.arrived[shard]]

    async def deleted_up_to(self, shard: int) -> int:
        return 0

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        raise NotImplementedError

    async def delete_up_to(self, shard: int, stream: str, up_to: int, limit: int) -> int:
        raise NotImplementedError


class Moving:
    """Both hops in files, with an index; shards advance by a record or two between two reads."""

    def __init__(self, folder: Path, ruleset: Ruleset, random: Random) -> None:
        self.random = random
        clock = StoppedClock()
        self.files = [StateFile(folder / f"{hop}.sqlite") for hop in ("intake", "frontier")]
        self.logs = [
            SqliteLog(folder / f"{name}.sqlite", clock, count)
            for name, count in (("documents", PARTS.intakes), ("placements", PARTS.frontiers), ("rejected", 1))
        ]
        documents, placements, rejected = self.logs
        stores = [SqliteStore(file) for file in self.files]
        outlet = IntakeOutbox(
            PARTS, signatures=SIGNATURES, placements=placements, documents=documents, rejected=rejected
        )
        self.journal = SqliteJournal(self.files[1])
        intake = [IntakeFold(ruleset, PARTS, shard=q, signatures=SIGNATURES) for q in range(PARTS.intakes)]
        frontiers = [FrontierFold(ruleset, PARTS, shard=p, signatures=SIGNATURES) for p in range(PARTS.frontiers)]
        self.shards: list[RunnableShard] = [
            *(Shard(shard=f.shard, log=documents, store=stores[0], event_sink=outlet, fold=f) for f in intake),
            *(
                Shard(shard=f.shard, log=placements, store=stores[1], event_sink=self.journal, fold=f)
                for f in frontiers
            ),
        ]
        self.views = StoreViews(intake=stores[0], frontier=stores[1])
        self.index = TantivyIndex(folder / "index")
        self.keys = SqliteKeys(folder / "keys.sqlite", "test")
        self.indexer = Indexer(self.index, self.keys, self.views, documents, ruleset, PARTS, SIGNATURES)
        self.sources = SubscriptionSources(
            shards=ManyShards(self, PARTS),
            listing=self.keys,
            change_log=LateJournal(self.journal, random),
            index=self.index,
            ruleset=ruleset,
            generation="g",
            shards_with_changes=PARTS.frontiers,
            settle=self.settle,
        )

    def publish(self, statement: Statement) -> None:
        """Append a statement to the partition of its id."""
        run_sync(self.logs[0].append(PARTS.of_id(statement.id), [Message(value=encode_statement(statement))]))

    def move(self) -> None:
        """Let some shard apply a record or two."""
        run_sync(self.random.choice(self.shards).run_once(self.random.randint(1, 2)))

    def rest(self) -> None:
        """Bring every shard to the end of its log."""
        for shard in self.shards:
            while run_sync(shard.run_once(1000)):
                pass

    async def settle(self) -> None:
        """Index what is applied by now."""
        while await self.indexer.catch_up():
            pass

    async def peek(self, wanted: Mapping[ShardId, Sequence[bytes]]) -> Mapping[ShardId, tuple[int, dict[bytes, bytes]]]:
        """Implements `ports.SnapshotReader`: each shard is read at a moment of its own."""
        values: dict[ShardId, tuple[int, dict[bytes, bytes]]] = {}
        for shard, keys in wanted.items():
            if self.random.random() < 0.3:
                self.move()
            values |= await self.views.peek({shard: keys})
        return values

    def subscribe(self, selection: Selection, cursor: Sequence[int], *, with_snapshot: bool) -> SubscriptionReader:
        """Return a place in the stream of changes."""
        return SubscriptionReader(self.sources, selection, cursor=cursor, with_snapshot=with_snapshot)

    def pull(self, reader: SubscriptionReader) -> tuple[list[Notice], bool]:
        """Return the next notices, and whether these are all. Nothing here waits."""
        return asyncio.run(_pull(reader))


async def _pull(reader: SubscriptionReader) -> tuple[list[Notice], bool]:
    return await reader.step(), await reader.has_caught_up()


@contextmanager
def moving(folder: Path, ruleset: Ruleset, random: Random) -> Iterator[Moving]:
    hops = Moving(folder, ruleset, random)
    try:
        yield hops
    finally:
        for log in hops.logs:
            log.close()
        for file in hops.files:
            file.close()
        hops.index.close()
        hops.keys.close()


class Subscription:
    """A follower of moving shards, and its place in the stream of changes."""

    def __init__(self, hops: Moving, selection: Selection) -> None:
        self.hops = hops
        self.selection = selection
        self.follower = Follower()
        self.reader = hops.subscribe(selection, (0,) * PARTS.frontiers, with_snapshot=True)

    def pull(self) -> bool:
        """Receive the next events, and return whether these were the last ones."""
        notices, has_caught_up = self.hops.pull(self.reader)
        for notice in notices:
            self.follower.receive(notice)
        return has_caught_up

    def catch_up(self) -> None:
        """Receive everything from shards at rest, then continue from the cursor with a new reader."""
        ends = tuple(run_sync(self.hops.journal.last(shard)) for shard in range(PARTS.frontiers))
        has_caught_up = False
        while not has_caught_up or self.reader.cursor != ends:
            has_caught_up = self.pull()
        self.reader = self.hops.subscribe(self.selection, self.reader.cursor, with_snapshot=False)


def follow(folder: Path, seed: int, steps: int, views: Sequence[View] = ("document", "scope")) -> int:
    """Publish a stream to moving shards with subscribers that come; return how often one was compared."""
    random = Random(seed)
    ruleset = random_rules(random)
    stream = random_stream(random, steps)
    compared = 0
    with moving(folder, ruleset, random) as hops:
        subscriptions: list[Subscription] = []
        for count, statement in enumerate(stream, 1):
            hops.publish(statement)
            for _ in range(random.randrange(4)):
                hops.move()
            if random.random() < 0.1 or not subscriptions:
                subscriptions.append(Subscription(hops, random_selection(random, views)))
            random.choice(subscriptions).pull()
            if count % 20 and count < len(stream):
                continue
            hops.rest()
            corpus = definitions.current_documents(stream[:count])
            for subscription in subscriptions:
                subscription.catch_up()
                selection = subscription.selection
                subscription.follower.check(selection, corpus, ruleset, (seed, count, selection))
                compared += 1
    return compared


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    take_small_steps(monkeypatch)


@pytest.mark.parametrize("seed", range(6))
def test_a_follower_of_moving_shards_has_the_state_of_now_when_they_rest(seed: int, tmp_path: Path) -> None:
    assert follow(tmp_path, seed, 80) > 5


@pytest.mark.parametrize("seed", range(3))
def test_the_same_holds_when_scopes_have_pages(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_pages(monkeypatch)
    assert follow(tmp_path, 1000 + seed, 80) > 5


@pytest.mark.parametrize("seed", range(3))
def test_documents_of_a_run_are_events_of_their_own(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_pages(monkeypatch)
    monkeypatch.setattr(frontier, "LISTED_MAX", 1)
    assert follow(tmp_path, 2000 + seed, 80, ("document",)) > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_it_holds_over_many_streams(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_pages(monkeypatch)
    assert follow(tmp_path, 5000 + seed, 100) > 5
