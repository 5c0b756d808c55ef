"""Where the command line writes: answers to standard output, progress and errors to standard error.

Promise: colours appear only on a terminal and never with NO_COLOR. Nothing that a publisher wrote can move the cursor,
change a colour or reverse the direction of text in a terminal.
"""

import json
import sys
from io import TextIOWrapper
from typing import TextIO

import click
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

PIPED_WIDTH = 120


def out() -> Console:
    """Return standard output."""
    return _console(sys.stdout)


def err() -> Console:
    """Return standard error."""
    return _console(sys.stderr)


def show(*lines: RenderableType) -> None:
    """Print for people on standard output."""
    console = out()
    for line in lines:
        console.print(line, crop=False)  # a suggested command may be longer than a line


def note(text: Text | str, style: str = "dim") -> None:
    """Print a remark for people on standard error."""
    err().print(words(text, style) if isinstance(text, str) else text, soft_wrap=True)


def emit(text: str) -> None:
    """Print a line of JSON on standard output. On a terminal, characters that it might obey or hide are escaped."""
    click.echo(escaped(text) if sys.stdout.isatty() else text)


def escaped(text: str) -> str:
    """Return a line in which JSON's escapes stand for invisible characters, outside ASCII as units of UTF-16."""
    return text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def words(text: str, style: str = "") -> Text:
    """Return text of others, safe to show: one line, without control characters or marks that reverse its direction."""
    return Text("".join(char if char.isprintable() else " " for char in text), style=style)


def progress(*, in_bytes: bool = False) -> Progress:
    """Return a progress bar on standard error; only a terminal shows it."""
    console = err()
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn() if in_bytes else MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _console(stream: TextIO) -> Console:
    if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="replace")
    width = None if stream.isatty() else PIPED_WIDTH
    return Console(file=stream, highlight=False, markup=False, emoji=False, width=width)
