"""`publish`: documents from files or standard input into the engine, in batches, with a summary.

Promise: what the summary calls accepted is durable. Cost: one group commit a batch.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import click
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from stream_car.cli import feeds, options, summaries
from stream_car.cli.console import err
from stream_car.codec import documents_in
from stream_car.feeds import Format, find_format
from stream_car.ingest.files import STANDARD_INPUT, InputFile
from stream_car.processing.receipts import Receipt

BATCH = 2_000
REFUSED = 1


@click.command(
    "publish",
    epilog=options.examples(
        "stream-car publish advisories.jsonl releases.jsonl",
        "curl -s https://feeds.example/today.jsonl | stream-car publish -",
        "stream-car publish rulings.json --rules legal --data ./court",
        "stream-car publish --format osv ./advisories        a publisher's own format: stream-car formats",
        "stream-car publish notes.jsonl --rules ./my-rules.toml --json",
        "stream-car publish notes.jsonl --url http://127.0.0.1:8377",
        "stream-car publish --format csaf ./advisories --url http://127.0.0.1:8377",
    ),
)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    metavar="FILES...|-",
)
@feeds.format_option
@feeds.positions_option
@options.encoder
@options.asking
def command(
    files: Sequence[str],
    form: str | None,
    positions: Path | None,
    encoder: str | None,
    data: Path,
    rules: Sequence[str],
    url: str | None,
    as_json: bool,
) -> None:
    """Publish documents from files or a pipe.

    Newline-delimited JSON, JSON objects or arrays, CloudEvents; `-` is standard input. What was
    accepted is on disk when the summary appears. Publishing the same again changes no answer.
    With --format a publisher's own format, from a directory too; how far each file was
    read is remembered. Exit code 1 where something was rejected; the rest is published all the same.
    """
    if form is None:
        _require_files(files)
    found = feeds.found_in(find_format(form), files) if form is not None else []
    with options.connected(url) or options.engine_over(data, rules, encoder) as engine:
        if form is not None:
            _feed(engine, positions, find_format(form), found, as_json=as_json, encoder=encoder)
            return
        said = summaries.Summary.of(publish_all(engine, _documents(files), what="publishing", total=None))
        options.settle(engine, encoder)
    options.answer_one(said, as_json=as_json, draw=summaries.draw)
    if said.outcomes["rejected"]:
        raise click.exceptions.Exit(REFUSED)


def _feed(
    engine: "options.Car",
    positions: Path | None,
    form: Format,
    found: Sequence[InputFile],
    *,
    as_json: bool,
    encoder: str | None,
) -> None:
    with feeds.destination(engine, positions) as to:
        said = feeds.publish(to, form, found)
    options.settle(engine, encoder)
    options.answer_one(said, as_json=as_json, draw=summaries.draw_feed)
    if said.feed.refused or said.published.outcomes["rejected"]:
        raise click.exceptions.Exit(REFUSED)


def _require_files(files: Sequence[str]) -> None:
    for file in files:
        if file != STANDARD_INPUT and not Path(file).is_file():
            what = "is a directory; say which --format its files have" if Path(file).is_dir() else "does not exist"
            raise click.BadParameter(f"{file!r} {what}", param_hint="FILES")


def publish_all(
    engine: "options.Car", documents: Iterator[bytes], *, what: str, total: int | None
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
