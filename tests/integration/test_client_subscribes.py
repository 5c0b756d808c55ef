"""A program that follows changes: over broken connections, restarts and new rules it misses nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import stream_car
from stream_car.queries.answers import Told
from stream_car.settings import ServerSettings
from stream_car.subscriptions.events import ActiveDocument, DocumentChange, Event, Reset
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.engines import OTHER_RULESET, document
from tests.support.http_service import serving
from tests.support.relay import relaying

pytestmark = on_both
CLAIM = document("c1", topic="tea")
DENIAL = document("d1", "denial", 3, topic="tea")


def first(events: Iterator[Event], count: int) -> list[Event]:
    return [next(events) for _ in range(count)]


async def some(events: AsyncIterator[Event], count: int) -> list[Event]:
    async with asyncio.timeout(20):
        return [await anext(events) for _ in range(count)]


def told_of(events: list[Event]) -> list[tuple[str, bool]]:
    return [(one.data.id, one.data.active) for one in events if isinstance(one.data, DocumentChange)]


async def test_a_snapshot_then_what_becomes_of_it() -> None:
    async with serving() as running, stream_car.connect_async(running.url) as car:
        await car.publish([CLAIM])
        await running.rest()
        async with car.subscribe() as events:
            begin, item, end = await some(events, 3)
            await car.publish([DENIAL])
            changes = await some(events, 2)

    assert [one.event for one in (begin, item, end)] == ["snapshot-begin", "snapshot", "snapshot-end"]
    assert isinstance(item.data, ActiveDocument) and item.data.scopes == ("topic=tea",)
    assert sorted(told_of(changes)) == [("c1", False), ("d1", True)]


@in_the_gate
async def test_the_synchronous_client_hears_the_same() -> None:
    async with serving() as running:
        with stream_car.connect(running.url) as car:
            await asyncio.to_thread(car.publish, [CLAIM])
            await running.rest()
            with car.subscribe(view="scope", parts={"topic": "tea"}) as events:
                snapshot = await asyncio.to_thread(first, events, 3)
                await asyncio.to_thread(car.publish, [DENIAL])
                [change] = await asyncio.to_thread(first, events, 1)

    assert [one.event for one in snapshot] == ["snapshot-begin", "snapshot", "snapshot-end"]
    assert isinstance(change.data, Told)
    assert [member.id for member in change.data.change.left] == ["c1"]


@in_the_gate
async def test_a_cursor_in_a_file_goes_on_where_the_last_one_dealt_with_was(tmp_path: Path) -> None:
    path = tmp_path / "cursor"
    async with serving() as running, stream_car.connect_async(running.url) as car:
        async with car.subscribe(cursor_file=path, snapshot=False) as events:
            await car.publish([CLAIM, document("c2", topic="milk"), document("c3", topic="beer")])
            one, two = await some(events, 2)
        assert path.read_text().strip() == one.cursor
        async with car.subscribe(cursor_file=path) as events:
            again, three = await some(events, 2)
            events.keep()
        assert path.read_text().strip() == three.cursor == (await car.status()).cursor

    assert again == two
    assert sorted(told_of([one, two, three])) == [("c1", True), ("c2", True), ("c3", True)]


async def test_without_a_snapshot_nothing_is_missed_between_asking_and_listening() -> None:
    async with (
        serving() as running,
        stream_car.connect_async(running.url) as car,
        car.subscribe(snapshot=False) as events,
    ):
        await car.publish([CLAIM])
        [change] = await some(events, 1)

    assert told_of([change]) == [("c1", True)]


@in_the_gate
async def test_broken_connections_are_made_again_without_a_gap_or_a_second_snapshot() -> None:
    async with serving() as running, relaying(running.url) as relay, stream_car.connect_async(relay.url) as car:
        async with car.subscribe() as events:
            assert [one.event for one in await some(events, 2)] == ["snapshot-begin", "snapshot-end"]
            for n in range(5):
                relay.cut()
                await running.publish([document(f"n{n}", topic=f"t{n}")])
                assert told_of(await some(events, 1)) == [(f"n{n}", True)]
        assert relay.connections > 5


@only_embedded("each test has topics of its own")
async def test_a_service_that_comes_back_is_followed_further(tmp_path: Path) -> None:
    async with serving(tmp_path) as running:
        port = int(running.url.rpartition(":")[2])
        car = stream_car.connect_async(running.url)
        events = await car.subscribe(snapshot=False).__aenter__()
        await car.publish([CLAIM])
        heard = await some(events, 1)
    async with serving(tmp_path, settings=ServerSettings(port=port)) as running:
        await car.publish([DENIAL])
        heard += await some(events, 2)
        await car.close()

    assert sorted(told_of(heard)) == [("c1", False), ("c1", True), ("d1", True)]


@only_embedded("workers do not change their rules while they run")
async def test_other_rules_are_told_and_begin_with_a_snapshot() -> None:
    async with serving() as running, stream_car.connect_async(running.url) as car:
        before = (await car.status()).cursor
        await car.publish([CLAIM])
        with running.engine.rebuild(ruleset=OTHER_RULESET) as rebuild:
            while rebuild.step():
                pass
            rebuild.switch()
        async with car.subscribe(after=before) as events:
            reset, *snapshot = await some(events, 4)
            now = (await car.status()).cursor

    assert isinstance(reset.data, Reset) and reset.data.reason == "cursor_generation"
    assert [one.event for one in snapshot] == ["snapshot-begin", "snapshot", "snapshot-end"]
    assert events.cursor == before != now


async def test_filters_say_what_to_hear_of() -> None:
    async with (
        serving() as running,
        stream_car.connect_async(running.url) as car,
        car.subscribe(ids=["c1"], types=["claim"], domains=["talk"], snapshot=False) as events,
    ):
        await car.publish([document("c2", topic="tea"), CLAIM])
        heard = await some(events, 1)
        await car.publish([DENIAL])
        heard += await some(events, 1)

    assert told_of(heard) == [("c1", True), ("c1", False)]
