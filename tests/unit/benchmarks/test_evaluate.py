"""`python -m benchmarks.paper eval`: a closed collection, as a run file for a scorer."""

import json
from pathlib import Path

from click.testing import CliRunner

from benchmarks.paper.__main__ import main
from stream_car.cli.main import MODULES

SCOPE = {"cve": ["CVE-2021-44228"], "package": ["log4j-core"]}
ADVISORY = {
    "id": "CVE-2021-44228",
    "type": "advisory",
    "time": "2021-12-10T00:00:00Z",
    "scope": SCOPE,
    "title": "Log4Shell: remote code execution",
}
RELEASE = {"id": "log4j-2.15.0", "type": "release_note", "time": "2035-01-01T00:00:00Z", "scope": SCOPE}


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_an_evaluation_writes_controlling_documents_for_a_scorer(tmp_path: Path) -> None:
    documents, queries, out = (tmp_path / name for name in ("d.jsonl", "q.jsonl", "run.jsonl"))
    documents.write_text(lines(ADVISORY, RELEASE))
    queries.write_text(lines({"id": "q1", "text": "remote code execution", "gold": ["log4j-2.15.0"]}))
    arguments = ["eval", "--documents", documents, "--queries", queries, "--rules", "security", "--out", out]
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])

    assert result.exit_code == 0
    assert out.read_text() == '{"id":"q1","docs":["log4j-2.15.0"]}\n'
    assert "1 query in" in result.stderr


def test_the_program_that_people_install_has_no_benchmarks() -> None:
    assert {"eval", "answers", "bench"}.isdisjoint(MODULES)
