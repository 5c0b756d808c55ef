"""What a budget buys, on a set of which one knows that more reading finds more."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from benchmarks.paper.__main__ import main
from benchmarks.paper.budgets import Curve, curve, ladder
from benchmarks.paper.lab import Lab
from benchmarks.paper.sets import find_collections
from tests.support.paper_sets import Small

MATTERS = 12


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Matters that a question's words cannot tell apart but by their names, each of them mended."""
    small = Small("cve_disclosed", "A remote attacker overflows a buffer of {name}.", ("product", "cve"))
    for number in range(MATTERS):
        small.add("T1", f"{10000 + number}", f"Was the buffer of {10000 + number} mended?", ("patch_released",))
    path = tmp_path_factory.mktemp("sets")
    small.write(path / "cvepatchqa")
    return path


@pytest.fixture(scope="module")
def budget_curve(data: Path) -> Curve:
    with Lab(data, k=MATTERS) as lab:
        return curve(lab, find_collections(["cvepatchqa"])[0])


def test_budgets_grow_by_ones_twos_and_fives() -> None:
    steps = ladder()

    assert [next(steps) for _ in range(7)] == [1, 2, 5, 10, 20, 50, 100]


def test_a_larger_budget_reads_more_covers_more_and_tells_more(budget_curve: Curve) -> None:
    for figures in (
        [step.keys for step in budget_curve.steps],
        [step.coverage for step in budget_curve.steps],
        [step.recall for step in budget_curve.steps],
        [step.complete.value for step in budget_curve.steps],
    ):
        assert figures == sorted(figures)
        assert figures[0] < figures[-1]


def test_the_first_budget_stops_every_question_and_the_last_one_none(budget_curve: Curve) -> None:
    first, last, without = budget_curve.steps[0], budget_curve.steps[-2], budget_curve.steps[-1]

    assert (first.budget, first.complete.value) == (1, 0.0)
    assert last.complete.value == 1.0
    assert without.budget is None


def test_a_budget_that_stops_nothing_gives_the_answer_without_one(budget_curve: Curve) -> None:
    last, without = budget_curve.steps[-2], budget_curve.steps[-1]

    assert last.recall == without.recall == 1.0
    assert (last.risk, last.trusted, last.coverage) == (without.risk, without.trusted, without.coverage)


def test_whoever_stops_at_once_still_has_the_likeliest_matter(budget_curve: Curve) -> None:
    """The name of the matter is in the question, so the first anchor read is the right one."""
    assert budget_curve.steps[0].risk.value == 0.0
    assert budget_curve.steps[0].recall == pytest.approx(1 / MATTERS)
    assert budget_curve.steps[0].trusted.n == 0


def bench(data: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["answers", "--data", str(data), "--set", "cvepatchqa", *arguments])


def test_a_person_sees_a_step_a_line(data: Path) -> None:
    ran = bench(data, "--curve")

    assert ran.exit_code == 0, ran.output
    lines = [line.split()[0] for line in ran.stdout.splitlines() if line.startswith((" 1 ", " 2 ", " none "))]
    assert lines == ["1", "2", "none"]


def test_a_program_reads_a_curve_a_line(data: Path) -> None:
    (line,) = bench(data, "--curve", "--json").stdout.splitlines()
    steps = json.loads(line)["steps"]

    assert steps[0]["budget"] == 1
    assert steps[-1]["budget"] is None
    assert steps[-1]["risk"]["n"] == MATTERS


def test_a_curve_is_drawn_beside_the_words(data: Path, tmp_path: Path) -> None:
    ran = bench(data, "--curve", "--charts", str(tmp_path))

    assert ran.exit_code == 0, ran.output
    root = ElementTree.parse(tmp_path / "cvepatchqa-budget.svg").getroot()  # noqa: S314 (drawn here)
    description = root.findtext("{http://www.w3.org/2000/svg}desc") or ""
    assert "coverage, as certified from" in description and "risk (Theorem 4) from" in description


def test_a_table_has_no_curve(data: Path) -> None:
    ran = CliRunner().invoke(main, ["answers", "--data", str(data), "--table", "5", "--curve"])

    assert ran.exit_code == 2
    assert "--table uses its own sets" in ran.stderr
