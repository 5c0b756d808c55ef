"""Backups are made while others write, verified before they get their name, and never overwrite anything."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import msgspec
import pytest
from click.testing import CliRunner

import stream_car
from stream_car import Halted, InvalidRequest
from stream_car.cli import main
from stream_car.local.backup import copy, verify
from stream_car.local.run_sync import run_sync
from tests.support.damage import change
from tests.support.data_directories import STATEMENTS, answers
from tests.support.engines import document, engine
from tests.support.feeds import published
from tests.support.processes.publisher import message
from tests.support.repository import ROOT


def test_a_restored_backup_gives_the_same_answers(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish([*STATEMENTS, b"{"])
        expected = answers(car)
        copied = copy(tmp_path / "data", tmp_path / "backup")
        car.publish([document("later", topic="moon")])
    copy(tmp_path / "backup", tmp_path / "restored")
    with engine(tmp_path / "restored", ruleset=None) as car:
        assert answers(car) == expected
    assert copied.records == len(STATEMENTS) + 1
    assert sorted(file.name for file in (tmp_path / "backup").iterdir()) == ["documents.sqlite", "generation.json"]


FEED = "".join(f'{{"id": "OSV-{n}", "modified": "2024-01-02T00:00:00Z"}}\n' for n in range(3))


def test_feed_positions_are_copied(tmp_path: Path) -> None:
    (tmp_path / "feed.jsonl").write_text(FEED)
    with stream_car.open(tmp_path / "data") as car:
        published(car, "osv", [tmp_path / "feed.jsonl"])
        copy(tmp_path / "data", tmp_path / "backup")
    copy(tmp_path / "backup", tmp_path / "restored")
    with stream_car.open(tmp_path / "restored") as car:
        [step] = published(car, "osv", [tmp_path / "feed.jsonl"])

    assert step.unchanged is not None
    assert not list((tmp_path / "backup").glob("*-*"))


def test_a_feed_position_beyond_the_log_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "feed.jsonl").write_text(FEED)
    with stream_car.open(tmp_path / "data") as car:
        published(car, "osv", [tmp_path / "feed.jsonl"])
    with stream_car.open(tmp_path / "shorter") as car:
        car.publish([document("first")])
    shutil.copy(tmp_path / "data" / "feeds.sqlite", tmp_path / "shorter")
    copy(tmp_path / "shorter", tmp_path / "backup")
    with stream_car.open(tmp_path / "backup") as car:
        car.publish([document(f"d{n}") for n in range(9)])  # the log grows past the position
        steps = published(car, "osv", [tmp_path / "feed.jsonl"])

    assert [step.conversion is not None for step in steps] == [True] * 3


def test_a_backup_made_while_a_publisher_writes_is_a_prefix_of_the_log(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish([document("first")])
        done = threading.Event()

        def back_up() -> None:
            for n in range(5):
                copy(tmp_path / "data", tmp_path / f"backup{n}")
            done.set()

        thread = threading.Thread(target=back_up)
        thread.start()
        n = 0
        while not done.is_set():
            car.publish([document(f"d{n}", topic="moon")])
            n += 1
        thread.join()
        log = run_sync(car.directory._log.fetch(0, 0, 1 << 30))
    counts = []
    for at in range(5):
        with engine(tmp_path / f"backup{at}") as copied:
            records = run_sync(copied.directory._log.fetch(0, 0, 1 << 30))
            assert records == log[: len(records)]
            counts.append(len(records))
    assert counts == sorted(counts)
    assert counts[-1] > 1


def test_a_log_with_a_broken_chain_is_not_backed_up(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish(STATEMENTS)
    change(tmp_path / "data" / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    with pytest.raises(Halted, match="Record 2"):
        copy(tmp_path / "data", tmp_path / "backup")

    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish(STATEMENTS)
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "letter.txt").write_text("dear")
    with pytest.raises(InvalidRequest, match="nothing is overwritten"):
        copy(tmp_path / "data", tmp_path / "taken")
    with pytest.raises(InvalidRequest, match="has no log"):
        copy(tmp_path / "taken", tmp_path / "elsewhere")


def test_a_folder_that_cannot_be_created_is_reported_with_a_cure(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish(STATEMENTS)
    (tmp_path / "file").write_text("dear")
    with pytest.raises(InvalidRequest, match="Name another folder"):
        copy(tmp_path / "data", tmp_path / "file" / "backup")


def test_a_backup_killed_at_any_point_is_complete_or_absent(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish(message(n) for n in range(4000))
    random = Random(1)
    program = "import sys; from pathlib import Path; from stream_car.local.backup import copy\n"
    program += "print('ready', flush=True); copy(Path(sys.argv[1]), Path(sys.argv[2]))"
    complete = 0
    for n in range(8):
        target = tmp_path / f"backup{n}"
        command = [sys.executable, "-c", program, str(tmp_path / "data"), str(target)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as child:
            assert child.stdout is not None
            child.stdout.readline()
            try:
                child.wait(random.uniform(0, 0.06) if n < 7 else 60)
            except subprocess.TimeoutExpired:
                child.kill()
        if target.exists():
            assert verify(target) == 4000
            complete += 1
    assert complete >= 1


def test_the_commands_back_up_and_restore(tmp_path: Path) -> None:
    fact = '{"id": "f1", "type": "fact", "time": "2024-01-01T00:00:00Z", "scope": {"subject": "tea"}}\n'
    data, backup = str(tmp_path / "data"), str(tmp_path / "backup")
    runner = CliRunner()
    runner.invoke(main, ["publish", "-", "--rules", "facts", "--data", data], input=fact)
    made = runner.invoke(main, ["backup", backup, "--data", data])
    rejected = runner.invoke(main, ["restore", backup, "--data", data])
    restored = runner.invoke(main, ["restore", backup, "--data", str(tmp_path / "new"), "--json"])
    examined = runner.invoke(main, ["doctor", "--data", str(tmp_path / "new")])
    explained = runner.invoke(main, ["explain", "f1", "--data", str(tmp_path / "new")])

    assert (made.exit_code, rejected.exit_code, restored.exit_code, explained.exit_code) == (0, 2, 0, 0)
    assert (examined.exit_code, "not built yet" in examined.stdout) == (0, True)
    assert "1 message, verified" in made.stdout
    assert "The first command that uses it builds state and index from the log" in made.stdout
    assert "nothing is overwritten" in rejected.stderr


def test_the_command_verifies_a_backup_and_finds_a_broken_chain(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        car.publish(STATEMENTS)
        in_use = CliRunner().invoke(main, ["verify", str(tmp_path / "data")])
    copy(tmp_path / "data", tmp_path / "backup")
    files = sorted((tmp_path / "backup").iterdir())
    intact = CliRunner().invoke(main, ["verify", str(tmp_path / "backup"), "--json"])
    assert sorted((tmp_path / "backup").iterdir()) == files
    change(tmp_path / "backup" / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    broken = CliRunner().invoke(main, ["verify", str(tmp_path / "backup")])
    absent = CliRunner().invoke(main, ["verify", str(tmp_path / "nowhere")])

    assert msgspec.json.decode(intact.stdout) == {"path": str(tmp_path / "backup"), "records": len(STATEMENTS)}
    assert [result.exit_code for result in (in_use, intact, broken, absent)] == [2, 0, 2, 2]
    assert f"stream-car backup COPY --data {tmp_path / 'data'}" in in_use.stderr
    assert "Record 2" in broken.stderr
    assert "has no log" in absent.stderr
