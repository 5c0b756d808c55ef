"""Events about records: one for each record that a change moves, with what it was before, and what became of it."""

import json
from collections.abc import Iterator, Sequence

import pytest

from stream_car import Engine, RecordChange, Retraction, SnapshotRecord
from tests.support.feeds import Reading


def affected(package: str, *fixes: dict[str, str]) -> dict[str, object]:
    events = [{"introduced": "0"}, *fixes]
    return {"package": {"name": package, "ecosystem": "PyPI"}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}


FIXED = affected("tea", {"fixed": "2.0"})
BUG: dict[str, object] = {
    "id": "OSV-1",
    "aliases": ["CVE-2022-1", "GHSA-aaaa-bbbb-cccc"],
    "summary": "a bug",
    "affected": [affected("tea")],
}


@pytest.fixture
def car() -> Iterator[Engine]:
    with Engine(rules=["security"]) as engine:
        yield engine


def edition(day: int, **changes: object) -> dict[str, object]:
    return {**BUG, "modified": f"2022-01-{day:02}T00:00:00Z", **changes}


def fixed(day: int) -> dict[str, object]:
    return edition(day, affected=[FIXED])


def withdrawn(day: int) -> dict[str, object]:
    return edition(day, withdrawn=f"2022-01-{day:02}T00:00:00Z")


def publish(car: Engine, *records: dict[str, object]) -> None:
    reading = Reading("osv")
    for record in records:
        published = car.publish(reading.read(json.dumps(record)))
        assert {receipt.outcome for receipt in published.receipts} == {"accepted"}


def reported(car: Engine, **selection: object) -> list[RecordChange]:
    events = list(car.subscribe(view="record", since="1970-01-01", **selection))  # type: ignore[arg-type]
    assert all(isinstance(event, RecordChange) for event in events)
    return [event for event in events if isinstance(event, RecordChange)]


def moves(events: Sequence[RecordChange]) -> list[tuple[str, str, str]]:
    return [(event.state_before, event.state, event.outcome) for event in events]


def test_a_record_with_several_names_is_told_once_for_each_change(car: Engine) -> None:
    publish(car, edition(1), fixed(2), withdrawn(3))
    events = reported(car)

    assert moves(events) == [
        ("", "open", "published"),
        ("open", "fixed", "fixed"),
        ("fixed", "withdrawn", "withdrawn"),
    ]
    assert [event.outcome_text for event in events] == ["published", "fixed in 2.0", "withdrawn 2022-01-03"]
    assert {event.names["package"] for event in events} == {("tea",)}
    assert {(event.status, event.state_now) for event in events} == {("superseded", "withdrawn")}
    assert [event.earlier for event in events[1:]] == [event.document.id for event in events[:-1]]


def test_an_edition_that_changes_nothing_material_is_told_only_if_it_is_wanted(car: Engine) -> None:
    publish(car, edition(1), edition(2, summary="a bug, in other words"))

    assert moves(reported(car)) == [("", "open", "published")]
    assert moves(reported(car, material=False))[1:] == [("open", "open", "revised")]


def test_only_the_wanted_outcomes_are_told(car: Engine) -> None:
    publish(car, edition(1), fixed(2), withdrawn(3))

    assert [event.outcome for event in reported(car, only=["withdrawn", "fixed"])] == ["fixed", "withdrawn"]


def test_only_what_took_effect_since_then_is_told(car: Engine) -> None:
    publish(car, edition(1), fixed(2), withdrawn(3))
    since = [event for event in car.subscribe(view="record", since="2022-01-02") if isinstance(event, RecordChange)]

    assert [event.outcome for event in since] == ["fixed", "withdrawn"]
    assert [str(event.cause.time)[:10] for event in since] == ["2022-01-02", "2022-01-03"]


@pytest.mark.parametrize("scope", [{"package": ["beer", "tea"]}, {"package": "TEA"}, {"vulnerability": "cve-2022-1"}])
def test_a_withdrawal_names_its_package_although_it_is_the_first_that_is_known(
    car: Engine, scope: dict[str, list[str]]
) -> None:
    publish(car, withdrawn(3))
    [event] = reported(car, scope=scope)
    snapshot = [each for each in car.subscribe(view="record", scope=scope) if isinstance(each, SnapshotRecord)]

    assert (event.outcome, event.outcome_text) == ("withdrawn", "withdrawn 2022-01-03")
    assert event.names["package"] == ("tea",)
    assert [(each.record, each.state, each.names["package"]) for each in snapshot] == [("OSV-1", "withdrawn", ("tea",))]
    assert not reported(car, scope={"package": ["beer"]})


def test_a_fix_by_another_publisher_is_told_of_the_record_and_not_again_when_it_had_ended(car: Engine) -> None:
    release: dict[str, object] = {
        "id": "tea-2.0",
        "type": "release_note",
        "time": "2022-01-05",
        "scope": {"vulnerability": ["CVE-2022-1", "GHSA-aaaa-bbbb-cccc"], "package": "tea"},
        "title": "tea 2.0",
    }
    publish(car, edition(1))
    car.publish(release)
    of_record = reported(car, ids=["OSV-1"])
    publish(car, withdrawn(6))
    car.publish(release | {"id": "tea-2.1", "time": "2022-01-07"})

    assert moves(of_record) == [("", "open", "published"), ("open", "fixed", "fixed")]
    assert (of_record[1].document.id, of_record[1].outcome_text) == ("tea-2.0", "fixed by tea 2.0")
    assert [event.outcome for event in reported(car, ids=["OSV-1"])] == ["published", "fixed", "withdrawn"]


