"""Subscriptions over a real socket: a snapshot, what follows it, and where to continue."""

import asyncio
from datetime import UTC, datetime

import msgspec
import pytest

from stream_car import Change, DocumentChange, Reset, ScopeChange, SnapshotDocument, SnapshotEnd, SnapshotScope
from stream_car.codec import format_time
from stream_car.core.rule_pack import Key, RulePack
from stream_car.core.rules import Ruleset
from stream_car.local.projection import SNAPSHOT_ITEMS
from stream_car.queries.changes import Position
from stream_car.settings import ServerSettings
from stream_car.subscriptions.cursor import Cursor
from stream_car.subscriptions.events import Notice, Selection
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.engines import DAY, NOW, StoppedClock, document, engine, rule
from tests.support.http_service import CLAIM, DENIAL, ReceivedEvent, as_fields, code_of, serving, take, take_until

pytestmark = on_both

Parameters = dict[str, str | list[str]]
SPELLED = Ruleset(
    [
        RulePack(
            name="talk",
            types=("claim", "denial"),
            rules=(rule("denial-voids-claim", "denial", "claim", "topic"),),
            keys={"topic": Key(fold="lower"), "theme": Key(rename="topic")},
        )
    ]
)


def shard_and_number(change: Change) -> tuple[int, int]:
    """Return what changes are listed by."""
    position = Position.parse(change.position)
    return position.shard, position.number


def change_in(event: ReceivedEvent) -> DocumentChange:
    return msgspec.json.decode(event.data, type=DocumentChange)


def document_in(event: ReceivedEvent) -> SnapshotDocument:
    return msgspec.json.decode(event.data, type=SnapshotDocument)


def statuses(events: list[ReceivedEvent]) -> set[tuple[str, bool]]:
    """Return the ids of changed documents, and whether each is in force."""
    return {(change.id, change.in_force) for change in map(change_in, events)}


@in_the_gate
async def test_a_snapshot_of_what_is_in_force_is_followed_by_its_changes() -> None:
    async with serving() as running:
        await running.post_documents(CLAIM, as_fields("other", topic="coffee"))
        async with running.subscribe() as events:
            snapshot = await take_until(events, "snapshot-end")
            await running.post_documents(DENIAL)
            entered, left = sorted(map(change_in, await take(events, 2)), key=lambda change: change.id, reverse=True)

    assert [event.event for event in snapshot] == [
        "snapshot-begin",
        "snapshot-document",
        "snapshot-document",
        "snapshot-end",
    ]
    assert {document_in(event).id for event in snapshot[1:3]} == {"claim-1", "other"}
    assert (entered.id, entered.status) == ("denial-1", "in_force")
    assert (left.id, left.status, left.why, left.rule) == ("claim-1", "superseded", "voided", "denial-voids-claim")
    assert left.title == "claim-1"
    assert (left.cause.id, left.cause.title) == ("denial-1", "denial-1")


@in_the_gate
async def test_a_subscriber_with_a_cursor_receives_what_it_missed_and_nothing_else() -> None:
    async with serving() as running:
        async with running.subscribe(view="scope") as events:
            cursor = (await take_until(events, "snapshot-end"))[-1].id
        await running.post_documents(CLAIM)
        async with running.subscribe(view="scope", last=cursor) as events:
            [first] = await take(events, 1)
        await running.post_documents(DENIAL)
        async with running.subscribe(view="scope", last=first.id) as events:
            [second] = await take(events, 1)
        async with running.subscribe(view="scope", after=cursor) as events:
            again = await take(events, 2)

    assert again == [first, second]
    assert [event.event for event in again] == ["scope-change", "scope-change"]
    assert b'"claim-1"' in first.data
    assert b'"denial-1"' in second.data


