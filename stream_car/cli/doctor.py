"""`doctor`: what is wrong with the data, and what to do about it."""

from pathlib import Path

import click
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from stream_car.api.json import line
from stream_car.cli import options
from stream_car.cli.console import emit, show, words
from stream_car.cli.hints import again
from stream_car.cli.publish import progress
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, WARN
from stream_car.errors import Busy, StreamCarError
from stream_car.local.doctor import Finding, examine

MARKS = {"sound": ("✔", IN_FORCE), "notice": ("•", WARN), "wrong": ("✘", BAD)}
IN_USE = (
    "{who}; stop it and look at its folder with --data, or look at a copy, which can be made while it runs: "
    "{backup}, then stream-car doctor --data COPY"
)


@click.command(
    "doctor",
    epilog=options.examples(
        "stream-car doctor",
        "stream-car doctor --data ./advisories --json | jq 'select(.verdict == \"wrong\")'",
    ),
)
@options.data
@options.without_url
@options.as_json
def command(data: Path, url: str | None, as_json: bool) -> None:
    """Check the data, and say what to do.

    Rules, the chain of the log, the state against a replay of the whole log, the index against both.
    Changes nothing; the data must not be in use. Exit code 1 where something is wrong.
    """
    backup = "stream-car backup COPY --data FOLDER"
    options.refuse_url(url, IN_USE.format(who="a service has its files in use", backup=backup))
    try:
        options.end(is_found=_examined(data, as_json=as_json))
    except Busy as busy:
        raise StreamCarError(IN_USE.format(who=busy.reason, backup=again("backup COPY"))) from busy


def _examined(data: Path, *, as_json: bool) -> bool:
    """Tell every finding; whether nothing is wrong."""
    is_sound = True
    with progress() as bar:
        task = bar.add_task("replaying the log", total=None)
        for finding in examine(data, lambda done, total: bar.update(task, completed=done, total=total)):
            is_sound &= finding.verdict != "wrong"
            if as_json:
                emit(line(finding))
            else:
                show(_draw(finding))
    return is_sound


def _draw(finding: Finding) -> RenderableType:
    mark, style = MARKS[finding.verdict]
    said = Text.assemble((f"{mark} {finding.check}: ", style), words(finding.said))
    return Lines(said, words(f"    {finding.cure}", FAINT)) if finding.cure else said
