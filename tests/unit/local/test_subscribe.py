"""`engine.subscribe`: an iteration ends at the last change, and the next one continues after it."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from stream_car import (
    DocumentChange,
    Engine,
    Event,
    InvalidRequest,
    Reset,
    Retraction,
    ScopeChange,
    SnapshotBegin,
    SnapshotDocument,
    SnapshotEnd,
    SnapshotRecord,
    SnapshotScope,
)
from stream_car.core.revisions import SKEW
from stream_car.local.backup import copy
from stream_car.subscriptions import subscription
from tests.support.engines import DAY, OTHER_RULESET, StoppedClock, document, engine

CLAIM = document("claim", topic="tea")
DENIAL = document("denial", "denial", at=1, topic="tea")
DOUBT = document("doubt", "doubt", at=2, topic="tea")


def kinds(events: list[Event]) -> list[type[Event]]:
    return [type(event) for event in events]


def statuses(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.id, event.status) for event in events if isinstance(event, DocumentChange)]


def in_force(car: Engine) -> set[str]:
    return {document.id for frontier in car.frontier("topic=tea") for document in frontier.in_force}


def test_an_iteration_begins_with_a_snapshot_and_ends_at_the_last_change() -> None:
    with engine() as car:
        car.publish([CLAIM, DENIAL])
        events = list(car.subscribe())

        assert kinds(events) == [SnapshotBegin, SnapshotDocument, SnapshotEnd]
        assert isinstance(events[1], SnapshotDocument)
        assert (events[1].id, events[1].title, events[1].scopes) == ("denial", "denial", ("topic=tea",))
        assert events[-1].cursor == car.status().cursor


def test_the_next_iteration_continues_after_the_last_change() -> None:
    with engine() as car:
        subscription = car.subscribe()
        assert kinds(list(subscription)) == [SnapshotBegin, SnapshotEnd]
        car.publish(CLAIM)
        assert statuses(list(subscription)) == [("claim", "in_force")]
        car.publish(DENIAL)
        assert statuses(list(subscription)) == [("claim", "superseded"), ("denial", "in_force")]
        assert list(subscription) == []
        assert subscription.cursor == car.status().cursor


def test_whoever_keeps_what_is_in_force_has_the_state_after_each_iteration() -> None:
    with engine() as car:
        kept: set[str] = set()
        subscription = car.subscribe(scope={"topic": "tea"})
        for statement in (CLAIM, DENIAL, DOUBT, document("claim", revision=2, topic="milk")):
            car.publish(statement)
            for event in subscription:
                if isinstance(event, SnapshotDocument):
                    kept.add(event.id)
                elif isinstance(event, DocumentChange):
                    (kept.add if event.in_force and event.selected else kept.discard)(event.id)
            assert kept == in_force(car)


def test_without_a_snapshot_a_subscription_begins_at_the_last_change() -> None:
    with engine() as car:
        car.publish(CLAIM)
        subscription = car.subscribe(snapshot=False)
        assert list(subscription) == []
        car.publish(DENIAL)
        assert statuses(list(subscription)) == [("claim", "superseded"), ("denial", "in_force")]


def test_a_cursor_continues_in_another_process(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish(CLAIM)
        first = car.subscribe()
        list(first)
    with engine(tmp_path) as car:
        car.publish(DENIAL)
        assert statuses(list(car.subscribe(after=first.cursor))) == [("claim", "superseded"), ("denial", "in_force")]


def test_a_cursor_file_keeps_what_was_dealt_with(tmp_path: Path) -> None:
    file = tmp_path / "cursor"
    with engine(tmp_path / "data") as car:
        car.publish([CLAIM, document("other", topic="milk")])
        with car.subscribe(cursor_file=file) as subscription:
            assert len(list(subscription)) == 4
        assert file.read_text().strip() == car.status().cursor
        car.publish(document(f"c{n}", topic=str(n)) for n in range(3))
        with car.subscribe(cursor_file=file) as subscription:
            first = next(subscription)
            second = next(subscription)  # asking for it means that the first has been dealt with
    with engine(tmp_path / "data") as car, car.subscribe(cursor_file=file) as subscription:
        rest = list(subscription)

    assert statuses([first, second]) == [("c0", "in_force"), ("c1", "in_force")]
    assert statuses(rest) == [("c1", "in_force"), ("c2", "in_force")]


def test_the_scope_view_has_each_change_once() -> None:
    with engine() as car:
        car.publish([CLAIM, DENIAL])
        subscription = car.subscribe(view="scope", scope="topic=tea")
        begin, scope, end = subscription
        assert (type(begin), type(end)) == (SnapshotBegin, SnapshotEnd)
        assert isinstance(scope, SnapshotScope)
        assert (scope.scope, scope.seq, [member.id for member in scope.members]) == ("topic=tea", 2, ["denial"])
        car.publish([DOUBT, document("other", topic="milk")])
        [event] = subscription
        assert isinstance(event, ScopeChange)
        assert event.change == car.changes("topic=tea")[-1]


def parts_of(events: Iterable[Event]) -> list[SnapshotScope]:
    return [event for event in events if isinstance(event, SnapshotScope)]


def test_a_scope_of_very_many_members_comes_in_parts_of_at_most_a_thousand() -> None:
    with engine() as car:
        car.publish(document(f"m{n}", order=n, topic="tea") for n in range(1100))
        parts = parts_of(car.subscribe(view="scope", scope="topic=tea"))

    assert [(len(part.members), part.continued) for part in parts] == [(1000, False), (100, True)]
    assert [member.id for part in parts for member in part.members] == [f"m{n}" for n in reversed(range(1100))]


def test_a_scope_comes_whole_if_only_the_member_of_its_last_part_is_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "MEMBERS_AT_ONCE", 2)
    with engine() as car:
        car.publish(document(f"m{n}", at=n, topic="tea") for n in range(5))
        parts = parts_of(car.subscribe(view="scope", ids=["m0"]))
        others = parts_of(car.subscribe(view="scope", ids=["m9"]))

    assert [len(part.members) for part in parts] == [2, 2, 1]
    assert others == []


def test_whoever_adds_parts_and_applies_changes_between_them_has_the_scope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "MEMBERS_AT_ONCE", 2)
    kept: set[str] = set()
    kinds_received: list[type[Event]] = []
    with engine() as car:
        car.publish(document(f"m{n}", "fact", at=n, subject="tea", place=str(n)) for n in range(10, 20))
        feed = car.subscribe(view="scope", scope="subject=tea")
        for event in feed:
            kinds_received.append(type(event))
            if isinstance(event, SnapshotScope):
                kept |= {member.id for member in event.members}
                if len(kept) == 4:
                    car.publish(
                        [document("late", "fact", at=30, subject="tea"), document("early", "fact", subject="tea")]
                    )
                    car.publish([Retraction(id="m19"), Retraction(id="m10")])
            elif isinstance(event, ScopeChange):
                kept -= {member.id for member in event.change.left}
                kept |= {member.id for member in event.change.entered}
        expected = {held.id for frontier in car.frontier("subject=tea") for held in frontier.in_force}

    assert kept == expected == {"late", "early", *(f"m{n}" for n in range(11, 19))}
    assert kinds_received.index(ScopeChange) < len(kinds_received) - 1 - kinds_received[::-1].index(SnapshotScope)


def test_a_document_that_becomes_due_is_a_change() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as car:
        car.publish([CLAIM, document("denial", "denial", at=1001, topic="tea")])
        subscription = car.subscribe()
        assert len(list(subscription)) == 3
        clock.time += DAY - SKEW
        assert statuses(list(subscription)) == [("claim", "superseded"), ("denial", "in_force")]
        clock.time += DAY
        assert car.status().pending == 0


def test_status_releases_what_is_due() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as car:
        car.publish(document("claim", at=1001, topic="tea"))
        assert (car.status().pending, car.status().next_offset) == (1, 1)
        clock.time += DAY
        assert (car.status().pending, car.status().next_offset) == (0, 2)


def test_after_a_rebuild_a_subscription_resets_and_begins_again() -> None:
    with engine() as car:
        car.publish([CLAIM, DENIAL, DOUBT])
        subscription = car.subscribe()
        assert len(list(subscription)) == 3
        with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            rebuild.switch()
        events = list(subscription)

        assert kinds(events) == [Reset, SnapshotBegin, SnapshotDocument, SnapshotEnd]  # a doubt has no scope now
        assert isinstance(events[0], Reset)
        assert (events[0].reason, events[0].generation) == ("cursor_generation", car.status().generation)
        assert list(subscription) == []


@pytest.mark.parametrize(
    ("after", "code"), [("nonsense", "cursor"), ("{}:1.1", "cursor"), ("{}:99@{}", "cursor_ahead"), ("{}:-1", "cursor")]
)
def test_a_cursor_that_cannot_be_continued_is_rejected(after: str, code: str) -> None:
    with engine() as car:
        car.publish(CLAIM)
        with pytest.raises(InvalidRequest) as caught:
            list(car.subscribe(after=after.format(car.status().generation, car.directory.marks.mark())))

        assert caught.value.code == code


@pytest.mark.parametrize("after", ["{}:1", "{}:1@1-abcdefabcdef", "{}:1@99-{}", "{}:1@x", "{}:1@"])
def test_a_cursor_of_another_log_is_answered_with_a_snapshot_of_now(after: str) -> None:
    with engine() as car:
        car.publish([CLAIM, DENIAL])
        digest = car.directory.marks.mark().partition("-")[2]
        [reset, *events] = car.subscribe(after=after.format(car.status().generation, digest))

        assert isinstance(reset, Reset)
        assert (reset.reason, kinds(events)[0]) == ("cursor_log", SnapshotBegin)


@pytest.mark.parametrize("mark", ["", "@", "@1-abcdefabcdef", "@99-{}", "@x"])
def test_a_position_of_another_log_is_an_error_with_a_cure(mark: str) -> None:
    with engine() as car:
        car.publish([CLAIM, DENIAL])
        digest = car.directory.marks.mark().partition("-")[2]
        place = car.changes()[0].position.partition("@")[0]
        with pytest.raises(InvalidRequest, match="Omit it to start with the first change") as caught:
            car.changes(after=place + mark.format(digest))

        assert caught.value.code == "after"


def test_a_position_from_before_a_restore_is_an_error_however_long_the_restored_log_grows(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish([document(f"before-{n}", topic="tea") for n in range(5)])
        kept = car.changes(limit=1000)[-1].position
        copy(tmp_path / "data", tmp_path / "backup")
        car.publish([document(f"lost-{n}", topic="tea") for n in range(5)])
        lost = car.changes(limit=1000)[-1].position
    with engine(tmp_path / "backup") as car:
        car.publish([document(f"after-{n}", topic="tea") for n in range(30)])
        with pytest.raises(InvalidRequest, match="another log"):
            car.changes(after=lost)
        assert [change.cause.id for change in car.changes(after=kept, limit=1000)] == [f"after-{n}" for n in range(30)]


def test_an_event_has_the_position_under_which_its_change_is_listed() -> None:
    with engine() as car:
        car.publish([CLAIM])
        first = car.changes()[-1].position
        cursor = car.status().cursor
        car.publish([DENIAL])
        events = [event for event in car.subscribe(after=cursor) if isinstance(event, DocumentChange)]

        assert {event.position for event in events} == {change.position for change in car.changes(after=first)}


def test_a_cursor_from_before_a_restore_is_reset_however_long_the_restored_log_grows(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish([document(f"before-{n}", topic="tea") for n in range(5)])
        kept = car.status().cursor
        copy(tmp_path / "data", tmp_path / "backup")
        car.publish([document(f"lost-{n}", topic="tea") for n in range(5)])
        lost = car.status().cursor
    with engine(tmp_path / "backup") as car:
        car.publish([document(f"after-{n}", topic="tea") for n in range(30)])
        [reset, *_] = car.subscribe(after=lost)
        assert isinstance(reset, Reset)
        assert reset.reason == "cursor_log"
        changed = [event.id for event in car.subscribe(after=kept) if isinstance(event, DocumentChange)]
        assert changed == [f"after-{n}" for n in range(30)]


def test_a_subscription_that_was_not_finished_counts_until_it_is_closed() -> None:
    with engine() as car:
        car.publish([CLAIM, DENIAL])
        assert car.status().subscriptions == 0
        with car.subscribe() as subscription:
            next(subscription)
            assert car.status().subscriptions == 1
        assert car.status().subscriptions == 0


@pytest.mark.parametrize("scope", ["topic=tea, topic=milk", {"topic": ["tea", "milk"]}])
def test_a_key_with_several_values_selects_documents_with_one_of_them(scope: str | dict[str, list[str]]) -> None:
    with engine() as car:
        car.publish(document(f"about-{topic}", topic=topic) for topic in ("tea", "milk", "coffee"))
        snapshot = [event.id for event in car.subscribe(scope=scope) if isinstance(event, SnapshotDocument)]
        changes = [event.cause.id for event in car.changes(scope)]

    assert snapshot == ["about-milk", "about-tea"]
    assert changes == ["about-tea", "about-milk"]


def test_every_key_of_a_selection_must_have_one_of_its_values() -> None:
    with engine() as car:
        car.publish([document("both", topic="tea", place="home"), document("other", topic="tea", place="work")])
        selected = car.subscribe(scope={"topic": ["tea", "milk"], "place": ["home", "train"]})
        assert [event.id for event in selected if isinstance(event, SnapshotDocument)] == ["both"]


def test_a_record_of_more_editions_in_force_than_are_looked_at_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_car.subscriptions.records.IN_FORCE_MAX", 3)
    with engine() as car:
        car.publish(document(f"edition-{number}", record="r") for number in range(20))
        events = list(car.subscribe(view="record"))

    assert [event.record for event in events if isinstance(event, SnapshotRecord)] == ["r"]
