"""Feeds in their publishers' own formats: `follow`, `convert`, `formats` and `publish --format`.

Promise: what `follow` reports as published is durable, and its next run continues where this one stopped. The data
directory is open only while something is published, so that other commands can use it in between.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import click
from rich.text import Text

import stream_car
from stream_car.api.calls import Calls
from stream_car.api.json import to_json
from stream_car.cli.console import emit, note, progress
from stream_car.cli.options import FOLDER, Session, command, require
from stream_car.cli.summaries import Feed, FeedSummary, RejectedPiece, Summary, draw_round
from stream_car.cli.widgets import WARN, counted
from stream_car.codec import encode_document
from stream_car.core.rules import Ruleset
from stream_car.errors import Busy, DocumentsRejected, Unavailable
from stream_car.feeds import FORMATS, Format, find_format
from stream_car.ingest import destinations, ingest
from stream_car.ingest.destinations import Destination
from stream_car.ingest.files import STANDARD_INPUT, InputFile, input_files
from stream_car.ingest.git_history import GitInput, git_input, opened
from stream_car.ingest.watch import RepositoryWatch, Watch
from stream_car.processing.receipts import Receipt
from stream_car.processing.strict import require_strict
from stream_car.settings import data_directory

format_option = click.option(
    "--format", "form", metavar="NAME", help=f"Read a publisher's own format: {', '.join(FORMATS)}."
)
positions_option = click.option(
    "--positions",
    type=FOLDER,
    metavar="DIR",
    help="With --url: where to remember how far a feed was read.  [default: a folder for this service, beside the "
    "data directory]",
)

git_option = click.option(
    "--git",
    metavar="REPO",
    help="Replay the history of a git repository, a folder here, bare or not. FILES are then paths inside it.",
)


@command("data", "rules", "url")
@click.argument("files", nargs=-1, metavar="FILES|DIRECTORY")
@format_option
@git_option
@positions_option
@click.option(
    "--every", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Seconds between two checks."
)
@click.option("--idle", type=click.FloatRange(min=0), help="Stop if nothing is new for this many seconds.")
def follow(
    session: Session,
    files: Sequence[str],
    form: str | None,
    git: str | None,
    positions: Path | None,
    every: float,
    idle: float | None,
) -> None:
    """Watch the files of a feed and publish what is new.

    New files of a directory, changed files and added lines are published as they appear, until you press Ctrl-C. The
    next run continues where this one stopped. An unfinished line, and a file that is still being written, are left
    for later. With --git, new commits of a repository are published as `git pull` or `git fetch` brings them. Exit code
    1 at the end if a piece could not be read or a document was rejected; the rest is published.

    Examples:
      stream-car follow --format csaf ./advisories
      stream-car follow --format osv history.jsonl --every 0.5
      stream-car follow --format osv ./advisories --url http://127.0.0.1:8377
      stream-car follow --format kev ./catalogues --idle 60    stop if nothing is new for a minute
      stream-car follow --format osv --git ./advisory-database
    """
    if STANDARD_INPUT in files and git is None:
        raise click.BadParameter("Standard input cannot be watched. Use `stream-car publish`.", param_hint="FILES")
    chosen = require_format(form)
    require_files(files, git)
    watch = Watch(chosen, files) if git is None else RepositoryWatch(git_input(git, files))
    pause = threading.Event()
    last, has_rejections = monotonic(), False
    try:
        while idle is None or monotonic() - last < idle:
            changed = watch.changed_files()
            if changed and (summary := _publish_changed(session, chosen, changed, watch, positions)):
                has_rejections |= summary.has_rejections
                if summary.feed.has_news:
                    last = monotonic()
            pause.wait(every)
    except KeyboardInterrupt:
        note("Stopped. The next run continues here.")
    require(not has_rejections)


def _publish_changed(
    session: Session, form: Format, files: Sequence[InputFile], watch: Watch | RepositoryWatch, positions: Path | None
) -> FeedSummary | None:
    """Publish files, and return what came of it. If the data cannot be used now, try again later."""
    try:
        with session.open(create=True) as calls, destination(calls, positions) as target:
            summary = publish(target, form, files, growing=True)
    except (Busy, Unavailable) as error:
        note(f"{error} Trying again.", WARN)
        watch.retry(files)
        return None
    session.report(summary, draw_round)
    return summary


@command()
@click.argument("files", nargs=-1, metavar="FILES|DIRECTORY|-")
@format_option
@git_option
def convert(session: Session, files: Sequence[str], form: str | None, git: str | None) -> None:
    """Show the documents of a feed without publishing them.

    Prints one document per line, ready for `stream-car publish`, as if the feed were read for the first time. Pieces
    that cannot be converted are reported on standard error, with --json as one JSON value per line. Exit code 1 if
    there are any. With --git, every edition that a repository has ever had is a document, in the order of the commits.

    Examples:
      stream-car convert --format osv GO-2024-2527.json
      stream-car convert --format csaf advisories/ > documents.jsonl
      stream-car convert --format kev known_exploited_vulnerabilities.json | head -1
      stream-car convert --format osv --git ./advisory-database advisories > history.jsonl
    """
    chosen = require_format(form)
    require_files(files, git)
    sources = input_files(files, chosen.suffixes) if git is None else [git_input(git, files)]
    is_whole = True
    with progress() as bar:
        task = bar.add_task("commits", total=size_of(sources[0])) if isinstance(sources, list) else None
        for step in ingest.convert(chosen, sources):
            if step.rejected is not None:
                is_whole = False
                piece = RejectedPiece.of(step)
                note(to_json(piece) if session.as_json else str(piece), style="")
            elif step.conversion is not None:
                for document in step.conversion.documents:
                    emit(encode_document(document).decode())
            if task is not None:
                bar.update(task, completed=step.bytes_read)
    require(is_whole)


def require_files(files: Sequence[str], git: str | None) -> None:
    """Require files, unless a repository is named, of which all files may be meant."""
    if not files and git is None:
        raise click.UsageError("Name files or directories, or a repository with --git.")


@command()
def formats(session: Session) -> None:
    """List the feed formats that can be read.

    Examples:
      stream-car formats
      stream-car formats --json
    """
    listed = [{"name": form.name, "about": form.about, "suffixes": form.suffixes} for form in FORMATS.values()]
    session.report_each(listed, lambda form: Text.assemble((f"{form['name']:<10}", "bold"), str(form["about"])))


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
        if positions is None and not folder.exists():
            note(f"How far feeds were read is remembered in {folder}. Choose another folder with --positions.")
        with destinations.for_service(calls, folder) as target:
            yield target
    elif positions is not None:
        raise click.UsageError("--positions needs --url. A data directory remembers by itself how far a feed was read.")
    else:
        yield destinations.for_engine(calls)


def require_strict_feed(calls: Calls, form: Format, files: Sequence[InputFile]) -> None:
    """Raise `DocumentsRejected` unless every piece of a feed can be read, and its documents pass `publish --strict`."""
    documents: list[bytes] = []
    unreadable: list[str] = []
    for step in ingest.convert(form, files):
        if step.rejected is not None:
            unreadable.append(str(RejectedPiece.of(step)))
        elif step.conversion is not None:
            documents += map(encode_document, step.conversion.documents)
    if unreadable:
        pieces = counted(len(unreadable), "piece")
        raise DocumentsRejected(f"Nothing was published: {pieces} of the feed cannot be read.", tuple(unreadable))
    require_strict(documents, Ruleset(calls.rules().packs))


def publish(target: Destination, form: Format, files: Sequence[InputFile], *, growing: bool = False) -> FeedSummary:
    """Publish what is new in the files, and show a progress bar on a terminal."""
    feed = Feed(format=form.name, files=len(files))
    total = sum(map(size_of, files))

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

    with progress(in_bytes=not any(isinstance(file, GitInput) for file in files)) as bar:
        task = bar.add_task(form.name, total=total or None)
        return FeedSummary(feed=feed, published=Summary.of(receipts()))


def size_of(file: InputFile) -> int:
    """Return the size of an input for a progress bar: the commits of a repository, the bytes of a file, else 0."""
    if isinstance(file, GitInput):
        with opened(file) as history:
            return history.count()
    return file.path.stat().st_size if file.path.is_file() else 0
