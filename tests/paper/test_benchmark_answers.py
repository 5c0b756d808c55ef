"""The paper's benchmarks, dev queries: the command `eval` reaches the figures that were set for it.

The collections are beside the repository, not in it; these tests are skipped without them.
"""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from msgspec import Struct

from benchmarks.paper.evaluate import command
from tests.support.repository import DATA

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the benchmark data are not at {DATA}")


class Figure(Struct, frozen=True):
    """A share, as the scorer prints it."""

    value: float


class Scores(Struct, frozen=True):
    """The scores of some queries."""

    n: int
    tca_thm4: Figure


class Scored(Struct, frozen=True):
    """The scores of a run."""

    missing: int
    all: Scores


def score(folder: str, rules: str, queries: str, out: Path) -> Scored:
    result = CliRunner().invoke(
        command,
        [
            *("--documents", str(DATA / folder / "documents.jsonl")),
            *("--queries", str(DATA / folder / queries)),
            *("--rules", rules, "--k", "5", "--out", str(out)),
        ],
    )
    assert result.exit_code == 0, result.output
    scorer = subprocess.run(
        [sys.executable, str(DATA / "evaluate_run.py"), str(DATA / folder / queries), str(out), "--json"],
        capture_output=True,
        check=True,
    )
    return msgspec.json.decode(scorer.stdout, type=Scored)


@pytest.mark.parametrize(
    ("folder", "rules", "queries", "count", "minimum"),
    [
        ("ghsa", "security", "queries.dev.jsonl", 92, 0.989),  # 91
        ("fda", "medical", "queries.answerable.dev.jsonl", 219, 0.981),  # 215
        ("fda", "medical", "queries.dev.jsonl", 294, 0.77),
        ("finsuperqa", "compliance", "queries.dev.jsonl", 615, 1.0),
        ("finsuperqa_contaminated", "compliance", "queries.dev.jsonl", 615, 0.995),
        ("cvepatchqa", "security", "queries.dev.jsonl", 293, 1.0),
        ("legalprecedentqa", "legal", "queries.dev.jsonl", 277, 1.0),
        ("cvepatchqa_freeform", "security", "queries.dev.jsonl", 134, 0.94),
        ("legalprecedentqa_freeform", "legal", "queries.dev.jsonl", 139, 0.31),
    ],
)
def test_answers_meet_both_conditions_of_theorem_4(
    folder: str, rules: str, queries: str, count: int, minimum: float, tmp_path: Path
) -> None:
    run = score(folder, rules, queries, tmp_path / "run.jsonl")

    assert (run.missing, run.all.n) == (0, count)
    assert run.all.tca_thm4.value >= minimum


def test_the_scorer_rejects_answers_without_rules(tmp_path: Path) -> None:
    """The same figures fail under rules that leave every document in force."""
    pack = tmp_path / "silent.toml"
    pack.write_text('name = "silent"\n[types]\nadvisory = "Void by nothing."\nrelease_note = "Voids nothing."\n')
    run = score("ghsa", str(pack), "queries.dev.jsonl", tmp_path / "run.jsonl")

    assert run.all.tca_thm4.value < 0.975
