"""`bench answers` as a person and as a program use it, on a set small enough for the gate."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from benchmarks.paper.__main__ import main
from benchmarks.paper.tables import NUMBERS, TABLES
from tests.support.small_set import written


def bench(data: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["answers", "--data", str(data), *arguments])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return written(tmp_path / "sets")


def test_a_person_sees_every_system_the_ceiling_and_what_was_not_run(data: Path) -> None:
    ran = bench(data, "--set", "cvepatchqa", "--failures")

    assert ran.exit_code == 0, ran.output
    for words in ("BM25", "two-stage + RSSG", "Stream-CAR", "oracle (sees gold)", "R anchor", "Proposition 3"):
        assert words in ran.stdout
    assert "dense: not run: needs an encoder" in ran.stdout


def test_a_program_reads_one_report_a_line(data: Path) -> None:
    (line,) = bench(data, "--set", "cvepatchqa", "--json").stdout.splitlines()

    report = json.loads(line)
    assert report["questions"] == 2
    assert {one["system"]: one["scores"]["tca"]["value"] for one in report["lines"]}["Stream-CAR"] == 1.0


def test_charts_are_drawn_beside_the_words(data: Path, tmp_path: Path) -> None:
    ran = bench(data, "--set", "cvepatchqa", "--charts", str(tmp_path / "charts"))

    assert ran.exit_code == 0, ran.output
    drawn = sorted((tmp_path / "charts").iterdir())
    assert [path.name for path in drawn] == ["all.svg", "cvepatchqa-delta.svg", "cvepatchqa-systems.svg"]
    for path in drawn:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")  # noqa: S314 (drawn here)


@pytest.mark.parametrize("number", [10, 12])
def test_a_table_that_cannot_be_run_says_what_it_needs(number: int, data: Path) -> None:
    assert "not run: needs" in bench(data, "--table", str(number)).stdout


def test_every_number_has_a_table() -> None:
    assert set(NUMBERS) == set(TABLES)


def test_a_table_and_a_set_are_not_asked_together(data: Path) -> None:
    ran = bench(data, "--table", "10", "--set", "ghsa")

    assert ran.exit_code == 2
    assert "--table uses its own sets" in ran.stderr