@pytest.mark.parametrize(("day", "fixes"), [("2022-01-05", 1), ("2022-01-07", 0)])
@pytest.mark.parametrize("is_late", [True, False])
def test_a_fix_is_told_by_its_time_whenever_it_arrives(car: Engine, day: str, fixes: int, is_late: bool) -> None:
    release: dict[str, object] = {
        "id": "tea-2.0",
        "type": "release_note",
        "time": day,
        "scope": {"vulnerability": ["CVE-2022-1", "GHSA-aaaa-bbbb-cccc"], "package": "tea"},
    }
    publish(car, edition(1), *([withdrawn(6)] if is_late else []))
    car.publish(release)
    publish(car, *([] if is_late else [withdrawn(6)]))
    events = reported(car, ids=["OSV-1"])

    assert sum(event.outcome == "fixed" for event in events) == fixes
    assert {(event.status, event.state_now) for event in events} == {("superseded", "withdrawn")}


def test_a_record_that_is_fixed_in_one_package_only_says_so_to_who_watches_that_package(car: Engine) -> None:
    tea, pot = affected("tea"), affected("pot")
    publish(car, edition(1, affected=[tea, pot]), edition(2, affected=[FIXED, pot]))

    assert moves(reported(car, scope={"package": "tea"}))[1:] == [("open", "fixed", "fixed")]
    assert moves(reported(car, scope={"package": "pot"}))[1:] == [("open", "open", "updated")]
    assert moves(reported(car))[1:] == [("open", "open", "updated")]


@pytest.mark.parametrize(("packages", "state"), [(["tea"], "fixed"), (["pot"], "open"), (["tea", "pot"], "open")])
def test_what_holds_now_is_that_of_the_package_that_is_watched(car: Engine, packages: list[str], state: str) -> None:
    publish(car, edition(1, affected=[affected("tea"), affected("pot")]))
    publish(car, edition(2, affected=[FIXED, affected("pot")]))
    scope = {"package": packages}
    snapshot = [each for each in car.subscribe(view="record", scope=scope) if isinstance(each, SnapshotRecord)]

    assert {event.state_now for event in reported(car, scope=scope)} == {state}
    assert [each.state for each in snapshot] == [state]


def test_a_package_that_a_record_names_no_longer_has_the_state_of_the_record(car: Engine) -> None:
    publish(car, edition(1, affected=[affected("tea"), affected("pot")]), edition(2, affected=[affected("pot")]))

    assert {(event.status, event.state_now) for event in reported(car, scope={"package": "tea"})} == {
        ("in_force", "open")
    }


def test_a_retraction_gives_a_record_its_earlier_state_back(car: Engine) -> None:
    publish(car, edition(1), fixed(2))
    start = car.status().cursor
    car.publish([Retraction(id="OSV-1@2022-01-02T00:00:00Z")])
    events = [event for event in car.subscribe(view="record", after=start) if isinstance(event, RecordChange)]

    assert ("fixed", "open", "retracted") in moves([event for event in events if event.record == "OSV-1"])
    assert {(event.status, event.state_now) for event in events if event.record == "OSV-1"} == {("in_force", "open")}


def test_a_fix_that_is_retracted_reinstates_what_it_had_fixed(car: Engine) -> None:
    scope = {"vulnerability": "CVE-2022-1", "package": "tea"}
    publish(car, edition(1))
    car.publish({"id": "tea-2.0", "type": "release_note", "time": "2022-01-05", "scope": scope})
    start = car.status().cursor
    car.publish([Retraction(id="tea-2.0")])
    events = [event for event in car.subscribe(view="record", after=start) if isinstance(event, RecordChange)]

    assert {event.record for event in events} == {"OSV-1", "tea-2.0"}
    assert moves([event for event in events if event.record == "OSV-1"]) == [("fixed", "open", "reinstated")]
    assert moves([event for event in events if event.record == "tea-2.0"]) == [("fixed", "", "retracted")]


def test_a_record_is_in_a_snapshot_once_with_what_it_says_now(car: Engine) -> None:
    publish(car, edition(1), fixed(2), edition(1, id="OSV-2", aliases=[]))
    snapshot = [each for each in car.subscribe(view="record") if isinstance(each, SnapshotRecord)]

    assert {each.record: (each.status, each.state) for each in snapshot} == {
        "OSV-1": ("in_force", "fixed"),
        "OSV-2": ("in_force", "open"),
    }


def test_an_interrupted_subscription_continues_after_its_cursor(car: Engine) -> None:
    start = car.status().cursor
    publish(car, edition(1), fixed(2))
    whole = list(car.subscribe(view="record", after=start))

    assert [event.cursor is not None for event in whole] == [True, True]
    assert list(car.subscribe(view="record", after=whole[0].cursor)) == whole[1:]
