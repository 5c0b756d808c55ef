"""Subscriptions over a real socket: a snapshot, what follows it, and where to go on."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from stream_car.codec import format_time
from stream_car.core.rule_pack import Key, RulePack
from stream_car.core.rules import Ruleset
from stream_car.local.projection import ITEMS_AT_ONCE
from stream_car.settings import ServerSettings
from stream_car.subscriptions.events import Filter, Notice
from tests.integration.test_service import CLAIM, DENIAL, code_of, published, sent
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.engines import DAY, NOW, StoppedClock, document, engine, rule
from tests.support.http_service import Heard, serving

pytestmark = on_both

Asked = dict[str, str | list[str]]
SPELT = Ruleset(
    [
        RulePack(
            name="talk",
            types=("claim", "denial"),
            rules=(rule("denial-voids-claim", "denial", "claim", "topic"),),
            keys={"topic": Key(fold="lower"), "theme": Key(rename="topic")},
        )
    ]
)


class Change(msgspec.Struct):
    """What the tests look at of a document change."""

    id: str
    active: bool = True
    selected: bool = True
    title: str = ""
    why: str = ""
    rule: str = ""
    oseq: int = 0
    cause: dict[str, object] = {}


def position_of(told: dict[str, str]) -> tuple[str, ...]:
    """By shard and number, as changes are listed."""
    _, shard, number = told["position"].split("/")
    return shard, number.rjust(9)


def read(one: Heard) -> Change:
    return msgspec.json.decode(one.data, type=Change)


async def until(events: AsyncIterator[Heard], name: str) -> list[Heard]:
    """The events up to the first of this kind, itself included."""
    found: list[Heard] = []
    async with asyncio.timeout(20):
        async for one in events:
            found.append(one)
            if one.event == name:
                return found
    raise AssertionError(f"the stream ended before a {name}: {found}")


async def some(events: AsyncIterator[Heard], count: int) -> list[Heard]:
    """So many events."""
    async with asyncio.timeout(20):
        return [await anext(events) for _ in range(count)]


@in_the_gate
async def test_a_snapshot_of_what_is_in_force_is_followed_by_what_becomes_of_it() -> None:
    async with serving() as running:
        await published(running, CLAIM, sent("other", topic="coffee"))
        async with running.subscribed() as events:
            snapshot = await until(events, "snapshot-end")
            await published(running, DENIAL)
            entered, left = sorted(await some(events, 2), key=lambda one: read(one).id, reverse=True)

    assert [one.event for one in snapshot] == ["snapshot-begin", "snapshot", "snapshot", "snapshot-end"]
    assert {read(one).id for one in snapshot[1:3]} == {"claim-1", "other"}
    assert (read(entered).id, read(entered).active) == ("denial-1", True)
    gone = read(left)
    assert (gone.id, gone.active, gone.why, gone.rule) == ("claim-1", False, "voided", "denial-voids-claim")
    assert gone.title == "claim-1"
    assert (gone.cause["id"], gone.cause["title"]) == ("denial-1", "denial-1")


@in_the_gate
async def test_who_comes_back_with_a_cursor_hears_what_was_missed_and_nothing_else() -> None:
    async with serving() as running:
        async with running.subscribed(view="scope") as events:
            cursor = (await until(events, "snapshot-end"))[-1].id
        await published(running, CLAIM)
        async with running.subscribed(view="scope", last=cursor) as events:
            [first] = await some(events, 1)
        await published(running, DENIAL)
        async with running.subscribed(view="scope", last=first.id) as events:
            [second] = await some(events, 1)
        async with running.subscribed(view="scope", after=cursor) as events:
            again = await some(events, 2)

    assert again == [first, second]
    assert [one.event for one in again] == ["change", "change"]
    assert b'"claim-1"' in first.data
    assert b'"denial-1"' in second.data


@in_the_gate
async def test_changes_are_those_of_the_log_of_changes() -> None:
    async with serving() as running:
        await published(running, CLAIM, DENIAL, sent("doubt", "doubt", 2, topic="tea"))
        told = (await running.get("/v1/changes")).json()
        async with running.subscribed(view="scope", after=running.cursor(0)) as events:
            heard = await some(events, len(told))

    assert sorted((msgspec.json.decode(one.data) for one in heard), key=position_of) == told


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ({}, {"tea-1", "tea-2", "cup"}),
        ({"id": "tea-1"}, {"tea-1"}),
        ({"id": ["tea-1", "cup"]}, {"tea-1", "cup"}),
        ({"type": "fact"}, {"cup"}),
        ({"domain": "talk"}, {"tea-1", "tea-2", "cup"}),
        ({"domain": "other"}, set()),
        ({"scope": "topic=tea"}, {"tea-1", "tea-2"}),
        ({"scope": ["topic=tea", "place=home"]}, {"tea-2"}),
        ({"scope": "place=home"}, {"tea-2"}),
        ({"scope": "topic=tea", "type": "denial"}, set()),
    ],
)
async def test_one_can_ask_for_some_documents_only(asked: Asked, wanted: set[str]) -> None:
    first = [
        document("tea-1", topic="tea"),
        document("tea-2", topic="tea", place="home"),
        document("cup", "fact", subject="cup"),
    ]
    async with serving() as running:
        cursor = running.cursor(0)
        await running.publish(first)
        async with running.subscribed(asked) as events:
            snapshot = (await until(events, "snapshot-end"))[1:-1]
        await running.publish([document("end", "doubt", topic="the end")])
        async with running.subscribed({**asked, "after": cursor}) as events:
            tail: set[str] = set()
            while not tail >= wanted:
                tail.add(read((await some(events, 1))[0]).id)

    assert {read(one).id for one in snapshot} == wanted
    assert tail - {"end"} == wanted


@in_the_gate
@pytest.mark.parametrize("asked", ["theme=Tea", "topic=TEA", "topic=tea"])
async def test_one_asks_for_scopes_as_publishers_spell_them(asked: str) -> None:
    async with serving(ruleset=SPELT) as running:
        await running.publish([document("tea-1", theme="Tea"), document("cup", theme="Cup")])
        async with running.subscribed(scope=asked) as events:
            snapshot = (await until(events, "snapshot-end"))[1:-1]
            await running.publish([document("no-cup", "denial", 9, theme="CUP"), document("tea-2", theme="TEA")])
            [entered] = await some(events, 1)
        async with running.subscribed(scope=asked, view="scope") as events:
            scopes = (await until(events, "snapshot-end"))[1:-1]

    assert [read(one).id for one in snapshot] == ["tea-1"]
    assert (read(entered).id, read(entered).active) == ("tea-2", True)
    assert [msgspec.json.decode(one.data)["scope"] for one in scopes] == ["topic=tea"]


@in_the_gate
async def test_a_document_that_leaves_what_was_asked_for_is_told_so() -> None:
    async with serving() as running:
        await running.publish([document("claim", topic="tea")])
        async with running.subscribed(scope="topic=tea") as events:
            await until(events, "snapshot-end")
            await running.publish([document("claim", topic="coffee", revision=2)])
            [moved] = await some(events, 1)

    assert (read(moved).id, read(moved).active, read(moved).selected, read(moved).why) == (
        "claim",
        True,
        False,
        "moved",
    )


@in_the_gate
async def test_links_and_names_of_records_reach_the_documents_that_they_void() -> None:
    async with serving() as running:
        await running.publish([document("d@1", record="d"), document("free")])
        async with running.subscribed() as events:
            await until(events, "snapshot-end")
            await running.publish([document("end", "note", supersedes=("d", "free"))])
            told = await some(events, 2)

    assert {(read(one).id, read(one).active, read(one).rule) for one in told} == {
        ("d@1", False, "link"),
        ("free", False, "link"),
    }


@in_the_gate
async def test_every_edition_of_a_record_that_is_asked_for_is_told() -> None:
    editions = [document(f"r@{n:04d}", record="r") for n in range(1200)]  # of one moment: all are in force
    async with serving() as running:
        await running.publish(editions)
        async with running.subscribed(id="r") as events:
            told = await until(events, "snapshot-end")

    assert {read(one).id for one in told if one.event == "snapshot"} == {one.id for one in editions}


@in_the_gate
async def test_a_retracted_document_is_told_to_whoever_had_it() -> None:
    async with serving() as running:
        await running.publish([document("claim", topic="tea")])
        async with running.subscribed(type="claim", scope="topic=tea") as events:
            await until(events, "snapshot-end")
            await running.retract("claim")
            [gone] = await some(events, 1)

    assert (read(gone).id, read(gone).active, read(gone).why) == ("claim", False, "retracted")


@in_the_gate
async def test_a_run_of_very_many_is_told_document_by_document() -> None:
    claims = [document(f"c{n:04d}", at=n % 7, topic="tea") for n in range(1500)]
    async with serving() as running:
        await running.publish(claims)
        async with running.subscribed(snapshot="false") as events:
            await running.publish([document("no", "denial", 9, topic="tea")])
            told = await some(events, 1501)
            await running.retract("no")
            back = await some(events, 1501)

    assert {(read(one).id, read(one).active) for one in told} == {("no", True), *((c.id, False) for c in claims)}
    assert {(read(one).id, read(one).active) for one in back} == {("no", False), *((c.id, True) for c in claims)}
    assert [bool(one.id) for one in told] == [False] * 1500 + [True]


@pytest.mark.parametrize("garbage", ["x", ":", "a:", ":5", "a:-1", "a:1e3", "a:١", "a:" + "9" * 30])
async def test_a_cursor_that_is_none_is_refused(garbage: str) -> None:
    async with serving() as running:
        answer = await running.client.get("/v1/subscribe", params={"after": garbage})

    assert (answer.status_code, code_of(answer)) == (400, "cursor")


@in_the_gate
async def test_a_cursor_from_the_future_is_refused_and_the_way_on_is_said() -> None:
    async with serving() as running:
        after = running.cursor(99)
        answer = await running.client.get("/v1/subscribe", headers={"Last-Event-ID": after})

    assert (answer.status_code, code_of(answer)) == (409, "cursor_ahead")
    assert "leave the cursor out" in answer.json()["detail"]


@in_the_gate
async def test_a_cursor_of_another_generation_is_answered_with_a_snapshot_of_now() -> None:
    async with serving() as running:
        await published(running, CLAIM)
        async with running.subscribed(after="other-1:7") as events:
            told = await until(events, "snapshot-end")

    assert [one.event for one in told] == ["reset", "snapshot-begin", "snapshot", "snapshot-end"]
    assert msgspec.json.decode(told[0].data) == {
        "reason": "cursor_generation",
        "generation": running.car.generation,
    }


@only_embedded("how much a topic keeps is its retention")
async def test_a_cursor_older_than_what_is_kept_is_answered_with_a_snapshot_of_now() -> None:
    async with serving() as running:
        await running.publish([document(f"d{n}", topic=str(n)) for n in range(30)])
        assert not running.engine.forget_changes(10, 100)
        async with running.subscribed(after=f"{running.engine.generation}:19") as events:
            told = await until(events, "snapshot-end")
        async with running.subscribed(after=f"{running.engine.generation}:20", view="scope") as events:
            kept = await some(events, 10)
        status = (await running.get("/v1/status")).json()

    assert msgspec.json.decode(told[0].data, type=dict[str, str])["reason"] == "cursor_expired"
    assert len(told) == 33
    assert kept[0].id.endswith(":21")
    assert status["changes_from"] == 21


@in_the_gate
async def test_at_rest_there_is_a_heartbeat_that_moves_the_cursor() -> None:
    async with (
        serving(settings=ServerSettings(port=0, heartbeat_s=0.05)) as running,
        running.subscribed(id="nobody") as events,
    ):
        await until(events, "snapshot-end")
        await published(running, CLAIM)
        beats = await some(events, 1)
        while not beats[-1].id:  # what was published may be on its way
            beats += await some(events, 1)
        beats += await some(events, 2)
        cursor = (await running.get("/v1/status")).json()["cursor"]

    assert {one.event for one in beats} == {"heartbeat"}
    assert [one.id for one in beats if one.id] == [cursor]


async def test_subscriptions_beyond_the_limit_are_refused() -> None:
    async with serving(settings=ServerSettings(port=0, subscriptions_max=1)) as running, running.subscribed() as events:
        await until(events, "snapshot-end")
        busy = await running.client.get("/v1/subscribe")
        told = (await running.client.get("/metrics")).text

    assert (busy.status_code, code_of(busy)) == (429, "busy")
    assert "stream_car_subscriptions 1\n" in told


@in_the_gate
async def test_a_subscriber_that_reads_nothing_slows_nobody() -> None:
    async with serving() as running, running.client.stream("GET", "/v1/subscribe", params={"view": "scope"}):
        for n in range(20):
            batch = [sent(f"d{n}-{m}", topic=str(m)) for m in range(200)]
            await asyncio.wait_for(published(running, *batch), 10)
        status = (await running.get("/v1/status")).json()

    assert status["documents"] == 4000
    assert status["subscriptions"] == 1


@only_embedded("nobody can stop the clock of Kafka")
async def test_a_document_released_by_time_is_told() -> None:
    clock = StoppedClock()
    async with serving(clock=clock) as running:
        await running.post("/v1/documents", sent("later", topic="tea") | {"time": format_time(NOW + DAY)})
        async with running.subscribed() as events:
            begin = await until(events, "snapshot-end")
            clock.time = NOW + DAY
            [told] = await some(events, 1)

    assert len(begin) == 2
    assert (read(told).id, read(told).active, read(told).cause["kind"]) == ("later", True, "released")


@in_the_gate
async def test_when_the_server_ends_its_subscriptions_end() -> None:
    async with serving() as running:
        stream = running.subscribed()
        events = await stream.__aenter__()
        await until(events, "snapshot-end")
        running.stop.set()
        async with asyncio.timeout(5):
            rest = [one async for one in events]

    assert rest == []


@only_embedded("it asks the engine itself")
def test_within_a_snapshot_nothing_says_that_one_may_go_on_behind_it() -> None:
    with engine() as car:
        car.publish([document(f"c{n:03}", topic=f"t{n}") for n in range(300)])
        following = car.subscription(Filter(), cursor=(0,), with_snapshot=True)
        told: list[Notice] = []
        while not told or told[-1].event != "snapshot-end":
            some, _ = car.pull(following)
            told += some
            if len(told) == 1 + ITEMS_AT_ONCE:
                car.publish([document("d", "denial", 3, topic="t0")])

    assert "change" in {one.event for one in told}
    assert {one.event for one in told if one.cursor is not None} == {"snapshot-end"}
