"""Where the command line writes: answers to standard output, progress and errors to standard error.

Promise: colours only on a terminal and never with NO_COLOR; nothing that a publisher wrote can move
the cursor, change a colour or reverse the text of a terminal.
"""

import sys
from io import TextIOWrapper
from typing import TextIO

import click
from rich.console import Console, RenderableType
from rich.text import Text

PIPED_WIDTH = 120


def out() -> Console:
    """Standard output."""
    return _console(sys.stdout)


def err() -> Console:
    """Standard error."""
    return _console(sys.stderr)


def show(*lines: RenderableType) -> None:
    """For people: each renderable on standard output."""
    console = out()
    for line in lines:
        console.print(line, crop=False)  # an advised command is longer than a line now and then


def emit(text: str) -> None:
    """For programs: one line on standard output, exactly as it is."""
    click.echo(text)


def clean(text: str) -> str:
    """The text on one line, without control characters and without marks that turn its direction."""
    return "".join(char if char.isprintable() else " " for char in text)


def words(text: str, style: str = "") -> Text:
    """What somebody wrote, safe to show."""
    return Text(clean(text), style=style)


def _console(stream: TextIO) -> Console:
    if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="replace")
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width)
