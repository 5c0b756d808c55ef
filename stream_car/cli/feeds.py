"""Feeds in their publishers' own formats: `convert`, `formats` and `publish --format`."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.text import Text

import stream_car
from stream_car.api.json import to_json
from stream_car.cli.console import emit, note, progress, show
from stream_car.cli.options import Session, examples, require, session
from stream_car.cli.summaries import Feed, FeedSummary, RejectedPiece, Summary
from stream_car.codec import encode_document
from stream_car.feeds import FORMATS, Format, find_format
from stream_car.ingest import destinations, ingest
from stream_car.ingest.destinations import Destination
from stream_car.ingest.files import InputFile, input_files
from stream_car.processing.receipts import Receipt
from stream_car.settings import data_directory

format_option = click.option(
    "--format", "form", metavar="NAME", help=f"Read a publisher's own format: {', '.join(FORMATS)}."
)
positions_option = click.option(
    "--positions",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="With --url: where to remember how far a feed was read.  [default: a folder for this service, beside the "
    "data directory]",
)


@click.command(
    epilog=examples(
        "stream-car convert --format osv GO-2024-2527.json",
        "stream-car convert --format csaf advisories/ > documents.jsonl",
        "stream-car convert --format kev known_exploited_vulnerabilities.json | head -1",
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILES|DIRECTORY|-")
@format_option
@session()
def convert(session: Session, files: Sequence[str], form: str | None) -> None:
    """Show the documents of a feed without publishing them.

    Prints one document per line, ready for `stream-car publish`, as if the feed were read for the first time. Pieces
    that cannot be converted are reported on standard error, with --json as one JSON value per line. Exit code 1 if
    there are any.
    """
    chosen = require_format(form)
    is_whole = True
    for step in ingest.convert(chosen, input_files(files, chosen.suffixes)):
        if step.rejected is not None:
            is_whole = False
            piece = RejectedPiece.of(step)
            note(to_json(piece) if session.as_json else str(piece), style="")
        elif step.conversion is not None:
            for document in step.conversion.documents:
                emit(encode_document(document).decode())
    require(is_whole)


@click.command(epilog=examples("stream-car formats", "stream-car formats --json"))
@session()
def formats(session: Session) -> None:
    """List the feed formats that can be read."""
    for form in FORMATS.values():
        if session.as_json:
            emit(to_json({"name": form.name, "about": form.about, "suffixes": form.suffixes}))
        else:
            show(Text.assemble((f"{form.name:<10}", "bold"), form.about))


def found_in(form: Format, names: Sequence[str]) -> list[InputFile]:
    """Return the files that these names refer to."""
    return list(input_files(names, form.suffixes))


def require_format(name: str | None) -> Format:
    """Return the format of that name, which must be given."""
    if name is None:
        raise click.UsageError(f"Name the format of the feed: --format {'|'.join(FORMATS)}")
    return find_format(name)


@contextmanager
def destination(calls: "stream_car.Engine | stream_car.Client", positions: Path | None) -> Iterator[Destination]:
    """Return where a feed is published, and where its positions are kept."""
    if isinstance(calls, stream_car.Client):
        folder = positions or destinations.positions_folder(calls.url, data_directory())
        with destinations.for_service(calls, folder) as target:
            yield target
    elif positions is not None:
        raise click.UsageError("--positions needs --url. A data directory remembers by itself how far a feed was read.")
    else:
        yield destinations.for_engine(calls)


def publish(target: Destination, form: Format, files: Sequence[InputFile], *, growing: bool = False) -> FeedSummary:
    """Publish what is new in the files, and show a progress bar on a terminal."""
    feed = Feed(format=form.name, files=len(files))
    total = sum(file.path.stat().st_size for file in files if file.path.is_file())

    def receipts() -> Iterator[Receipt]:
        name, position, done = "", 0, 0
        for batch in ingest.feed(target, form, files, growing=growing):
            for step in batch.steps:
                feed.add(step)
                start = position if step.file.name == name else 0
                name, position = step.file.name, max(start, step.bytes_read)
                done += position - start
            bar.update(task, completed=done)
            yield from batch.receipts

    with progress(in_bytes=True) as bar:
        task = bar.add_task(form.name, total=total or None)
        return FeedSummary(feed=feed, published=Summary.of(receipts()))
