"""`stream-car rejected replay` from end to end: by a file, by lines, by an editor."""

import shlex
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from stream_car.cli import main

GOOD = '{"id": "f1", "type": "fact", "time": "2024-01-01T00:00:00Z", "scope": {"subject": "tea"}}'
BAD = GOOD.replace("2024-01-01", "yesterday")


class Shell:
    """Calls `stream-car` on one directory of data."""

    def __init__(self, data: Path) -> None:
        self.environment = {"STREAM_CAR_DATA": str(data)}

    def __call__(self, *arguments: str, text: str | None = None) -> Result:
        return CliRunner(env=self.environment).invoke(main, ["rejected", *arguments], input=text)


@pytest.fixture
def rejected(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path / "data")
    published = CliRunner(env=shell.environment).invoke(main, ["publish", "-"], input=f"{GOOD}\n{BAD}\n")
    assert published.exit_code == 1
    return shell


def test_what_is_still_wrong_is_shown_and_nothing_is_sent(rejected: Shell) -> None:
    result = rejected("replay")

    assert result.exit_code == 1
    assert "still rejected" in result.stdout
    assert "yesterday" in result.stdout


def test_a_corrected_file_replays_one_input_once(rejected: Shell, tmp_path: Path) -> None:
    corrected = tmp_path / "corrected.json"
    corrected.write_text(GOOD.replace("f1", "f2") + "\n")
    tried = rejected("replay", "1", "--from", str(corrected), "--dry-run")
    sent = rejected("replay", "1", "--from", str(corrected), "--json")
    again = rejected("replay", "1", "--from", str(corrected))

    assert (tried.exit_code, sent.exit_code, again.exit_code) == (0, 0, 0)
    assert "would be sent" in tried.stdout
    replayed = msgspec.json.decode(sent.stdout, type=dict[str, object])
    assert (replayed["offset"], replayed["outcome"], replayed["at"]) == (1, "replayed", 2)
    assert "replayed before" in again.stdout


@pytest.mark.parametrize("is_object", [False, True])
def test_the_lines_that_list_writes_can_be_corrected_and_sent(is_object: bool, rejected: Shell, tmp_path: Path) -> None:
    listed = msgspec.json.decode(rejected("list", "--json").stdout, type=dict[str, object])
    text = str(listed["value"]).replace("yesterday", "2024-02-01").replace("f1", "f2")
    listed["value"] = msgspec.Raw(text.encode()) if is_object else text
    file = tmp_path / "rejected.jsonl"
    file.write_bytes(msgspec.json.encode(listed) + b"\n")
    result = rejected("replay", "--from", str(file), "--json")

    assert result.exit_code == 0
    assert '"accepted"' in result.stdout


def test_an_editor_corrects_one_input(rejected: Shell, tmp_path: Path) -> None:
    program = tmp_path / "correct.py"
    program.write_text(
        "import sys, pathlib\n"
        "file = pathlib.Path(sys.argv[1])\n"
        "file.write_text(file.read_text().replace('yesterday', '2024-02-01').replace('f1', 'f2'))\n"
    )
    rejected.environment["EDITOR"] = rejected.environment["VISUAL"] = shlex.join([sys.executable, str(program)])
    result = rejected("replay", "1", "--edit")

    assert (result.exit_code, "accepted" in result.stdout) == (0, True)


def test_bad_lines_are_an_error_that_says_what_to_do(rejected: Shell, tmp_path: Path) -> None:
    file = tmp_path / "rejected.jsonl"
    file.write_text('{"offset": "one"}\n')
    result = rejected("replay", "--from", str(file))

    assert result.exit_code == 2
    assert "Write lines as" in result.stderr


def test_input_that_was_replayed_stays_listed_with_its_replay(rejected: Shell, tmp_path: Path) -> None:
    before = rejected("list")
    corrected = tmp_path / "corrected.json"
    corrected.write_text(GOOD.replace("f1", "f2"))
    rejected("replay", "1", "--from", str(corrected))

    assert "replayed" not in before.stdout
    assert "as message 2" in rejected("list").stdout
    assert "It was replayed as message 2." in rejected("show", "1").stdout


def test_an_editor_that_fails_is_named_with_the_cure(rejected: Shell) -> None:
    rejected.environment["EDITOR"] = rejected.environment["VISUAL"] = "false"
    result = rejected("replay", "1", "--edit")

    assert result.exit_code == 2
    assert "Set $EDITOR to an editor" in result.stderr
