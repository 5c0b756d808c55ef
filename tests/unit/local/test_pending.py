"""Documents ahead of their time: they wait in the log's time, are released before a read, and can be taken back."""

from pathlib import Path

import pytest

from stream_car import Document, InvalidRequest
from stream_car.core.revisions import SKEW
from tests.support.engines import DAY, NOW, RULESET, StoppedClock, document, engine


def future(name: str = "f", revision: int = 1, days: int = 1, kind: str = "denial") -> Document:
    return document(name, kind, at=1000 + days, revision=revision, topic="moon")


def test_a_document_from_the_future_waits_and_is_released_before_a_read() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as here:
        receipts = here.publish([document("c", topic="moon"), future()]).receipts
        assert [receipt.outcome for receipt in receipts] == ["accepted", "pending"]
        assert here.pending() == (("f", 1, NOW + DAY),)
        assert [one.status for one in here.resolve(["c", "f"])] == ["active", "pending"]
        assert (here.explain("f").status, here.explain("f").due) == ("pending", NOW + DAY)
        assert here.query("moon").pending == 1
        clock.time = NOW + DAY - SKEW - 1
        assert [one.status for one in here.resolve(["c", "f"])] == ["active", "pending"]
        assert here.next_offset == 2
        clock.time += 1
        assert [one.status for one in here.resolve(["c", "f"])] == ["void", "active"]
        assert here.next_offset == 3
        assert here.pending() == ()
        [*_, last] = here.changes()
        assert (last.change.cause.kind, last.change.cause.id, last.change.offset) == ("released", "f", 2)


def test_what_became_due_while_the_engine_was_closed_is_released_on_opening(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([document("c", topic="moon"), future(), future("g", days=3)])
    with engine(tmp_path, clock=StoppedClock(NOW + 2 * DAY)) as here:
        assert here.next_offset == 4
        assert here.pending() == (("g", 1, NOW + 3 * DAY),)
        assert [one.status for one in here.resolve(["c", "f", "g"])] == ["void", "active", "pending"]


def test_what_waits_is_found_due_after_opening_again_too(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([document("c", topic="moon"), future()])
    clock = StoppedClock()
    with engine(tmp_path, clock=clock) as here:
        assert here.resolve(["c"])[0].status == "active"
        clock.time += 2 * DAY
        assert here.resolve(["c"])[0].status == "void"


def test_a_waiting_document_can_be_retracted() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as here:
        here.publish([document("c", topic="moon"), future()])
        assert here.retract("f").outcome == "retracted"
        assert here.pending() == ()
        clock.time += 9 * DAY
        assert [one.status for one in here.resolve(["c", "f"])] == ["active", "retracted"]
        assert [told.change.cause.id for told in here.changes()] == ["c"]


def test_a_waiting_document_can_be_corrected_to_another_time() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as here:
        here.publish([document("c", topic="moon"), future(), future(revision=2, days=5)])
        assert here.pending() == (("f", 2, NOW + 5 * DAY),)
        clock.time += 2 * DAY
        assert here.resolve(["c"])[0].status == "active"
        here.publish([future(revision=3, days=1)])
        assert here.pending() == ()
        assert here.resolve(["c"])[0].status == "void"


def test_a_correction_into_the_future_takes_effect_at_once_on_what_it_replaces() -> None:
    with engine() as here:
        here.publish([document("c", topic="moon"), document("d", "denial", at=5, topic="moon")])
        assert here.resolve(["c"])[0].status == "void"
        assert here.publish([future("d", revision=2)]).receipts[0].outcome == "pending"
        assert [one.status for one in here.resolve(["c", "d"])] == ["active", "pending"]
        assert here.query("d").pending == 1


def test_waiting_documents_are_released_in_the_order_of_their_times() -> None:
    clock = StoppedClock()
    with engine(clock=clock) as here:
        here.publish([future(f"f{n}", days=9 - n, kind="claim") for n in range(5)])
        assert [name for name, _, _ in here.pending()] == ["f4", "f3", "f2", "f1", "f0"]
        clock.time += 20 * DAY
        here.publish([document("z", topic="moon")])
        assert [told.change.cause.id for told in here.changes()] == ["f4", "f3", "f2", "f1", "f0", "z"]
        assert {told.change.offset for told in here.changes()} == {5}


def test_a_closed_collection_has_no_present() -> None:
    with engine(future="apply") as here:
        assert [r.outcome for r in here.publish([document("c", topic="moon"), future()]).receipts] == ["accepted"] * 2
        assert here.pending() == ()
        assert [one.status for one in here.resolve(["c", "f"])] == ["void", "active"]
        assert [one.status for one in here.resolve(["c", "f"], as_of=NOW)] == ["active", "pending"]


def test_how_the_future_is_treated_is_part_of_the_generation(tmp_path: Path) -> None:
    with engine(tmp_path) as here:
        here.publish([document("c", topic="moon"), future()])
        waiting = here.generation
        with here.rebuild(ruleset=RULESET, future="apply") as next_one:
            next_one.switch()
        assert here.generation != waiting
        assert here.resolve(["c"])[0].status == "void"
    with engine(tmp_path) as here:
        assert here.resolve(["c"])[0].status == "void"
    with pytest.raises(InvalidRequest, match="built with future=apply"):
        engine(tmp_path, future="wait")


def test_append_times_do_not_go_back_with_the_clock(tmp_path: Path) -> None:
    with engine(tmp_path, clock=StoppedClock(NOW + 2 * DAY)) as here:
        here.publish([document("c", topic="moon")])
    with engine(tmp_path, clock=StoppedClock(NOW)) as here:
        assert here.publish([future()]).receipts[0].outcome == "accepted"
