"""Every command of `stream-car` teaches by example, and offers itself to programs."""

import re
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from stream_car.cli import main


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The commands that do something, with the words that call them."""
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from leaves(child, (*path, name))
    else:
        yield path, command


COMMANDS = dict(leaves(main))
NAMES = [pytest.param(path, id=" ".join(path)) for path in COMMANDS]


def helped(*path: str) -> str:
    shown = CliRunner().invoke(main, [*path, "--help"])
    assert shown.exit_code == 0
    return shown.stdout


@pytest.mark.parametrize("path", NAMES)
def test_a_command_says_what_it_is_for_and_gives_an_example(path: tuple[str, ...]) -> None:
    text = helped(*path)
    head, _, examples = text.partition("Examples:")

    assert (COMMANDS[path].help or "").strip()
    assert f"stream-car {' '.join(path)}" in examples
    assert "Usage:" in head


@pytest.mark.parametrize("path", NAMES)
def test_a_command_answers_programs_in_json(path: tuple[str, ...]) -> None:
    assert "--json" in helped(*path)


@pytest.mark.parametrize("path", NAMES)
def test_an_example_names_only_options_that_exist(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    examples = helped(*path).partition("Examples:")[2]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}

    assert set(re.findall(r"--[a-z-]+", examples)) <= known


def test_the_overview_tells_every_command_in_one_line() -> None:
    overview = helped()

    assert set(main.commands) <= set(overview.split())
    assert "..." not in overview.partition("Commands:")[2].partition("Examples:")[0]
