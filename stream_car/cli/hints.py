"""The command that a hint advises, told where to look as this one was told."""

import shlex

import click
from rich.text import Text

from stream_car.cli.console import clean

WHERE = ("url", "data", "kafka", "prefix")
COMMANDLINE = click.core.ParameterSource.COMMANDLINE


def again(command: str) -> str:
    """`stream-car COMMAND`, with the options by which the command that runs was told where to look.

    What the environment says holds for the next command too and is left out.
    """
    context = click.get_current_context(silent=True)
    if context is None:
        return f"stream-car {command}"
    typed = [name for name in WHERE if context.get_parameter_source(name) is COMMANDLINE]
    return " ".join(["stream-car", command, *(f"--{name} {shlex.quote(str(context.params[name]))}" for name in typed)])


def advised(said: str, command: str, style: str) -> Text:
    """A hint with a command, never broken within it: it can be copied from a terminal."""
    return Text(clean(f"{said}: {again(command)}"), style, no_wrap=True, overflow="ignore")
