"""`stream-car rebuild` from end to end, and killed on the way."""

import asyncio
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
from stream_car.queries.answers import Difference, RebuildStatus, StatusCount
from tests.support.contract import PEACE
from tests.support.data_directories import answers
from tests.support.engines import OTHER_RULESET, RULESET, document
from tests.support.http_service import TOKEN, serving
from tests.support.processes.rebuilder import PHASES, fill, generations
from tests.support.repository import ROOT

FACT = '{"id": "f1", "type": "fact", "time": "2024-01-01", "scope": {"subject": "tea"}}\n'


def run(data: Path, *arguments: str, text: str | None = None, token: str | None = None) -> Result:
    environment = {"STREAM_CAR_DATA": str(data), "STREAM_CAR_TOKEN": token}
    return CliRunner(env=environment).invoke(main, arguments, input=text)


def decode(result: Result) -> RebuildStatus:
    assert result.exit_code == 0, result.output
    return msgspec.json.decode(result.stdout, type=RebuildStatus)


def test_a_dry_run_reports_differences_and_changes_nothing_and_a_rebuild_switches(tmp_path: Path) -> None:
    assert run(tmp_path, "publish", "-", "--rules", "legal", text=FACT).exit_code == 1
    compared = decode(run(tmp_path, "rebuild", "--rules", "facts", "--dry-run", "--json"))
    drawn = run(tmp_path, "rebuild", "--rules", "facts", "--dry-run")
    before = run(tmp_path, "explain", "f1")
    switched = decode(run(tmp_path, "rebuild", "--rules", "facts", "--json"))
    after = run(tmp_path, "explain", "f1")

    assert compared.state == "compared"
    assert compared.differences == (Difference(id="f1", before="unknown", after="in_force"),)
    assert compared.counts == (StatusCount(before="unknown", after="in_force", documents=1),)
    assert "1 document: now rejected, then in force" in drawn.stdout
    assert "This was a dry run" in drawn.stdout
    assert (before.exit_code, after.exit_code) == (1, 0)
    assert (switched.state, switched.applied, switched.end) == ("switched", 1, 1)
    with stream_car.open(tmp_path) as engine:
        assert [pack.name for pack in engine.rules().packs] == ["facts"]
        assert (engine.status().documents, engine.status().outcomes.get("rejected", 0)) == (1, 0)


def test_a_difference_names_what_supersedes_the_document(tmp_path: Path) -> None:
    facts = "".join(FACT.replace("f1", f"f{n}").replace("01-01", f"01-0{n}") for n in (1, 2))
    rules = tmp_path / "mine.toml"
    rules.write_text(
        'name = "mine"\n[types]\nfact = "A fact."\n[keys.subject]\n'
        '[[rules]]\nname = "later"\nsuperseding = "fact"\nsuperseded = "fact"\nscope = ["subject"]\n'
    )
    run(tmp_path / "data", "publish", "-", "--rules", "facts", text=facts)
    drawn = run(tmp_path / "data", "rebuild", "--rules", str(rules), "--dry-run")

    assert drawn.exit_code == 0
    assert "then: f2 (later in subject=tea)" in drawn.stdout
    assert "1 document: now in force, then superseded" in drawn.stdout


def test_a_document_whose_pack_is_dropped_would_be_rejected(tmp_path: Path) -> None:
    facts = "".join(FACT.replace('"f1"', f'"f{n}", "value": "{n}"').replace("01-01", f"01-0{n}") for n in (1, 2))
    related = facts.replace('"subject": "tea"', '"subject": "tea", "relation": "price"')
    run(tmp_path, "publish", "-", "--rules", "facts", text=related)
    drawn = run(tmp_path, "rebuild", "--rules", "legal", "--dry-run").stdout

    assert "1 document: now in force, then rejected" in drawn
    assert "1 document: now superseded, then rejected" in drawn
    assert "now: f2" in drawn
    assert "no pack declares the type" in drawn


