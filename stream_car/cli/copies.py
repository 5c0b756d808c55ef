"""`backup` and `restore`: a verified copy of what is original, and back."""

from pathlib import Path

import click
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from stream_car.cli import options
from stream_car.cli.console import words
from stream_car.cli.widgets import FAINT, IN_FORCE, counted
from stream_car.local.backup import Copied, copy

FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    "backup",
    epilog=options.examples(
        "stream-car backup ./backups/$(date +%F)",
        "stream-car backup /mnt/elsewhere/advisories --data ./advisories --json",
    ),
)
@click.argument("folder", type=FOLDER)
@options.data
@options.without_url
@options.as_json
def backup(folder: Path, data: Path, url: str | None, as_json: bool) -> None:
    """Copy the data to a new folder, while it is in use.

    The copy holds the log as of one moment, its chain of hashes verified, the rules, and how far feeds were
    read. State and index follow from these and are not copied.
    """
    options.refuse_url(
        url, "a copy is made beside the files, also while a service has them in use: on its machine, with --data"
    )
    said = copy(data, folder)
    options.answer_one(said, as_json=as_json, draw=lambda said: _draw(said, "the first command there"))


@click.command(
    "restore",
    epilog=options.examples(
        "stream-car restore ./backups/2024-05-01",
        "stream-car restore ./backups/2024-05-01 --data ./advisories",
    ),
)
@click.argument("folder", type=FOLDER)
@options.data
@options.without_url
@options.as_json
def restore(folder: Path, data: Path, url: str | None, as_json: bool) -> None:
    """Make the data from a backup.

    Verifies it first, and refuses where there is data already: move that away. The next command builds
    state and index from the log.
    """
    options.refuse_url(
        url, "data is restored before a service begins: restore it on that machine with --data, then: stream-car up"
    )
    said = copy(folder, data)
    options.answer_one(said, as_json=as_json, draw=lambda said: _draw(said, "the next command"))


def _draw(said: Copied, who: str) -> RenderableType:
    return Lines(
        Text(f"✔ {counted(said.records, 'message')}, {said.bytes:,} bytes, verified", IN_FORCE),
        words(said.path),
        Text(f"{who} builds state and index from the log", FAINT),
    )
