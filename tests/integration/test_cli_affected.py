"""`stream-car affected`: what people see, what pipelines get, and the exit codes."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from stream_car.cli import main

RECORD = {
    "id": "GHSA-1",
    "aliases": ["CVE-2024-1111"],
    "modified": "2024-02-01T00:00:00Z",
    "summary": "Prototype pollution",
    "affected": [
        {
            "package": {"ecosystem": "npm", "name": "lodash"},
            "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "4.17.12"}]}],
        }
    ],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "feed.json").write_text(json.dumps(RECORD))
    result = CliRunner().invoke(
        main, ["publish", "--format", "osv", "--data", str(tmp_path / "data"), str(tmp_path / "feed.json")]
    )
    assert result.exit_code == 0
    return tmp_path / "data"


def affected(data: Path, *arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["affected", "--data", str(data), *map(str, arguments)])


def test_an_affected_version_is_told_with_its_fix_and_fails(data: Path) -> None:
    result = affected(data, "lodash@4.17.4")

    assert result.exit_code == 1
    for text in ("affected", "CVE-2024-1111", "Prototype pollution", "< 4.17.12", "fixed in 4.17.12"):
        assert text in result.output
    assert result.output.rstrip().endswith("1 of 1 package is affected by 1 vulnerability.")


def test_a_version_that_is_not_affected_passes(data: Path) -> None:
    result = affected(data, "lodash@4.17.12", "lodash@4.18.0")

    assert (result.exit_code, result.output) == (0, "None of 2 packages is affected.\n")
    assert "4.17.12" in affected(data, "lodash@4.17.12", "--all").output


def test_a_withdrawn_record_is_not_labelled_affected(data: Path, tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps({**RECORD, "id": "GHSA-9", "withdrawn": "2024-03-01T00:00:00Z"}))
    arguments = ["publish", "--format", "osv", "--data", str(data), str(tmp_path / "w.json")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    lines = affected(data, "lodash@4.17.4", "--all").output.splitlines()

    [head] = [line for line in lines if "GHSA-9" in line and "CVE-2024-1111" in line]
    assert head.split()[0] == "withdrawn"


def test_what_is_unknown_fails_only_if_that_is_wanted(data: Path) -> None:
    assert affected(data, "lodash").exit_code == 0
    assert "give a version to tell" in affected(data, "lodash").output
    assert affected(data, "lodash", "--strict").exit_code == 1


@pytest.mark.parametrize("name", ["lodahs@4.17.4", "pkg:pypi/lodash@4.17.4", "org:lodash@4.17.4"])
def test_a_package_that_no_record_names_is_not_called_clean(data: Path, name: str) -> None:
    result = affected(data, name)

    assert result.exit_code == 0
    assert f"{name}  no record names it" in result.output
    assert "not affected" not in result.output
    assert json.loads(affected(data, name, "--json").output)["status"] == "no_record"
    assert affected(data, name, "--strict").exit_code == 1


def test_packages_of_a_lockfile_that_no_record_names_are_counted_in_one_line(data: Path, tmp_path: Path) -> None:
    lockfile = tmp_path / "requirements.txt"
    lockfile.write_text("\n".join(f"clean{number}==1.0" for number in range(9)))
    result = affected(data, "lodash@4.18.0", "--lockfile", lockfile)

    assert (result.exit_code, result.output) == (0, "None of 10 packages is affected. No record names 9 of them.\n")
    alone = affected(data, "--lockfile", lockfile, "--strict")
    assert (alone.exit_code, alone.output) == (1, "No record names any of them: nothing is known of 9 packages.\n")


def test_a_package_whose_records_have_no_history_is_unknown_as_of_then(data: Path, tmp_path: Path) -> None:
    feed = tmp_path / "later.json"
    feed.write_text(json.dumps({**RECORD, "id": "GHSA-2", "published": "2020-01-01T00:00:00Z"}))
    arguments = ["publish", "--format", "osv", "--data", str(data), str(feed)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    then = affected(data, "lodash@4.17.4", "--as-of", "2021-01-01")

    assert (then.exit_code, "history_unknown" in then.output) == (0, True)
    assert "lodash@4.17.4  unknown" in then.output
    assert affected(data, "lodash@4.17.4", "--as-of", "2021-01-01", "--strict").exit_code == 1
    other = json.loads(affected(data, "left-pad@1.0", "--as-of", "2021-01-01", "--json").output)
    assert (other["status"], other.get("reasons", [])) == ("no_record", [])


@pytest.mark.parametrize("arguments", [(), ("pkg:",), ("--lockfile", "nowhere.lock")])
def test_what_cannot_be_found_out_is_an_error(data: Path, arguments: tuple[str, ...]) -> None:
    assert affected(data, *arguments).exit_code == 2


def test_a_lockfile_is_read_and_reported_as_json_sarif_and_openvex(data: Path, tmp_path: Path) -> None:
    lockfile, findings, statements = tmp_path / "package-lock.json", tmp_path / "x.sarif", tmp_path / "x.vex"
    packages = {"node_modules/lodash": {"version": "4.17.4"}, "node_modules/left-pad": {"version": "1.0.0"}}
    lockfile.write_text(json.dumps({"name": "shop", "version": "1", "lockfileVersion": 3, "packages": packages}))
    result = affected(data, "--lockfile", lockfile, "--json", "--sarif", findings, "--openvex", statements)
    lines = [json.loads(line) for line in result.output.splitlines()]

    assert result.exit_code == 1
    assert [(line["package"], line["status"]) for line in lines] == [
        ("pkg:npm/lodash@4.17.4", "affected"),
        ("pkg:npm/left-pad@1.0.0", "no_record"),
    ]
    [log] = json.loads(findings.read_text())["runs"]
    assert [each["ruleId"] for each in log["results"]] == ["CVE-2024-1111"]
    [statement] = json.loads(statements.read_text())["statements"]
    assert statement["status"] == "affected"