def test_without_rules_the_same_packs_are_read_again(tmp_path: Path) -> None:
    run(tmp_path, "publish", "-", "--rules", "facts", text=FACT)
    result = run(tmp_path, "rebuild")

    assert result.exit_code == 0
    assert "Built from 1 message of the log, and switched." in result.stdout
    assert "1 document, 0 rejected, by facts" in result.stdout
    assert "No document would change its status" in run(tmp_path, "rebuild", "--dry-run").stdout


def test_a_broken_pack_changes_nothing(tmp_path: Path) -> None:
    run(tmp_path / "data", "publish", "-", "--rules", "facts", text=FACT)
    (tmp_path / "broken.toml").write_text("name = ")
    result = run(tmp_path / "data", "rebuild", "--rules", str(tmp_path / "broken.toml"))

    assert result.exit_code == 2
    assert "broken.toml" in result.stderr
    assert run(tmp_path / "data", "explain", "f1").exit_code == 0


async def test_a_service_is_rebuilt_in_the_same_way_as_a_data_directory(tmp_path: Path) -> None:
    rules = tmp_path / "peace.toml"
    rules.write_text(PEACE)
    async with serving(token=TOKEN) as running:
        running.engine.publish([document("c1", topic="tea"), document("d1", "denial", 1, topic="tea")])

        async def rebuild(*arguments: str) -> Result:
            options = (*arguments, "--rules", str(rules), "--url", running.url)
            return await asyncio.to_thread(run, tmp_path, "rebuild", *options, token=TOKEN)

        compared = decode(await rebuild("--dry-run", "--json"))
        switched = await rebuild()
        status = running.engine.explain("c1").status

    assert compared.counts == (StatusCount(before="superseded", after="in_force", documents=1),)
    assert "2 documents, 0 rejected, by talk" in switched.stdout
    assert status == "in_force"


def test_a_service_that_cannot_rebuild_says_what_to_do_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(client: stream_car.Client, request: object) -> None:
        raise stream_car.Unsupported("Start workers with other rules under another --namespace.")

    monkeypatch.setattr(stream_car.Client, "call", refuse)
    result = run(tmp_path, "rebuild", "--url", "http://127.0.0.1:9")

    assert result.exit_code == 2
    assert "Start workers with other rules under another --namespace." in result.stderr


def count_calls(folder: Path, phase: str, dies_at: int) -> dict[str, int]:
    """Rebuild in a process that dies at this call of the phase (at 0 it survives). Return the calls of each phase.

    Every phase has a first call. The number of calls differs a little from run to run.
    """
    command = [sys.executable, "-m", "tests.support.processes.rebuilder", str(folder), phase, str(dies_at)]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=60, check=False)
    assert process.returncode in {0: (0,), 1: (-signal.SIGKILL,)}.get(dies_at, (0, -signal.SIGKILL))
    return {name: int(calls) for name, calls in map(str.split, process.stdout.splitlines())}


def kill_often(folder: Path, times: int, seed: int) -> None:
    """Kill a rebuilding process this often in every phase, and check that its folder has one of the two rule sets.

    The points of death are drawn from equal parts of the phase without its end, which is not at the same call each
    time. The first point is the first call.
    """
    random = Random(seed)
    expected = {ruleset.digest: fill(folder / ruleset.digest[:6], ruleset) for ruleset in (RULESET, OTHER_RULESET)}
    fill(folder / "killed", RULESET)
    digest_before = OTHER_RULESET.digest
    phases = count_calls(folder / "killed", "", 0)
    assert tuple(phases) == PHASES
    for phase, calls in phases.items():
        for n in range(times):
            count_calls(folder / "killed", phase, 1 + int(0.8 * calls * (n + random.random()) / times) if n else 1)
            with stream_car.open(folder / "killed") as engine:
                digest = engine.directory.ruleset.digest
                assert answers(engine) == expected[digest], f"seed {seed}, {phase}, kill {n}"
                assert generations(folder / "killed") == 1
            if phase != "switching":
                assert (digest != digest_before) == (phase == "closing")
            digest_before = digest


def test_a_rebuild_killed_at_any_point_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    kill_often(tmp_path, times=3, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_rebuild_killed_at_two_hundred_points(seed: int, tmp_path: Path) -> None:
    kill_often(tmp_path, times=5, seed=seed)
