"""`convert`, `formats` and what `publish --format` does: feeds in their publishers' own formats."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

import click
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

import stream_car
from stream_car.api.json import line
from stream_car.cli import options, summaries
from stream_car.cli.console import emit, err, show, words
from stream_car.cli.summaries import Summary
from stream_car.codec import encode, encode_mapping
from stream_car.core.documents import Document, Retraction
from stream_car.feeds import FORMATS, Format, find_format
from stream_car.ingest import destinations, ingest
from stream_car.ingest.destinations import Destination
from stream_car.ingest.files import STANDARD_INPUT, InputFile, input_files
from stream_car.settings import data_directory

REFUSED = 1
P = ParamSpec("P")
R = TypeVar("R")


def format_option(command: Callable[P, R]) -> Callable[P, R]:
    """`--format NAME`"""
    return click.option(
        "--format",
        "form",
        metavar="NAME",
        help=f"Read a publisher's own format: {', '.join(FORMATS)}.",
    )(command)


@click.command(
    "convert",
    epilog=options.examples(
        "stream-car convert --format osv GO-2024-2527.json",
        "stream-car convert --format csaf advisories/ > documents.jsonl",
        "stream-car convert --format kev known_exploited_vulnerabilities.json | head -1",
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILES|DIRECTORY|-")
@format_option
@options.as_json
def convert(files: Sequence[str], form: str | None, as_json: bool) -> None:
    """Show the documents that a feed becomes; publish nothing.

    One document a line, ready for `stream-car publish`, as if the feed were read for the first time.
    What cannot be read is told on standard error; with --json as a JSON line each. Exit code 1 where there is such.
    """
    asked = chosen(form)
    refused = 0
    for step in ingest.convert(asked, input_files(files, asked.suffixes)):
        if step.rejected is not None:
            refused += 1
            _tell(summaries.refusal(step), as_json=as_json)
        elif step.conversion is not None:
            for said in step.conversion.documents:
                emit(_text(said))
    if refused:
        raise click.exceptions.Exit(REFUSED)


def chosen(name: str | None) -> Format:
    """The format that was asked for; somebody must say which."""
    if name is None:
        raise click.UsageError(f"say which format the feed has: --format {'|'.join(FORMATS)}")
    return find_format(name)


def _text(said: Document | Retraction) -> str:
    if isinstance(said, Document):
        return encode(said).decode()
    revision = {} if said.revision is None else {"revision": said.revision}
    return encode_mapping({"id": said.id, **revision, "retracted": True}).decode()


def _tell(refusal: summaries.Refusal, *, as_json: bool) -> None:
    told = line(refusal) if as_json else f"{refusal.file}, {refusal.where} ({refusal.code}): {refusal.reason}"
    err().print(words(told), soft_wrap=True)


def positions_option(command: Callable[P, R]) -> Callable[P, R]:
    """`--positions DIR`"""
    return click.option(
        "--positions",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Where to remember how far a feed into a service was read.  [default: a folder for its address, "
        "beside the data directory; a data directory itself remembers]",
    )(command)


@contextmanager
def destination(car: "options.Car", positions: Path | None) -> Iterator[Destination]:
    """Where a feed is to go, and is remembered."""
    if isinstance(car, stream_car.Engine):
        if positions is not None:
            raise click.UsageError("--positions goes with --url: a data directory itself remembers how far it was read")
        yield destinations.for_engine(car)
        return
    with destinations.for_service(car, positions or destinations.folder_for(car.url, data_directory())) as found:
        yield found


def publish(
    to: Destination, form: Format, found: Sequence[InputFile], *, growing: bool = False
) -> summaries.FedSummary:
    """Publish what sources say beyond what is known, under a progress bar where somebody watches."""
    feed = summaries.Feed(format=form.name, files=len(found))
    with _progress() as bar:
        total = sum(source.path.stat().st_size for source in found if source.name != STANDARD_INPUT)
        task = bar.add_task(form.name, total=total or None)
        batches = ingest.feed(to, form, found, growing=growing)
        counted = Summary.of(receipt for batch in _watched(batches, feed, bar, task) for receipt in batch.receipts)
    return summaries.FedSummary(feed=feed, published=counted)


def _watched(
    batches: Iterable[ingest.IngestedBatch], feed: summaries.Feed, bar: Progress, task: TaskID
) -> Iterator[ingest.IngestedBatch]:
    done, name, passed = 0, "", 0
    for batch in batches:
        for step in batch.steps:
            feed.add(step)
            if step.file.name != name:
                done, name, passed = done + passed, step.file.name, 0
            passed = max(passed, step.bytes_read)
        bar.update(task, completed=done + passed)
        yield batch


def _progress() -> Progress:
    console = err()
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@click.command(
    "formats",
    epilog=options.examples("stream-car formats", "stream-car formats --json"),
)
@options.as_json
def formats(as_json: bool) -> None:
    """List the publishers' formats that can be read."""
    for one in FORMATS.values():
        if as_json:
            emit(line({"name": one.name, "about": one.about, "suffixes": one.suffixes}))
        else:
            show(Text.assemble((f"{one.name:<10}", "bold"), one.about))


def found_in(form: Format, files: Sequence[str]) -> list[InputFile]:
    """The sources that these names mean."""
    return list(input_files(files, form.suffixes))
