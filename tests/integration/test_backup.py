"""Backups are taken while others write, verified before they count, and never overwrite anything."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

import stream_car
from stream_car import Halted, InvalidRequest
from stream_car.cli import main
from stream_car.local.backup import copy, verified
from stream_car.local.run_sync import at_once
from tests.support.damage import change
from tests.support.engines import document, engine
from tests.support.feeds import published
from tests.support.processes.publisher import said
from tests.support.repository import ROOT
from tests.unit.local.test_engine import SAID, answers


def test_a_restored_backup_gives_the_same_answers(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as here:
        here.publish([*SAID, b"{"])
        expected = answers(here)
        told = copy(tmp_path / "data", tmp_path / "backup")
        here.publish([document("later", topic="moon")])
    copy(tmp_path / "backup", tmp_path / "restored")
    with engine(tmp_path / "restored", ruleset=None) as here:
        assert answers(here) == expected
    assert told.records == len(SAID) + 1
    assert sorted(file.name for file in (tmp_path / "backup").iterdir()) == ["documents.sqlite", "generation.json"]


FEED = "".join(f'{{"id": "OSV-{n}", "modified": "2024-01-02T00:00:00Z"}}\n' for n in range(3))


def test_how_far_feeds_were_read_goes_along(tmp_path: Path) -> None:
    (tmp_path / "feed.jsonl").write_text(FEED)
    with stream_car.open(tmp_path / "data") as here:
        published(here, "osv", [tmp_path / "feed.jsonl"])
        copy(tmp_path / "data", tmp_path / "backup")
    copy(tmp_path / "backup", tmp_path / "restored")
    with stream_car.open(tmp_path / "restored") as here:
        [step] = published(here, "osv", [tmp_path / "feed.jsonl"])

    assert step.unchanged is not None
    assert not list((tmp_path / "backup").glob("*-*"))


def test_a_position_ahead_of_the_log_is_not_carried_along(tmp_path: Path) -> None:
    (tmp_path / "feed.jsonl").write_text(FEED)
    with stream_car.open(tmp_path / "data") as here:
        published(here, "osv", [tmp_path / "feed.jsonl"])
    with stream_car.open(tmp_path / "shorter") as here:
        here.publish([document("first")])
    shutil.copy(tmp_path / "data" / "feeds.sqlite", tmp_path / "shorter")
    copy(tmp_path / "shorter", tmp_path / "backup")
    with stream_car.open(tmp_path / "backup") as here:
        here.publish([document(f"d{n}") for n in range(9)])  # the log grows past what the position named
        steps = published(here, "osv", [tmp_path / "feed.jsonl"])

    assert [step.conversion is not None for step in steps] == [True] * 3


def test_a_backup_taken_while_a_publisher_writes_is_a_beginning_of_the_log(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as here:
        here.publish([document("first")])
        done = threading.Event()

        def back_up() -> None:
            for n in range(5):
                copy(tmp_path / "data", tmp_path / f"backup{n}")
            done.set()

        thread = threading.Thread(target=back_up)
        thread.start()
        n = 0
        while not done.is_set():
            here.publish([document(f"d{n}", topic="moon")])
            n += 1
        thread.join()
        log = at_once(here._log.fetch(0, 0, 1 << 30))
    counts = []
    for at in range(5):
        with engine(tmp_path / f"backup{at}") as copied:
            records = at_once(copied._log.fetch(0, 0, 1 << 30))
            assert records == log[: len(records)]
            counts.append(len(records))
    assert counts == sorted(counts)
    assert counts[-1] > 1


def test_a_broken_chain_is_never_called_a_backup(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as here:
        here.publish(SAID)
    change(tmp_path / "data" / "documents.sqlite", "UPDATE records SET value = X'7B7D' WHERE at = 2")
    with pytest.raises(Halted, match="Record 2"):
        copy(tmp_path / "data", tmp_path / "backup")

    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as here:
        here.publish(SAID)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "letter.txt").write_text("dear")
    with pytest.raises(InvalidRequest, match="nothing is overwritten"):
        copy(tmp_path / "data", tmp_path / "there")
    with pytest.raises(InvalidRequest, match="there is no log"):
        copy(tmp_path / "there", tmp_path / "elsewhere")


def test_a_place_that_cannot_be_made_is_refused_in_words(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as here:
        here.publish(SAID)
    (tmp_path / "file").write_text("dear")
    with pytest.raises(InvalidRequest, match="name another folder"):
        copy(tmp_path / "data", tmp_path / "file" / "backup")


def test_a_backup_killed_at_any_point_is_whole_or_not_there(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as here:
        here.publish(said(n) for n in range(4000))
    random = Random(1)
    program = "import sys; from pathlib import Path; from stream_car.local.backup import copy\n"
    program += "print('ready', flush=True); copy(Path(sys.argv[1]), Path(sys.argv[2]))"
    whole = 0
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
            assert verified(target) == 4000
            whole += 1
    assert whole >= 1


def test_the_commands_back_up_and_restore(tmp_path: Path) -> None:
    fact = '{"id": "f1", "type": "fact", "time": "2024-01-01T00:00:00Z", "scope": {"subject": "tea"}}\n'
    data, backup = str(tmp_path / "data"), str(tmp_path / "backup")
    runner = CliRunner()
    runner.invoke(main, ["publish", "-", "--rules", "facts", "--data", data], input=fact)
    made = runner.invoke(main, ["backup", backup, "--data", data])
    refused = runner.invoke(main, ["restore", backup, "--data", data])
    restored = runner.invoke(main, ["restore", backup, "--data", str(tmp_path / "new"), "--json"])
    examined = runner.invoke(main, ["doctor", "--data", str(tmp_path / "new")])
    asked = runner.invoke(main, ["explain", "f1", "--data", str(tmp_path / "new")])

    assert (made.exit_code, refused.exit_code, restored.exit_code, asked.exit_code) == (0, 2, 0, 0)
    assert (examined.exit_code, "not built yet" in examined.stdout) == (0, True)
    assert "1 message" in made.stdout
    assert "the first command there builds state and index from the log" in made.stdout
    assert "nothing is overwritten" in refused.stderr