@in_the_gate
async def test_scope_changes_are_those_that_are_listed() -> None:
    async with serving() as running:
        await running.post_documents(CLAIM, DENIAL, as_fields("doubt", "doubt", 2, topic="tea"))
        listed = msgspec.json.decode((await running.get("/v1/changes")).content, type=list[Change])
        async with running.subscribe(view="scope", after=running.cursor(0)) as events:
            received = await take(events, len(listed))

    changes = [msgspec.json.decode(event.data, type=ScopeChange).change for event in received]
    assert sorted(changes, key=shard_and_number) == listed


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, {"tea-1", "tea-2", "cup"}),
        ({"ids": "tea-1"}, {"tea-1"}),
        ({"ids": ["tea-1", "cup"]}, {"tea-1", "cup"}),
        ({"types": "fact"}, {"cup"}),
        ({"rules": "talk"}, {"tea-1", "tea-2", "cup"}),
        ({"rules": "other"}, set()),
        ({"scope": "topic=tea"}, {"tea-1", "tea-2"}),
        ({"scope": ["topic=tea", "place=home"]}, {"tea-2"}),
        ({"scope": "place=home"}, {"tea-2"}),
        ({"scope": "topic=tea", "types": "denial"}, set()),
    ],
)
async def test_a_subscriber_can_select_documents(parameters: Parameters, expected: set[str]) -> None:
    first = [
        document("tea-1", topic="tea"),
        document("tea-2", topic="tea", place="home"),
        document("cup", "fact", subject="cup"),
    ]
    async with serving() as running:
        cursor = running.cursor(0)
        await running.publish(first)
        async with running.subscribe(parameters) as events:
            snapshot = (await take_until(events, "snapshot-end"))[1:-1]
        await running.publish([document("end", "doubt", topic="the end")])
        async with running.subscribe({**parameters, "after": cursor}) as events:
            changed: set[str] = set()
            while not changed >= expected:
                changed.add(change_in((await take(events, 1))[0]).id)

    assert {document_in(event).id for event in snapshot} == expected
    assert changed - {"end"} == expected


@in_the_gate
@pytest.mark.parametrize("scope", ["theme=Tea", "topic=TEA", "topic=tea"])
async def test_a_scope_may_be_spelled_as_publishers_spell_it(scope: str) -> None:
    async with serving(ruleset=SPELLED) as running:
        await running.publish([document("tea-1", theme="Tea"), document("cup", theme="Cup")])
        async with running.subscribe(scope=scope) as events:
            snapshot = (await take_until(events, "snapshot-end"))[1:-1]
            await running.publish([document("no-cup", "denial", 9, theme="CUP"), document("tea-2", theme="TEA")])
            [entered] = await take(events, 1)
        async with running.subscribe(scope=scope, view="scope") as events:
            scopes = (await take_until(events, "snapshot-end"))[1:-1]

    assert [document_in(event).id for event in snapshot] == ["tea-1"]
    assert statuses([entered]) == {("tea-2", True)}
    assert [msgspec.json.decode(event.data, type=SnapshotScope).scope for event in scopes] == ["topic=tea"]


@in_the_gate
async def test_a_document_that_leaves_the_selection_is_reported() -> None:
    async with serving() as running:
        await running.publish([document("claim", topic="tea")])
        async with running.subscribe(scope="topic=tea") as events:
            await take_until(events, "snapshot-end")
            await running.publish([document("claim", topic="coffee", revision=2)])
            [event] = await take(events, 1)

    moved = change_in(event)
    assert (moved.id, moved.in_force, moved.selected, moved.why) == ("claim", True, False, "moved")


async def test_a_document_of_the_first_moment_of_1970_has_its_time() -> None:
    async with serving() as running, running.subscribe(snapshot="false") as events:
        await running.post_documents(CLAIM | {"time": "1970-01-01T00:00:00Z"})
        [event] = await take(events, 1)

    assert change_in(event).time == datetime(1970, 1, 1, tzinfo=UTC)


