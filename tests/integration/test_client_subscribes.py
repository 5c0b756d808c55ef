"""A program that receives changes: over broken connections, restarts and new rules it misses nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import stream_car
from stream_car import DocumentChange, Event, Reset, ScopeChange, SnapshotBegin, SnapshotDocument, SnapshotEnd
from stream_car.settings import ServerSettings
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.engines import OTHER_RULESET, document
from tests.support.http_service import serving
from tests.support.relay import relaying

pytestmark = on_both
CLAIM = document("c1", topic="tea")
DENIAL = document("d1", "denial", 3, topic="tea")


def take_sync(events: Iterator[Event], count: int) -> list[Event]:
    """Return the next events of a synchronous client."""
    return [next(events) for _ in range(count)]


async def take(events: AsyncIterator[Event], count: int) -> list[Event]:
    """Return the next events."""
    async with asyncio.timeout(20):
        return [await anext(events) for _ in range(count)]


def statuses(events: Sequence[Event]) -> list[tuple[str, bool]]:
    """Return the ids of changed documents, and whether each is in force."""
    return [(event.id, event.in_force) for event in events if isinstance(event, DocumentChange)]


async def test_a_snapshot_is_followed_by_changes() -> None:
    async with serving() as running, stream_car.connect_async(running.url) as car:
        await car.publish([CLAIM])
        await running.rest()
        async with car.subscribe() as events:
            begin, item, end = await take(events, 3)
            await car.publish([DENIAL])
            changes = await take(events, 2)

    assert (type(begin), type(end)) == (SnapshotBegin, SnapshotEnd)
    assert isinstance(item, SnapshotDocument)
    assert item.scopes == ("topic=tea",)
    assert sorted(statuses(changes)) == [("c1", False), ("d1", True)]


@in_the_gate
async def test_the_synchronous_client_receives_the_same() -> None:
    async with serving() as running:
        with stream_car.connect(running.url) as car:
            await asyncio.to_thread(car.publish, [CLAIM])
            await running.rest()
            with car.subscribe(view="scope", scope={"topic": "tea"}) as events:
                begin, _, end = await asyncio.to_thread(take_sync, events, 3)
                await asyncio.to_thread(car.publish, [DENIAL])
                [event] = await asyncio.to_thread(take_sync, events, 1)

    assert (type(begin), type(end)) == (SnapshotBegin, SnapshotEnd)
    assert isinstance(event, ScopeChange)
    assert [member.id for member in event.change.left] == ["c1"]


@in_the_gate
async def test_a_cursor_in_a_file_continues_after_the_last_event_dealt_with(tmp_path: Path) -> None:
    path = tmp_path / "cursor"
    async with serving() as running, stream_car.connect_async(running.url) as car:
        async with car.subscribe(cursor_file=path, snapshot=False) as events:
            await car.publish([CLAIM, document("c2", topic="tea"), document("c3", topic="tea")])  # of one shard
            first, second = await take(events, 2)
        assert path.read_text().strip() == first.cursor
        async with car.subscribe(cursor_file=path) as events:
            again, third = await take(events, 2)
            events.keep()
        assert path.read_text().strip() == third.cursor == (await car.status()).cursor

    assert again == second
    assert statuses([first, second, third]) == [("c1", True), ("c2", True), ("c3", True)]


async def test_without_a_snapshot_nothing_is_missed_before_the_stream_is_open() -> None:
    async with (
        serving() as running,
        stream_car.connect_async(running.url) as car,
        car.subscribe(snapshot=False) as events,
    ):
        await car.publish([CLAIM])
        [change] = await take(events, 1)

    assert statuses([change]) == [("c1", True)]


@in_the_gate
async def test_broken_connections_are_made_again_without_a_gap_or_a_second_snapshot() -> None:
    async with serving() as running, relaying(running.url) as relay, stream_car.connect_async(relay.url) as car:
        async with car.subscribe() as events:
            assert [type(event) for event in await take(events, 2)] == [SnapshotBegin, SnapshotEnd]
            for n in range(5):
                relay.cut()
                await running.publish([document(f"n{n}", topic=f"t{n}")])
                assert statuses(await take(events, 1)) == [(f"n{n}", True)]
        assert relay.connections > 5


@only_embedded("each test has topics of its own")
async def test_a_subscription_continues_when_its_service_comes_back(tmp_path: Path) -> None:
    async with serving(tmp_path) as running:
        port = int(running.url.rpartition(":")[2])
        car = stream_car.connect_async(running.url)
        events = await car.subscribe(snapshot=False).__aenter__()
        await car.publish([CLAIM])
        received = await take(events, 1)
    async with serving(tmp_path, settings=ServerSettings(port=port)) as running:
        await car.publish([DENIAL])
        received += await take(events, 2)
        await car.close()

    assert sorted(statuses(received)) == [("c1", False), ("c1", True), ("d1", True)]


@only_embedded("workers do not change their rules while they run")
async def test_other_rules_are_reported_and_begin_with_a_snapshot() -> None:
    async with serving() as running, stream_car.connect_async(running.url) as car:
        before = (await car.status()).cursor
        await car.publish([CLAIM])
        with running.engine.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            while rebuild.step():
                pass
            rebuild.switch()
        async with car.subscribe(after=before) as events:
            reset, *snapshot = await take(events, 4)
            now = (await car.status()).cursor

    assert isinstance(reset, Reset)
    assert reset.reason == "cursor_generation"
    assert [type(event) for event in snapshot] == [SnapshotBegin, SnapshotDocument, SnapshotEnd]
    assert events.cursor == before != now


async def test_filters_select_what_is_received() -> None:
    async with (
        serving() as running,
        stream_car.connect_async(running.url) as car,
        car.subscribe(ids=["c1"], types=["claim"], rules=["talk"], snapshot=False) as events,
    ):
        await car.publish([document("c2", topic="tea"), CLAIM])
        received = await take(events, 1)
        await car.publish([DENIAL])
        received += await take(events, 1)

    assert statuses(received) == [("c1", True), ("c1", False)]
