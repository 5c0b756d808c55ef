"""Every command of `stream-car` teaches by example, explains its options, and prints JSON for programs."""

import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from stream_car.cli import main
from stream_car.cli.main import MODULES, iterate_commands
from tests.support.repository import ROOT

COMMANDS = dict(iterate_commands(main))
NAMES = [pytest.param(path, id=" ".join(path)) for path in COMMANDS]
HEAVY = ("aiokafka", "faust", "httpx", "kafka", "redis", "starlette", "tantivy", "uvicorn")


def helped(*path: str) -> str:
    shown = CliRunner().invoke(main, [*path, "--help"])
    assert shown.exit_code == 0
    return shown.stdout


@pytest.mark.parametrize("path", NAMES)
def test_a_command_says_what_it_does_and_gives_an_example(path: tuple[str, ...]) -> None:
    text = helped(*path)
    head, _, examples = text.partition("Examples:")

    assert (COMMANDS[path].help or "").strip()
    assert COMMANDS[path].hidden or f"stream-car {' '.join(path)}" in examples
    assert "Usage:" in head


@pytest.mark.parametrize("path", NAMES)
def test_a_command_prints_json_for_programs(path: tuple[str, ...]) -> None:
    assert "--json" in helped(*path)


@pytest.mark.parametrize("path", NAMES)
def test_an_example_names_only_options_that_exist(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    examples = helped(*path).partition("Examples:")[2]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}

    assert set(re.findall(r"--[a-z-]+", examples)) <= known


@pytest.mark.parametrize("path", NAMES)
def test_every_option_has_a_help_text_that_is_a_sentence(path: tuple[str, ...]) -> None:
    for option in COMMANDS[path].params:
        if isinstance(option, click.Option):
            text = (option.help or "").partition("  [")[0]
            assert re.fullmatch(r"[A-Z`].*[.?)]", text), f"{option.opts}: {text!r}"


def test_the_overview_tells_every_command_in_one_line() -> None:
    overview = helped()

    assert MODULES.keys() - set(overview.split()) == {"up"}
    assert "..." not in overview.partition("Commands:")[2].partition("Examples:")[0]


def test_help_loads_nothing_heavy() -> None:
    program = f"""
import sys
from stream_car.cli import main
for command in ("query", "publish", "frontier", "serve", "worker", "rejected", "status"):
    main([command, "--help"], standalone_mode=False)
print(*sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT)

    assert run.stderr.split() == []


def test_the_old_name_of_serve_still_works_and_names_the_new_one() -> None:
    result = CliRunner().invoke(main, ["up", "--kafka", "localhost:9092"])

    assert result.exit_code == 2
    assert "stream-car query-worker" in result.stderr
    assert "stream-car serve" in helped("up")