@in_the_gate
async def test_links_and_names_of_records_reach_the_documents_that_they_supersede() -> None:
    async with serving() as running:
        await running.publish([document("d@1", record="d"), document("free")])
        async with running.subscribe() as events:
            await take_until(events, "snapshot-end")
            await running.publish([document("end", "note", supersedes=("d", "free"))])
            changes = [change_in(event) for event in await take(events, 2)]

    assert {(change.id, change.in_force, change.rule) for change in changes} == {
        ("d@1", False, "link"),
        ("free", False, "link"),
    }


@in_the_gate
async def test_every_edition_of_a_selected_record_is_in_the_snapshot() -> None:
    editions = [document(f"r@{n:04d}", record="r") for n in range(1200)]  # of one moment: all are in force
    async with serving() as running:
        await running.publish(editions)
        async with running.subscribe(ids="r") as events:
            snapshot = (await take_until(events, "snapshot-end"))[1:-1]

    assert {document_in(event).id for event in snapshot} == {edition.id for edition in editions}


@in_the_gate
async def test_a_retraction_is_reported_to_subscribers_of_the_document() -> None:
    async with serving() as running:
        await running.publish([document("claim", topic="tea")])
        async with running.subscribe(types="claim", scope="topic=tea") as events:
            await take_until(events, "snapshot-end")
            await running.retract("claim")
            [event] = await take(events, 1)

    retracted = change_in(event)
    assert (retracted.id, retracted.status, retracted.why) == ("claim", "retracted", "retracted")


@in_the_gate
async def test_a_change_of_a_thousand_documents_is_reported_document_by_document() -> None:
    claims = [document(f"c{n:04d}", at=n % 7, topic="tea") for n in range(1500)]
    async with serving() as running:
        await running.publish(claims)
        async with running.subscribe(snapshot="false") as events:
            await running.publish([document("no", "denial", 9, topic="tea")])
            superseded = await take(events, 1501)
            await running.retract("no")
            in_force_again = await take(events, 1501)

    assert statuses(superseded) == {("no", True), *((claim.id, False) for claim in claims)}
    assert statuses(in_force_again) == {("no", False), *((claim.id, True) for claim in claims)}
    assert [bool(event.id) for event in superseded] == [False] * 1500 + [True]


@pytest.mark.parametrize("text", ["x", ":", "a:", ":5", "a:-1", "a:1e3", "a:١", "a:" + "9" * 30])
async def test_a_text_that_is_not_a_cursor_is_rejected(text: str) -> None:
    async with serving() as running:
        response = await running.client.get("/v1/subscribe", params={"after": text})

    assert (response.status_code, code_of(response)) == (400, "cursor")


@in_the_gate
async def test_a_cursor_ahead_of_the_last_change_is_rejected_with_advice() -> None:
    async with serving() as running:
        after = running.cursor(99)
        response = await running.client.get("/v1/subscribe", headers={"Last-Event-ID": after})

    assert (response.status_code, code_of(response)) == (409, "cursor_ahead")
    assert "Omit the cursor" in response.json()["detail"]


@in_the_gate
async def test_a_cursor_of_another_generation_is_answered_with_a_snapshot_of_now() -> None:
    async with serving() as running:
        await running.post_documents(CLAIM)
        async with running.subscribe(after="other-1:7") as events:
            received = await take_until(events, "snapshot-end")

    assert [event.event for event in received] == ["reset", "snapshot-begin", "snapshot-document", "snapshot-end"]
    assert msgspec.json.decode(received[0].data) == {
        "event": "reset",
        "cursor": None,
        "reason": "cursor_generation",
        "generation": running.generation,
    }


