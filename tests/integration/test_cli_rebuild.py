"""`stream-car rebuild` from end to end, and killed half-way."""

import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import msgspec
import pytest
from click.testing import CliRunner, Result

import stream_car
from stream_car.cli import main
from tests.support.engines import OTHER_RULESET, RULESET
from tests.support.processes.rebuilder import PHASES, fill, generations
from tests.support.repository import ROOT
from tests.unit.local.test_engine import answers

FACT = '{"id": "f1", "type": "fact", "time": "2024-01-01T00:00:00Z", "scope": {"subject": "tea"}}\n'


def run(data: Path, *arguments: str, text: str | None = None) -> Result:
    return CliRunner(env={"STREAM_CAR_DATA": str(data)}).invoke(main, arguments, input=text)


def test_a_dry_run_tells_and_changes_nothing_and_a_rebuild_does(tmp_path: Path) -> None:
    assert run(tmp_path, "publish", "-", "--rules", "legal", text=FACT).exit_code == 1
    told = run(tmp_path, "rebuild", "--rules", "facts", "--dry-run", "--json")
    drawn = run(tmp_path, "rebuild", "--rules", "facts", "--dry-run")
    before = run(tmp_path, "explain", "f1")
    rebuilt = run(tmp_path, "rebuild", "--rules", "facts", "--json")
    after = run(tmp_path, "explain", "f1")

    assert msgspec.json.decode(told.stdout, type=dict[str, object]) == {
        "id": "f1", "before": "absent", "after": "active", "why": [],
    }  # fmt: skip
    assert "1 document: absent now, active then" in drawn.stdout
    assert (before.exit_code, after.exit_code) == (1, 0)
    said = msgspec.json.decode(rebuilt.stdout, type=dict[str, object])
    assert (said["packs"], said["records"], said["documents"], said["rejected"]) == (["facts"], 1, 1, 0)


def test_without_rules_the_same_packs_are_read_again(tmp_path: Path) -> None:
    run(tmp_path, "publish", "-", "--rules", "facts", text=FACT)
    rebuilt = run(tmp_path, "rebuild")

    assert rebuilt.exit_code == 0
    assert "1 document, 0 rejected, under facts" in rebuilt.stdout
    assert "every document would stand as it does now" in run(tmp_path, "rebuild", "--dry-run").stdout


def test_a_broken_pack_changes_nothing(tmp_path: Path) -> None:
    run(tmp_path / "data", "publish", "-", "--rules", "facts", text=FACT)
    (tmp_path / "broken.toml").write_text("name = ")
    result = run(tmp_path / "data", "rebuild", "--rules", str(tmp_path / "broken.toml"))

    assert result.exit_code == 2
    assert run(tmp_path / "data", "explain", "f1").exit_code == 0


def rebuilt(folder: Path, phase: str, dies_at: int) -> dict[str, int]:
    """A process rebuilds, and dies at that call of the phase (at 0 it lives); how many calls each phase had.

    Every phase has a first call; where its last is differs a little.
    """
    command = [sys.executable, "-m", "tests.support.processes.rebuilder", str(folder), phase, str(dies_at)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=60, check=False)
    assert ended.returncode in {0: (0,), 1: (-signal.SIGKILL,)}.get(dies_at, (0, -signal.SIGKILL))
    return {name: int(calls) for name, calls in map(str.split, ended.stdout.splitlines())}


def kill_often(folder: Path, times: int, seed: int) -> None:
    """A process that rebuilds dies so often in every phase; the folder is whole, of the one rule set or the other.

    The points are drawn from equal parts of the phase, but for its end, which is not at the same call each time; the
    first is its first call.
    """
    random = Random(seed)
    expected = {ruleset.digest: fill(folder / ruleset.digest[:6], ruleset) for ruleset in (RULESET, OTHER_RULESET)}
    fill(folder / "killed", RULESET)
    stands = OTHER_RULESET.digest
    phases = rebuilt(folder / "killed", "", 0)
    assert tuple(phases) == PHASES
    for phase, calls in phases.items():
        for n in range(times):
            rebuilt(folder / "killed", phase, 1 + int(0.8 * calls * (n + random.random()) / times) if n else 1)
            with stream_car.open(folder / "killed") as engine:
                digest = engine.ruleset.digest
                assert answers(engine) == expected[digest], f"seed {seed}, {phase}, kill {n}"
                assert generations(folder / "killed") == 1
            if phase != "switching":
                assert (digest != stands) == (phase == "closing")
            stands = digest


def test_a_rebuild_killed_at_any_point_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    kill_often(tmp_path, times=3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_rebuild_killed_at_two_hundred_points(seed: int, tmp_path: Path) -> None:
    kill_often(tmp_path, times=5, seed=seed)
