"""Events: a program tells them apart by their type, and as JSON by their name."""

from typing import assert_never, get_args

import msgspec
import pytest

from stream_car import (
    DocumentChange,
    Event,
    RecordChange,
    RecordDocument,
    Reset,
    ScopeChange,
    SnapshotBegin,
    SnapshotDocument,
    SnapshotEnd,
    SnapshotRecord,
    SnapshotScope,
)
from stream_car.queries.answers import Change, ChangeCause, ChangedMember
from stream_car.subscriptions.events import Heartbeat
from tests.support.engines import document, engine, on_day

CAUSE = ChangeCause(id="denial", revision=1, title="Denial")
DOCUMENT = RecordDocument(id="claim", revision=1, type="claim", time=on_day(1), order=0)
EVENTS: dict[str, Event] = {
    "snapshot-begin": SnapshotBegin(generation="g", view="document"),
    "snapshot-document": SnapshotDocument(
        id="claim",
        revision=1,
        type="claim",
        time=on_day(1),
        order=0,
        title="",
        source="",
        url="",
        scopes=("topic=tea",),
    ),
    "snapshot-scope": SnapshotScope(scope="topic=tea", seq=1, members=(ChangedMember(id="claim", time=on_day(1)),)),
    "snapshot-end": SnapshotEnd(generation="g", cursor="g:1"),
    "document-change": DocumentChange(
        id="claim",
        status="superseded",
        selected=True,
        revision=1,
        type="claim",
        time=on_day(1),
        order=0,
        title="",
        source="",
        url="",
        why="voided",
        rule="denial-voids-claim",
        scope="topic=tea",
        cause=CAUSE,
        position="g/0/2",
        cursor="g:2",
    ),
    "scope-change": ScopeChange(
        change=Change(position="g/0/2", scope="topic=tea", seq=2, cause=CAUSE, offset=1), cursor="g:2"
    ),
    "snapshot-record": SnapshotRecord(record="claim", status="in_force", names={}, document=DOCUMENT),
    "record-change": RecordChange(
        event_id="0",
        record="claim",
        status="superseded",
        state_before="open",
        state="withdrawn",
        state_now="withdrawn",
        outcome="withdrawn",
        outcome_text="withdrawn",
        names={"package": ("tea",)},
        document=DOCUMENT,
        cause=CAUSE,
        position="g/0/2",
        cursor="g:2",
    ),
    "reset": Reset(reason="generation", generation="h"),
    "heartbeat": Heartbeat(),
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_survives_json_and_is_named_there(name: str) -> None:
    encoded = msgspec.json.encode(EVENTS[name])

    assert msgspec.json.decode(encoded, type=Event) == EVENTS[name]
    assert msgspec.json.decode(encoded, type=dict[str, object])["event"] == name


def test_every_type_of_event_has_an_example_here() -> None:
    assert {type(event) for event in EVENTS.values()} == set(get_args(Event))


def summary(event: Event) -> str:
    """Describe an event. The type checker sees that no type is left out, and which fields each has."""
    match event:
        case SnapshotBegin(generation=generation, view=view):
            return f"all of {generation} by {view}"
        case SnapshotDocument(id=name, scopes=scopes):
            return f"{name} in {', '.join(scopes)}"
        case SnapshotScope(scope=scope, members=members):
            return f"{scope}: {', '.join(member.id for member in members)}"
        case SnapshotEnd():
            return "end"
        case DocumentChange(id=name, status=status, cause=cause):
            return f"{name} {status} because of {cause.id}"
        case ScopeChange(change=change):
            return f"{change.scope} number {change.seq}"
        case SnapshotRecord(record=record, state=state):
            return f"{record} is {state}"
        case RecordChange(record=record, outcome=outcome):
            return f"{record} {outcome}"
        case Reset(reason=reason):
            return f"reset: {reason}"
        case Heartbeat():
            return "heartbeat"
        case _:
            assert_never(event)


def test_events_are_told_apart_by_their_type() -> None:
    assert [summary(event) for event in EVENTS.values()] == [
        "all of g by document",
        "claim in topic=tea",
        "topic=tea: claim",
        "end",
        "claim superseded because of denial",
        "topic=tea number 2",
        "claim is ",
        "claim withdrawn",
        "reset: generation",
        "heartbeat",
    ]


def test_an_engine_gives_events_of_these_types() -> None:
    with engine() as car:
        subscription = car.subscribe()
        car.publish(document("claim", topic="tea"))
        first = [summary(event) for event in subscription]
        car.publish(document("denial", "denial", at=1, topic="tea"))
        second = [summary(event) for event in subscription]

    assert first[1:] == ["claim in topic=tea", "end"]
    assert second == ["claim superseded because of denial", "denial in_force because of denial"]


@pytest.mark.parametrize("status", ["in_force", "superseded", "retracted", "pending", "unknown"])
def test_a_document_is_in_force_by_its_status(status: str) -> None:
    change = msgspec.structs.replace(EVENTS["document-change"], status=status)

    assert isinstance(change, DocumentChange)
    assert change.in_force == (status == "in_force")
