"""`frontier` and `history` as tables of records, limited to types and states."""

from pathlib import Path
from typing import Protocol

import msgspec
import pytest
from click.testing import CliRunner, Result

from stream_car.cli import main

SCOPE = {"cve": ["CVE-2021-44228"], "package": ["log4j-core"]}
ADVISORY = {
    "id": "CVE-2021-44228",
    "type": "advisory",
    "time": "2021-12-10T00:00:00Z",
    "scope": SCOPE,
    "title": "Log4Shell: remote code execution",
}
RELEASE = {
    "id": "log4j-2.15.0",
    "type": "release_note",
    "time": "2021-12-13T00:00:00Z",
    "scope": SCOPE,
    "title": "Log4j 2.15.0",
}


class Run(Protocol):
    """Calls `stream-car` on one directory of data."""

    def __call__(self, *arguments: str, text: str | None = None) -> Result: ...


def lines(*documents: object) -> str:
    return "".join(msgspec.json.encode(document).decode() + "\n" for document in documents)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def invoke(*arguments: str, text: str | None = None) -> Result:
        return CliRunner(env={"STREAM_CAR_DATA": str(tmp_path / "data")}).invoke(main, arguments, input=text)

    return invoke


def table_of(result: Result) -> list[list[str]]:
    lines = result.stdout.splitlines()
    return [[cell for cell in line.strip().split("  ") if cell.strip()] for line in lines if line.strip()[:2] == "20"]


def test_a_frontier_and_a_timeline_are_tables_with_one_line_a_record_by_time(run: Run) -> None:
    record = {"scope": [{"record": "R1"}, *[{"package": ["tea"], "cve": [f"CVE-{n}"]} for n in ("2021-1", "2021-2")]]}
    editions = [
        {"id": f"R1@{day}", "type": "advisory", "time": f"2021-12-0{day}T07:08:09Z", "title": "Tea leaks", **record}
        for day in (1, 2)
    ]
    later = {
        **editions[0],
        "id": "R2",
        "time": "2021-12-05T00:00:00Z",
        "title": "Tea burns",
        "scope": {"package": ["tea"], "cve": ["CVE-2021-3"]},
    }
    assert run("publish", "-", text=lines(*editions, later)).exit_code == 0

    rows = [[cell.strip() for cell in row] for row in table_of(run("frontier", "package=tea"))]
    assert rows == [
        ["2021-12-05", "in force, open", "R2", "Tea burns", "tea"],
        ["2021-12-02", "in force, open", "R1", "Tea leaks", "tea"],
    ]
    rows = [[cell.strip() for cell in row] for row in table_of(run("history", "package=tea"))]
    assert rows == [
        ["2021-12-01", "in force, open", "R1", "Tea leaks", "tea"],
        ["2021-12-05", "in force, open", "R2", "Tea burns", "tea"],
    ]
    assert "1 superseded edition is not shown" in run("history", "package=tea").stdout


def test_changes_are_a_table_limited_to_types_states_and_outcomes(run: Run) -> None:
    short = {"scope": {"cve": ["C1"], "package": ["tea"]}, "title": "Tea"}
    assert (
        run("publish", "-", text=lines({**ADVISORY, **short, "id": "A"}, {**RELEASE, **short, "id": "R"})).exit_code
        == 0
    )
    rows = [[cell.strip() for cell in row] for row in table_of(run("changes"))]
    scope = "package=tea, vulnerability=C1"

    assert rows == [
        ["2021-12-10", "+ A advisory is in force here: open", f"{scope} and 1 more"],
        ["2021-12-13", "- A advisory is fixed by Tea (release-fixes-advisory)", scope],
        ["2021-12-13", "+ R release_note is in force here: fixed", scope],
    ]
    for options, kept in (
        (("--only", "fixed"), [1]),
        (("--state", "ended"), [1]),
        (("--state", "in_force"), [0, 2]),
        (("--state", "open", "--type", "advisory"), [0]),
        (("--material",), [0, 1, 2]),
    ):
        shown = [[cell.strip() for cell in row] for row in table_of(run("changes", *options))]
        assert shown == [rows[at] for at in kept], options
    assert "No change is like that." in run("changes", "--only", "withdrawn").stdout
    unknown = run("changes", "--only", "withdrwn")
    assert (unknown.exit_code, "Did you mean 'withdrawn'?" in unknown.stderr) == (2, True)


def test_a_watch_that_nothing_can_match_says_what_was_probably_meant(run: Run) -> None:
    assert run("publish", "-", text=lines(ADVISORY, RELEASE)).exit_code == 0
    watched = run("watch", "--only", "withdrwn", "--type", "advsory", "--id", "CVE-2021-4428")

    assert "No change has the outcome 'withdrwn'. Did you mean 'withdrawn'?" in watched.stderr
    assert "No rule pack knows the type 'advsory'. Did you mean 'advisory'?" in watched.stderr
    assert "Did you mean 'CVE-2021-44228'?" in watched.stderr
    assert run("watch", "--only", "published,fixed").stderr.count("outcome") == 0


def test_a_table_has_only_the_types_and_states_that_it_is_for(run: Run) -> None:
    assert run("publish", "-", text=lines(ADVISORY, RELEASE)).exit_code == 0
    [ended] = table_of(run("history", "package=log4j-core", "--state", "ended"))
    assert [cell.strip() for cell in ended] == [
        "2021-12-10",
        "2021-12-13",
        "fixed",
        "CVE-2021-44228",
        "Log4Shell: remote code execution",
        "log4j-core",
        "log4j-2.15.0",
    ]
    [notes] = table_of(run("frontier", "package=log4j-core", "--type", "release_note", "--state", "in_force"))
    assert "Log4j 2.15.0" in " ".join(notes)
    assert "CVE-2021-44228 advisory" not in run("changes", "--type", "release_note").stdout
    for command in ("frontier", "history"):
        nothing = run(command, "package=log4j-core", "--state", "withdrawn")
        assert nothing.exit_code == 1
        assert "Omit --type or --state" in nothing.stdout
        unknown = run(command, "package=log4j-core", "--state", "withdrwn")
        assert unknown.exit_code == 2
        assert "Did you mean 'withdrawn'?" in unknown.stderr
