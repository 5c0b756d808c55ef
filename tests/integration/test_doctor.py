"""`doctor` finds what is damaged in a data directory, tells what to do about it, and changes nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import stream_car
from stream_car import Retraction, StreamCarError
from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.system_clock import SystemClock
from stream_car.cli import main
from stream_car.core.documents import Document
from stream_car.local.doctor import examine
from stream_car.local.run_sync import run_sync
from stream_car.ports import IndexedDocument
from stream_car.processing.findings import Finding
from tests.support.damage import change
from tests.support.data_directories import (
    STATEMENTS,
    answers,
    fill,
    flip_index_segment,
    scramble_state,
    wipe_index,
    wipe_state,
)
from tests.support.engines import DAY, RULESET, StoppedClock, built_folder, document, engine
from tests.support.rule_packs import GOOD, written


def statuses(folder: Path) -> dict[str, str]:
    """Return the status of each check, except for free space, which depends on the machine."""
    return {finding.check: finding.status for finding in examine(folder) if finding.check != "disk"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    fill(tmp_path / "data")
    with engine(tmp_path / "data") as car:
        car.publish([Retraction(id="c3"), document("c1", revision=5, topic="mars"), document("f", at=1001)])
    return tmp_path / "data"


def test_an_intact_folder_is_ok_and_left_as_it_was(folder: Path) -> None:
    with engine(folder) as car:
        expected = answers(car)

    assert statuses(folder) == dict.fromkeys(("log", "clock", "rules", "state", "index"), "ok")
    assert [path.name for path in (folder / "built").iterdir()] == ["1"]
    with engine(folder) as car:
        assert answers(car) == expected


def alter_a_value(path: Path) -> None:
    change(built_folder(path) / "state.sqlite", "UPDATE entries SET value = X'00' WHERE key = ?", b"s:topic=sun")


def lose_a_value(path: Path) -> None:
    change(built_folder(path) / "state.sqlite", "DELETE FROM entries WHERE key = ?", b"d:c2")


def add_a_value(path: Path) -> None:
    change(built_folder(path) / "state.sqlite", "INSERT INTO entries VALUES (0, ?, 0, X'00')", b"z")


def lose_a_change(path: Path) -> None:
    change(built_folder(path) / "state.sqlite", "DELETE FROM changes WHERE at = 7")


@pytest.mark.parametrize("harm", [alter_a_value, lose_a_value, add_a_value, lose_a_change, wipe_state, scramble_state])
def test_a_state_that_differs_from_a_replay_is_damaged(harm: Callable[[Path], None], folder: Path) -> None:
    harm(folder)

    assert statuses(folder)["state"] == "damaged"


@pytest.mark.parametrize("harm", [wipe_index, flip_index_segment])
def test_an_index_whose_files_have_changed_is_damaged(harm: Callable[[Path], None], folder: Path) -> None:
    harm(folder)

    assert statuses(folder)["index"] == "damaged"


def test_an_index_without_a_document_is_damaged(folder: Path, tmp_path: Path) -> None:
    with engine(tmp_path / "other") as other:
        other.publish([document(f"x{n}", topic="moon") for n in range(len(STATEMENTS) + 4)])
    wipe_index(folder)
    shutil.copytree(built_folder(tmp_path / "other") / "index", built_folder(folder) / "index")

    assert statuses(folder)["index"] == "damaged"


@pytest.mark.parametrize("extra", [document("c1", revision=5, topic="mars", text="other words"), document("nowhere")])
def test_an_index_with_another_text_or_another_document_is_damaged(extra: Document, folder: Path) -> None:
    index = TantivyIndex(built_folder(folder) / "index")
    run_sync(index.apply([IndexedDocument(document=extra)], [], run_sync(index.position())))
    index.close()

    assert statuses(folder)["index"] == "damaged"


def test_the_cure_for_a_damaged_state_repairs_it(folder: Path) -> None:
    with engine(folder) as car:
        expected = answers(car)
    lose_a_value(folder)
    [damaged] = [finding for finding in examine(folder) if finding.status == "damaged"]
    assert "Remove the folder `built`" in damaged.cure
    shutil.rmtree(folder / "built")
    with engine(folder) as car:
        assert answers(car) == expected
    assert "damaged" not in statuses(folder).values()


def test_a_broken_chain_is_damage_and_nothing_is_compared_with_it(folder: Path) -> None:
    change(folder / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    *_, last = examine(folder)

    assert (last.check, last.status) == ("log", "damaged")
    assert "restore" in last.cure


def test_a_pack_that_has_changed_since_is_a_notice(tmp_path: Path) -> None:
    pack = written(tmp_path, GOOD)
    with stream_car.open(tmp_path / "data", rules=[pack]):
        pass
    assert statuses(tmp_path / "data")["rules"] == "ok"
    written(tmp_path, GOOD.replace('"lower"', '"none"'))
    assert statuses(tmp_path / "data")["rules"] == "notice"
    pack.unlink()
    assert statuses(tmp_path / "data")["rules"] == "notice"


def test_a_copy_of_the_rules_that_is_not_what_the_log_records_is_a_notice(folder: Path) -> None:
    for content in ("{", "{}"):
        (folder / "generation.json").write_text(content)
        assert statuses(folder)["rules"] == "notice"
    (folder / "generation.json").unlink()
    assert statuses(folder)["rules"] == "notice"
    with engine(folder, ruleset=None):
        pass
    assert statuses(folder)["rules"] == "ok"


def test_rules_that_were_altered_in_the_log_are_damage(folder: Path) -> None:
    change(folder / "documents.sqlite", "UPDATE rules SET hash = zeroblob(32)")
    *_, last = examine(folder)

    assert (last.check, last.status) == ("log", "damaged")
    assert "restore" in last.cure


def test_a_log_that_is_gone_is_damage_if_something_was_built_from_it(folder: Path) -> None:
    (folder / "documents.sqlite").unlink()
    [finding] = examine(folder)

    assert (finding.check, finding.status) == ("log", "damaged")
    assert "restore" in finding.cure


def test_an_empty_log_is_damage_and_stays_as_it_is(folder: Path) -> None:
    (folder / "documents.sqlite").write_bytes(b"")

    assert statuses(folder)["log"] == "damaged"
    assert not (folder / "documents.sqlite").stat().st_size


def test_a_log_ahead_of_the_clock_is_a_notice(tmp_path: Path) -> None:
    with engine(tmp_path, clock=StoppedClock(SystemClock().now() + 30 * DAY)) as car:
        car.publish(STATEMENTS)
    findings = {finding.check: finding for finding in examine(tmp_path)}

    assert findings["clock"].status == "notice"
    assert "hours ahead of the clock" in findings["clock"].detail


def test_a_folder_in_use_is_not_examined(folder: Path) -> None:
    with engine(folder, ruleset=RULESET), pytest.raises(StreamCarError, match="is open in process"):
        list(examine(folder))


def test_the_command_reports_to_people_and_to_programs(folder: Path) -> None:
    intact = CliRunner().invoke(main, ["doctor", "--data", str(folder)])
    lose_a_value(folder)
    damaged = CliRunner().invoke(main, ["doctor", "--data", str(folder), "--json"])
    findings = [msgspec.json.decode(line, type=Finding) for line in damaged.stdout.splitlines()]

    assert (intact.exit_code, damaged.exit_code) == (0, 1)
    assert "The hash chain of all " in intact.stdout and " is intact" in intact.stdout
    assert [finding.check for finding in findings if finding.status == "damaged"] == ["state"]


def test_the_command_tells_how_to_check_data_in_use(folder: Path) -> None:
    with engine(folder):
        result = CliRunner().invoke(main, ["doctor", "--data", str(folder)])

    assert result.exit_code == 2
    assert f"stream-car backup COPY --data {folder}, then stream-car doctor --data COPY" in result.stderr
