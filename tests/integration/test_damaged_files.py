"""Whatever happens to one file: the same answers, or an error that names the cure. `make attack` tries much more."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import stream_car
from stream_car.local.doctor import examine
from tests.attack.cases import Case, cases, parse_case
from tests.attack.judge import Judge, prepare
from tests.attack.specimen import Specimen
from tests.attack.table import failures, table
from tests.attack.workers import Worker, fast_folder, judge_all

SEED = 1
FLIPS = 60
CUTS = 20
STEP = 4  # of a long series of questions, one in so many is asked


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="stream-car-attack-", dir=fast_folder()) as folder:
        prepare(Path(folder), step=STEP)
        yield Path(folder)


def test_a_sound_folder_is_found_sound(home: Path) -> None:
    specimen = Specimen(home)
    for number, source in enumerate((specimen.folder, specimen.killed)):
        folder = home / f"sound-{number}"
        shutil.copytree(source, folder)
        with stream_car.open(folder) as car:
            assert car.status().documents > 300
        assert {finding.status for finding in examine(folder)} == {"ok"}


def test_no_damage_of_a_file_goes_unnoticed_or_raises_anything_else(home: Path) -> None:
    planned = cases(SEED, flips=FLIPS, cuts=CUTS, losses=Judge(home, home).losses)
    verdicts = list(judge_all(home, planned, processes=2, step=STEP))

    assert len(verdicts) == len(planned)
    if failed := failures(verdicts):
        pytest.fail("\n".join([*map(str, failed), table(verdicts)]), pytrace=False)


@pytest.mark.parametrize(
    ("program", "outcome"),
    [("import os; os._exit(3)", "CRASH"), ("import sys; sys.stdin.readline(); sys.stdin.readline()", "HANG")],
)
def test_a_process_that_ends_or_hangs_is_a_verdict(program: str, outcome: str, home: Path) -> None:
    worker = Worker(home, 9, STEP, program=("-c", program))
    case = Case("flip", 0, SEED)
    try:
        assert worker.judge(case, timeout_s=20 if outcome == "CRASH" else 0.2).outcome == outcome
        assert worker.judge(case, timeout_s=20 if outcome == "CRASH" else 0.2).outcome == outcome
    finally:
        worker.close()


def test_a_verdict_names_the_command_that_replays_it(home: Path) -> None:
    judge = Judge(home, home / "copy", step=STEP)
    case = parse_case("flip-3", SEED)

    assert case.command == "python -m tests.attack.damage --seed 1 --case flip-3"
    assert judge.attempt(case) == judge.attempt(case)
