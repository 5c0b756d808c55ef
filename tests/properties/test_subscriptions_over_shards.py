"""Snapshot and tail over the shards of two hops, which move while they are read: the same as over one engine."""

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
from stream_car.cluster.indexer import Feeder
from stream_car.cluster.shard_runner import Machine
from stream_car.core import definitions, frontier
from stream_car.core.documents import Statement
from stream_car.core.rules import Ruleset
from stream_car.local.run_sync import at_once
from stream_car.ports import Emission, Message, ShardId
from stream_car.processing.outbox import IntakeOutbox
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import FrontierFold, IntakeFold
from stream_car.queries.shards import ManyShards, StoreViews
from stream_car.subscriptions.events import Filter, Notice, View
from stream_car.subscriptions.subscription import Subscription, SubscriptionSources
from tests.properties.test_subscriptions_equal_the_state import (
    Follower,
    check,
    random_selection,
    sent,
    small_pages,
    take_small_steps,
)
from tests.support.engines import StoppedClock
from tests.support.streams import random_rules, random_stream

PARTS = Partitions(intakes=2, frontiers=3)


class LateJournal:
    """Implements `ports.RetainedChangeLog`; what a shard has told is heard of a little later."""

    def __init__(self, journal: SqliteJournal, random: Random) -> None:
        self.journal = journal
        self.random = random
        self.heard = [0] * PARTS.frontiers

    async def last(self, shard: int) -> int:
        """The last change heard of."""
        if self.random.random() < 0.5:
            told = await self.journal.last(shard)
            self.heard[shard] = self.random.randint(self.heard[shard], told)
        return self.heard[shard]

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        """Changes that were heard of."""
        found = await self.journal.read(shard, stream, after=after, limit=limit, key=key)
        return [event for event in found if event.oseq <= self.heard[shard]]

    async def deleted_up_to(self, shard: int) -> int:
        """Nothing."""
        return 0

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Shards do."""
        raise NotImplementedError

    async def delete_up_to(self, shard: int, stream: str, up_to: int, limit: int) -> int:
        """Nobody does."""
        raise NotImplementedError


class Moving:
    """Both hops in files, with an index; shards go on by a record or two whenever somebody reads."""

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
        outlet = IntakeOutbox(PARTS, placements=placements, documents=documents, rejected=rejected)
        self.journal = SqliteJournal(self.files[1])
        intake = [IntakeFold(ruleset, PARTS, shard=q) for q in range(PARTS.intakes)]
        frontiers = [FrontierFold(ruleset, PARTS, shard=p) for p in range(PARTS.frontiers)]
        self.shards: list[Machine] = [
            *(Shard(shard=f.shard, log=documents, store=stores[0], event_sink=outlet, fold=f) for f in intake),
            *(
                Shard(shard=f.shard, log=placements, store=stores[1], event_sink=self.journal, fold=f)
                for f in frontiers
            ),
        ]
        self.views = StoreViews(intake=stores[0], frontier=stores[1])
        self.index = TantivyIndex(folder / "index")
        self.keys = SqliteKeys(folder / "keys.sqlite", "test")
        self.feeder = Feeder(self.index, self.keys, self.views, documents, ruleset, PARTS)
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

    def publish(self, said: Statement) -> None:
        """Append a statement to the partition of its id."""
        at_once(self.logs[0].append(PARTS.of_id(said.id), [Message(value=sent(said))]))

    def move(self) -> None:
        """Let some shard apply a record or two."""
        at_once(self.random.choice(self.shards).run_once(self.random.randint(1, 2)))

    def rest(self) -> None:
        """Bring every shard to the end of its log."""
        for shard in self.shards:
            while at_once(shard.run_once(1000)):
                pass

    async def settle(self) -> None:
        """Feed the index what is applied by now."""
        while await self.feeder.catch_up():
            pass

    async def peek(self, wanted: Mapping[ShardId, Sequence[bytes]]) -> Mapping[ShardId, tuple[int, dict[bytes, bytes]]]:
        """Implements `ports.SnapshotReader`: each shard is read at a moment of its own."""
        found: dict[ShardId, tuple[int, dict[bytes, bytes]]] = {}
        for place, keys in wanted.items():
            if self.random.random() < 0.3:
                self.move()
            found |= await self.views.peek({place: keys})
        return found

    def subscribe(self, chosen: Filter, cursor: Sequence[int], *, with_snapshot: bool) -> Subscription:
        """A place in the stream."""
        return Subscription(self.sources, chosen, cursor=cursor, with_snapshot=with_snapshot)

    def pull(self, place: Subscription) -> tuple[list[Notice], bool]:
        """The next notices, and whether that is all; nothing here ever waits."""
        return asyncio.run(_pulled(place))


async def _pulled(place: Subscription) -> tuple[list[Notice], bool]:
    return await place.step(), await place.has_caught_up()


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


def follow(folder: Path, seed: int, steps: int, views: Sequence[View] = ("document", "scope")) -> int:
    """One stream over moving shards, and followers who come and go; how often one was compared."""
    random = Random(seed)
    ruleset = random_rules(random)
    stream = random_stream(random, steps)
    compared = 0
    with moving(folder, ruleset, random) as hops:
        followers: list[tuple[Follower, Filter, Subscription]] = []
        for at, said in enumerate(stream, 1):
            hops.publish(said)
            for _ in range(random.randrange(4)):
                hops.move()
            if random.random() < 0.1 or not followers:
                chosen = random_selection(random, views)
                nowhere = (0,) * PARTS.frontiers
                followers.append((Follower(), chosen, hops.subscribe(chosen, nowhere, with_snapshot=True)))
            number = random.randrange(len(followers))
            follower, chosen, place = followers[number]
            notices, _ = hops.pull(place)
            for notice in notices:
                follower.hear(notice)
            if at % 20 and at < len(stream):
                continue
            hops.rest()
            for number, (follower, chosen, place) in enumerate(followers):
                is_done = False
                ends = tuple(at_once(hops.journal.last(shard)) for shard in range(PARTS.frontiers))
                while not is_done or place.cursor != ends:
                    notices, is_done = hops.pull(place)
                    for notice in notices:
                        follower.hear(notice)
                compared += 1
                check(follower, chosen, definitions.current_documents(stream[:at]), ruleset, (seed, at, chosen))
                followers[number] = (follower, chosen, hops.subscribe(chosen, place.cursor, with_snapshot=False))
    return compared


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    take_small_steps(monkeypatch)


@pytest.mark.parametrize("seed", range(6))
def test_a_follower_of_moving_shards_has_the_state_of_now_when_they_rest(seed: int, tmp_path: Path) -> None:
    assert follow(tmp_path, seed, 80) > 5


@pytest.mark.parametrize("seed", range(3))
def test_the_same_holds_where_scopes_have_pages(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)
    assert follow(tmp_path, 1000 + seed, 80) > 5


@pytest.mark.parametrize("seed", range(3))
def test_documents_of_a_run_are_told_one_by_one(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)
    monkeypatch.setattr(frontier, "LISTED_MAX", 1)
    assert follow(tmp_path, 2000 + seed, 80, ("document",)) > 5


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_it_holds_over_many_streams(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_pages(monkeypatch)
    assert follow(tmp_path, 5000 + seed, 100) > 5
