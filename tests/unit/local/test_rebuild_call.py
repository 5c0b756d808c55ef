"""`engine.rebuild`: it waits, reports its progress, changes nothing in a dry run, and can be driven by its status."""

from pathlib import Path

import pytest

import stream_car
from stream_car import Engine, InvalidRequest, InvalidRules, NewDocument, RebuildStatus, StatusCount, StreamCarError
from stream_car.local.rebuild import STOPPED, NewGeneration
from tests.support.data_directories import STATEMENTS, answers
from tests.support.engines import document, engine
from tests.support.rule_packs import GOOD, written

NO_DOUBT = """
name = "talk"
[types]
claim = "Something is claimed."
denial = "It is not so."
doubt = "Perhaps it is."
note = "More about it."
fact = "A fact."
[keys.topic]
[keys.place]
[keys.subject]
[[rules]]
name = "no-doubt"
superseding = "denial"
superseded = "claim"
scope = ["topic"]
"""


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """Other rules as a file; under them no doubt voids a denial, and no fact another."""
    return written(tmp_path, NO_DOUBT, "talk.toml")


def statuses(car: Engine, names: list[str]) -> list[str]:
    return [resolution.status for resolution in car.resolve(names)]


def generations(car: Engine) -> list[str]:
    return sorted(path.name for path in (car.path / "built").iterdir())


def test_a_rebuild_returns_when_the_new_rules_are_in_force(tmp_path: Path, pack: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish(STATEMENTS)
        reports: list[RebuildStatus] = []
        status = car.rebuild(pack, progress=reports.append)

        assert (status.state, status.dry_run) == ("switched", False)
        assert status.applied == status.end == len(STATEMENTS)
        assert [report.state for report in reports] == ["building"]
        assert (reports[0].applied, reports[0].end) == (0, len(STATEMENTS))
        assert statuses(car, ["d1", "f1"]) == ["in_force", "in_force"]
        assert car.rules().packs[0].rules[0].name == "no-doubt"
        assert car.rules().generation == car.status().generation == car.directory.generation
        assert generations(car) == ["2"]
        assert car.rebuild_status() == status


def test_a_long_rebuild_reports_how_far_it_is(tmp_path: Path, pack: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish(document(f"c{n}", topic=str(n)) for n in range(2500))
        applied: list[int] = []
        car.rebuild(pack, progress=lambda status: applied.append(status.applied))

        assert applied == [0, 1000, 2000]


def test_a_dry_run_counts_the_differences_and_changes_nothing(tmp_path: Path, pack: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish([*STATEMENTS, document("late", at=1001, topic="moon")])
        before = answers(car)
        states: list[str] = []
        status = car.rebuild(pack, future="apply", dry_run=True, progress=lambda report: states.append(report.state))

        assert (status.state, status.dry_run) == ("compared", True)
        assert list(dict.fromkeys(states)) == ["building", "comparing"]
        assert set(status.counts) == {
            StatusCount(before="superseded", after="in_force", documents=2),
            StatusCount(before="pending", after="in_force", documents=1),
        }
        assert [difference.id for difference in status.differences] == ["d1", "f1", "late"]
        assert answers(car) == before
        assert generations(car) == ["1"]


def test_without_waiting_a_rebuild_goes_on_while_it_is_asked_for_its_status(tmp_path: Path, pack: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish(document(f"c{n}", topic=str(n)) for n in range(2500))
        assert car.rebuild_status() == RebuildStatus()
        begun = car.rebuild(pack, wait=False)
        assert (begun.state, begun.applied) == ("building", 0)
        with pytest.raises(InvalidRequest, match="Another rebuild is running") as caught:
            car.rebuild(pack)
        assert caught.value.code == "rebuild_running"
        car.publish(document("new", topic="new"))
        states = []
        while (status := car.rebuild_status()).is_running:
            states.append((status.state, status.applied))

        assert states == [("building", 1000), ("building", 2000)]
        assert (status.state, status.applied, status.end) == ("switched", 2501, 2501)


def test_files_are_read_again_by_a_rebuild_without_rules(tmp_path: Path) -> None:
    pack = written(tmp_path, GOOD)
    claim = NewDocument(id="c1", type="claim", time="2024-01-01", scope={"topic": "Tea"})
    with stream_car.open(tmp_path / "data", rules="facts") as car:
        car.rebuild([pack, "facts"])
        assert [receipt.outcome for receipt in car.publish(claim).receipts] == ["accepted"]
        assert car.frontier("topic=tea")
        written(tmp_path, GOOD.replace('"lower"', '"none"'))
        car.rebuild()
        assert car.frontier("topic=Tea")
    with stream_car.open(tmp_path / "data", rules=[pack, "facts"]) as car:
        assert car.frontier("topic=Tea")


def test_rules_that_cannot_be_loaded_begin_no_rebuild(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        with pytest.raises(InvalidRules):
            car.rebuild("no-such-pack")
        with pytest.raises(InvalidRules):
            car.rebuild(written(tmp_path, "name = 5"))

        assert car.rebuild_status() == RebuildStatus()
        assert generations(car) == ["1"]


def test_a_rebuild_that_fails_reports_why_and_leaves_nothing(
    tmp_path: Path, pack: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(rebuild: NewGeneration, limit: int = 0) -> int:
        raise StreamCarError("no room")

    with engine(tmp_path / "data") as car:
        car.publish(STATEMENTS)
        before = answers(car)
        with monkeypatch.context() as patched:
            patched.setattr(NewGeneration, "step", fail)
            with pytest.raises(StreamCarError, match="no room"):
                car.rebuild(pack)
        status = car.rebuild_status()

        assert (status.state, status.detail) == ("failed", "no room")
        assert answers(car) == before
        assert generations(car) == ["1"]
        assert car.rebuild(pack).state == "switched"


def test_closing_the_engine_ends_a_rebuild_and_leaves_nothing(tmp_path: Path, pack: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish(STATEMENTS)
        car.rebuild(pack, wait=False)
        rebuild = car._service.rebuilding._running

    assert generations(car) == ["1"]
    assert (car.rebuild_status().state, car.rebuild_status().detail) == ("failed", STOPPED)
    with pytest.raises(StreamCarError, match="closed"):
        rebuild.projection.header()
    with engine(tmp_path / "data") as car:
        assert statuses(car, ["d1"]) == ["superseded"]
