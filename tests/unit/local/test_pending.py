"""Documents from the future wait by the time of the log, are released before a read, and can be retracted."""

from pathlib import Path

import pytest

from stream_car import Engine, InvalidRequest, PendingDocument
from stream_car.codec.times import to_micros
from stream_car.core.documents import Document
from stream_car.core.revisions import SKEW
from stream_car.local.run_sync import run_sync
from stream_car.local.service import LocalService
from stream_car.ports import CLOCK_STEP_MAX
from stream_car.queries.paging import ScopePosition
from tests.support.engines import DAY, NOW, RULESET, StoppedClock, document, engine, on_day


def future(name: str = "f", revision: int = 1, days: int = 1, kind: str = "denial") -> Document:
    return document(name, kind, at=1000 + days, revision=revision, topic="moon")


def waiting(name: str = "f", revision: int = 1, days: int = 1) -> PendingDocument:
    time = on_day(1000 + days)
    position = str(ScopePosition("", (to_micros(time), 0, name)))
    return PendingDocument(id=name, revision=revision, time=time, position=position)


def statuses(car: Engine, names: list[str]) -> list[str]:
    return [resolution.status for resolution in car.resolve(names)]


def test_a_document_from_the_future_waits_and_is_released_before_a_read() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as car:
        receipts = car.publish([document("c", topic="moon"), future()]).receipts
        assert [receipt.outcome for receipt in receipts] == ["accepted", "pending"]
        assert car.pending() == (waiting(),)
        assert statuses(car, ["c", "f"]) == ["in_force", "pending"]
        assert (car.explain("f").status, car.explain("f").due) == ("pending", on_day(1001))
        assert car.query("moon").pending == 1
        clock.time = NOW + DAY - SKEW - 1
        assert statuses(car, ["c", "f"]) == ["in_force", "pending"]
        assert car.directory.next_offset == 2
        clock.time += 1
        assert statuses(car, ["c", "f"]) == ["superseded", "in_force"]
        assert car.directory.next_offset == 3
        assert car.pending() == ()
        [*_, last] = car.changes()
        assert (last.cause.kind, last.cause.id, last.offset) == ("released", "f", 2)


def test_what_became_due_while_the_engine_was_closed_is_released_on_opening(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish([document("c", topic="moon"), future(), future("g", days=3)])
    with engine(tmp_path, clock=StoppedClock(NOW + 2 * DAY)) as car:
        assert car.directory.next_offset == 4
        assert car.pending() == (waiting("g", days=3),)
        assert statuses(car, ["c", "f", "g"]) == ["superseded", "in_force", "pending"]


def test_what_waits_becomes_due_after_opening_again_too(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish([document("c", topic="moon"), future()])
    clock = StoppedClock()
    with engine(tmp_path, clock=clock) as car:
        assert car.resolve(["c"])[0].status == "in_force"
        clock.time += 2 * DAY
        assert car.resolve(["c"])[0].status == "superseded"


def test_a_waiting_document_can_be_retracted() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as car:
        car.publish([document("c", topic="moon"), future()])
        assert car.retract("f").outcome == "retracted"
        assert car.pending() == ()
        clock.time += 9 * DAY
        assert statuses(car, ["c", "f"]) == ["in_force", "retracted"]
        assert [change.cause.id for change in car.changes()] == ["c"]


def test_a_waiting_document_can_be_corrected_to_another_time() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as car:
        car.publish([document("c", topic="moon"), future(), future(revision=2, days=5)])
        assert car.pending() == (waiting(revision=2, days=5),)
        clock.time += 2 * DAY
        assert car.resolve(["c"])[0].status == "in_force"
        car.publish([future(revision=3, days=1)])
        assert car.pending() == ()
        assert car.resolve(["c"])[0].status == "superseded"


def test_a_correction_into_the_future_takes_effect_at_once_on_what_it_replaces() -> None:
    with engine() as car:
        car.publish([document("c", topic="moon"), document("d", "denial", at=5, topic="moon")])
        assert car.resolve(["c"])[0].status == "superseded"
        assert car.publish([future("d", revision=2)]).receipts[0].outcome == "pending"
        assert statuses(car, ["c", "d"]) == ["in_force", "pending"]
        assert car.query("d").pending == 1


def test_waiting_documents_are_released_in_the_order_of_their_times() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as car:
        car.publish([future(f"f{n}", days=9 - n, kind="claim") for n in range(5)])
        assert [pending.id for pending in car.pending()] == ["f4", "f3", "f2", "f1", "f0"]
        clock.time += 20 * DAY
        car.publish([document("z", topic="moon")])
        assert [change.cause.id for change in car.changes()] == ["f4", "f3", "f2", "f1", "f0", "z"]
        assert {change.offset for change in car.changes()} == {5}


def test_in_a_closed_collection_documents_from_the_future_count_at_once() -> None:
    with engine(future="apply") as car:
        assert car.publish([document("c", topic="moon"), future()]).outcomes == {"accepted": 2}
        assert car.pending() == ()
        assert statuses(car, ["c", "f"]) == ["superseded", "in_force"]
        assert [resolution.status for resolution in car.resolve(["c", "f"], as_of=on_day(1000))] == [
            "in_force",
            "pending",
        ]


def test_how_the_future_is_treated_is_part_of_the_generation(tmp_path: Path) -> None:
    with engine(tmp_path) as car:
        car.publish([document("c", topic="moon"), future()])
        generation = car.directory.generation
        with car.directory.rebuild(ruleset=RULESET, future="apply") as rebuild:
            rebuild.switch()
        assert car.directory.generation != generation
        assert car.resolve(["c"])[0].status == "superseded"
    with engine(tmp_path) as car:
        assert car.resolve(["c"])[0].status == "superseded"
    with pytest.raises(InvalidRequest, match="built with future=apply"):
        engine(tmp_path, future="wait")


def test_append_times_do_not_go_back_with_the_clock(tmp_path: Path) -> None:
    with engine(tmp_path, clock=StoppedClock(NOW + DAY)) as car:
        car.publish([document("c", topic="moon")])
    with engine(tmp_path, clock=StoppedClock(NOW + DAY - CLOCK_STEP_MAX)) as car:
        assert car.publish([future()]).receipts[0].outcome == "accepted"


def test_a_leap_of_the_clock_ends_when_the_clock_is_set_right() -> None:
    clock = StoppedClock(NOW + 4000 * DAY)
    with engine(clock=clock) as car:
        car.publish([document("c", topic="moon"), future()])
        assert statuses(car, ["c", "f"]) == ["superseded", "in_force"]
        clock.time = NOW
        assert car.directory.clock_lead == 4000 * DAY
        service = LocalService(car.directory)
        assert "96,000 hours ahead of the clock" in run_sync(service.require_ready())
        [receipt] = car.publish(future("g", days=3)).receipts
        assert receipt.outcome == "pending"
        assert car.directory.clock_lead == 0
        assert run_sync(service.require_ready()) == ""
        clock.time += 4 * DAY
        assert statuses(car, ["g"]) == ["in_force"]