@only_embedded("how much a topic keeps is its retention")
async def test_a_cursor_older_than_what_is_kept_is_answered_with_a_snapshot_of_now() -> None:
    async with serving() as running:
        await running.publish([document(f"d{n}", topic=str(n)) for n in range(30)])
        assert not running.engine.directory.delete_changes(10, 100)
        async with running.subscribe(after=running.cursor(19)) as events:
            received = await take_until(events, "snapshot-end")
        async with running.subscribe(after=running.cursor(20), view="scope") as events:
            rest = await take(events, 10)
        status = (await running.get("/v1/status")).json()

    assert msgspec.json.decode(received[0].data, type=Reset).reason == "cursor_expired"
    assert len(received) == 33
    assert Cursor.parse(rest[0].id).numbers == (21,)
    assert status["changes_from"] == 21


@in_the_gate
async def test_at_rest_there_is_a_heartbeat_that_moves_the_cursor() -> None:
    async with (
        serving(settings=ServerSettings(port=0, heartbeat_s=0.05)) as running,
        running.subscribe(ids="nobody") as events,
    ):
        await take_until(events, "snapshot-end")
        await running.post_documents(CLAIM)
        heartbeats = await take(events, 1)
        while not heartbeats[-1].id:  # what was published may be on its way
            heartbeats += await take(events, 1)
        heartbeats += await take(events, 2)
        cursor = (await running.get("/v1/status")).json()["cursor"]

    assert {event.event for event in heartbeats} == {"heartbeat"}
    assert [event.id for event in heartbeats if event.id] == [cursor]


async def test_subscriptions_beyond_the_limit_are_rejected() -> None:
    async with serving(settings=ServerSettings(port=0, subscriptions_max=1)) as running, running.subscribe() as events:
        await take_until(events, "snapshot-end")
        busy = await running.client.get("/v1/subscribe")
        exposition = (await running.client.get("/metrics")).text

    assert (busy.status_code, code_of(busy)) == (429, "busy")
    assert "stream_car_subscriptions 1.0\n" in exposition


@in_the_gate
async def test_a_subscriber_that_reads_nothing_slows_nobody() -> None:
    async with serving() as running, running.client.stream("GET", "/v1/subscribe", params={"view": "scope"}):
        for n in range(20):
            batch = [as_fields(f"d{n}-{m}", topic=str(m)) for m in range(200)]
            await asyncio.wait_for(running.post_documents(*batch), 10)
        status = (await running.get("/v1/status")).json()

    assert status["documents"] == 4000
    assert status["subscriptions"] == 1


@only_embedded("the clock of Kafka cannot be stopped")
async def test_a_document_released_by_time_is_reported() -> None:
    clock = StoppedClock()
    async with serving(clock=clock) as running:
        await running.post("/v1/documents", as_fields("later", topic="tea") | {"time": format_time(NOW + DAY)})
        async with running.subscribe() as events:
            snapshot = await take_until(events, "snapshot-end")
            clock.time = NOW + DAY
            [event] = await take(events, 1)

    released = change_in(event)
    assert len(snapshot) == 2
    assert (released.id, released.in_force, released.cause.kind) == ("later", True, "released")


@in_the_gate
async def test_when_the_server_ends_its_subscriptions_end() -> None:
    async with serving() as running, running.subscribe() as events:
        await take_until(events, "snapshot-end")
        running.stop.set()
        async with asyncio.timeout(5):
            rest = [event async for event in events]

    assert rest == []


@only_embedded("it uses the engine itself")
def test_a_stream_cannot_be_continued_from_within_a_snapshot() -> None:
    with engine() as car:
        car.publish([document(f"c{n:03}", topic=f"t{n}") for n in range(300)])
        reader = car.directory.subscription(Selection(), cursor=(0,), with_snapshot=True)
        notices: list[Notice] = []
        while not notices or not isinstance(notices[-1].event, SnapshotEnd):
            batch, _ = car.directory.pull(reader)
            notices += batch
            if len(notices) == 1 + SNAPSHOT_ITEMS:
                car.publish([document("d", "denial", 3, topic="t0")])

    assert DocumentChange in {type(notice.event) for notice in notices}
    assert {type(notice.event) for notice in notices if notice.cursor is not None} == {SnapshotEnd}
