"""`doctor` finds what is wrong with a folder, says what to do about it, and changes nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import stream_car
from stream_car import Retraction, StreamCarError
from stream_car.cli import main
from stream_car.local.doctor import examine
from tests.support.damage import change
from tests.support.engines import RULESET, built, document, engine
from tests.support.rule_packs import GOOD, written
from tests.unit.local.test_engine import SAID, answers, filled, flip_a_segment, scramble_state, wipe_index, wipe_state


def verdicts(folder: Path) -> dict[str, str]:
    return {one.check: one.verdict for one in examine(folder) if one.check != "room"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    filled(tmp_path / "data")
    with engine(tmp_path / "data") as here:
        here.publish([Retraction(id="c3"), document("c1", revision=5, topic="mars"), document("f", at=1001)])
    return tmp_path / "data"


def test_a_sound_folder_is_found_sound_and_left_as_it_was(folder: Path) -> None:
    with engine(folder) as here:
        expected = answers(here)
    found = verdicts(folder)

    assert found == {"rules": "sound", "log": "sound", "state": "sound", "index": "sound"}
    assert [path.name for path in (folder / "built").iterdir()] == ["1"]
    with engine(folder) as here:
        assert answers(here) == expected


def alter_a_value(path: Path) -> None:
    change(built(path) / "state.sqlite", "UPDATE entries SET value = X'00' WHERE key = ?", b"s:topic=sun")


def lose_a_value(path: Path) -> None:
    change(built(path) / "state.sqlite", "DELETE FROM entries WHERE key = ?", b"d:c2")


def add_a_value(path: Path) -> None:
    change(built(path) / "state.sqlite", "INSERT INTO entries VALUES (0, ?, X'00')", b"z")


def lose_a_change(path: Path) -> None:
    change(built(path) / "state.sqlite", "DELETE FROM changes WHERE oseq = 7")


@pytest.mark.parametrize("harm", [alter_a_value, lose_a_value, add_a_value, lose_a_change, wipe_state, scramble_state])
def test_a_state_that_is_not_what_a_replay_gives_is_found(harm: Callable[[Path], None], folder: Path) -> None:
    harm(folder)

    assert verdicts(folder)["state"] == "wrong"


@pytest.mark.parametrize("harm", [wipe_index, flip_a_segment])
def test_an_index_that_is_not_as_it_was_written_is_found(harm: Callable[[Path], None], folder: Path) -> None:
    harm(folder)

    assert verdicts(folder)["index"] == "wrong"


def test_an_index_that_lacks_a_document_is_found(folder: Path, tmp_path: Path) -> None:
    with engine(tmp_path / "other") as other:
        other.publish([document(f"x{n}", topic="moon") for n in range(len(SAID) + 4)])
    wipe_index(folder)
    shutil.copytree(built(tmp_path / "other") / "index", built(folder) / "index")

    assert verdicts(folder)["index"] == "wrong"


def test_what_doctor_advises_for_a_wrong_state_heals_it(folder: Path) -> None:
    with engine(folder) as here:
        expected = answers(here)
    lose_a_value(folder)
    [wrong] = [one for one in examine(folder) if one.verdict == "wrong"]
    assert "remove the folder `built`" in wrong.cure
    shutil.rmtree(folder / "built")
    with engine(folder) as here:
        assert answers(here) == expected
    assert "wrong" not in verdicts(folder).values()


def test_a_broken_chain_is_found_and_nothing_is_judged_by_it(folder: Path) -> None:
    change(folder / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    found = list(examine(folder))

    assert [(one.check, one.verdict) for one in found][-1] == ("log", "wrong")
    assert "restore" in found[-1].cure


def test_a_pack_that_has_changed_since_is_worth_a_notice(tmp_path: Path) -> None:
    pack = written(tmp_path, GOOD)
    with stream_car.open(tmp_path / "data", domains=[pack]):
        pass
    assert verdicts(tmp_path / "data")["rules"] == "sound"
    written(tmp_path, GOOD.replace('"lower"', '"none"'))
    assert verdicts(tmp_path / "data")["rules"] == "notice"
    pack.unlink()
    assert verdicts(tmp_path / "data")["rules"] == "notice"
    (tmp_path / "data" / "generation.json").write_text("{")
    assert verdicts(tmp_path / "data") == {"rules": "wrong", "log": "sound"}


def test_a_folder_in_use_is_not_examined(folder: Path) -> None:
    with engine(folder, ruleset=RULESET), pytest.raises(StreamCarError, match="is open in process"):
        list(examine(folder))


def test_the_command_tells_people_and_programs(folder: Path) -> None:
    sound = CliRunner().invoke(main, ["doctor", "--data", str(folder)])
    lose_a_value(folder)
    wrong = CliRunner().invoke(main, ["doctor", "--data", str(folder), "--json"])
    told = [msgspec.json.decode(line, type=dict[str, str]) for line in wrong.stdout.splitlines()]

    assert (sound.exit_code, wrong.exit_code) == (0, 1)
    assert "every link of their chain holds" in sound.stdout
    assert [one["check"] for one in told if one["verdict"] == "wrong"] == ["state"]
