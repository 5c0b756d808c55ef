"""`publish`: documents from files or standard input into the engine, in batches, with a summary.

Promise: what the summary calls accepted is durable. Cost: one group commit a batch.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

import stream_car
from stream_car.cli import options, summary
from stream_car.cli.console import err
from stream_car.cli.misspelt import Misspellings
from stream_car.codec import documents_in
from stream_car.engine.answers import Receipt

BATCH = 2_000
STANDARD_INPUT = "-"
REFUSED = 1


@click.command(
    "publish",
    epilog=options.examples(
        "stream-car publish advisories.jsonl releases.jsonl",
        "curl -s https://feeds.example/today.jsonl | stream-car publish -",
        "stream-car publish rulings.json --rules legal --data ./court",
        "stream-car publish notes.jsonl --rules ./my-rules.toml --json",
    ),
)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILES...|-",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
)
@options.reading
def command(files: Sequence[str], data: Path, rules: Sequence[str], as_json: bool) -> None:
    """Publish documents from files or a pipe.

    Newline-delimited JSON, JSON objects or arrays, CloudEvents; `-` is standard input. What was
    accepted is on disk when the summary appears. Publishing the same again changes no answer.
    Exit code 1 where something was rejected; the rest is published all the same.
    """
    with options.engine_over(data, rules) as engine:
        spelling = Misspellings(engine.ruleset)
        documents = spelling.passing(_documents(files))
        said = summary.Summary.of(publish_all(engine, documents, what="publishing", total=None))
        said.misspelt = spelling.found()
    options.answer_one(said, as_json=as_json, draw=summary.draw)
    if said.outcomes["rejected"]:
        raise click.exceptions.Exit(REFUSED)


def publish_all(
    engine: stream_car.Engine, documents: Iterator[bytes], *, what: str, total: int | None
) -> Iterator[Receipt]:
    """The receipts of all documents, published in batches under a progress bar where somebody watches."""
    with progress() as bar:
        task = bar.add_task(what, total=total)
        while batch := list(islice(documents, BATCH)):
            yield from engine.publish(batch).receipts
            bar.advance(task, len(batch))


def progress() -> Progress:
    """A progress bar on standard error that only a terminal shows."""
    console = err()
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def _documents(files: Sequence[str]) -> Iterator[bytes]:
    for file in files:
        if file == STANDARD_INPUT:
            yield from documents_in(sys.stdin.buffer)
        else:
            with Path(file).open("rb") as stream:
                yield from documents_in(stream)
