"""`publish` and `retract`: documents from files or a pipe, stored in batches, with a summary.

Promise: what the summary counts as accepted is durable. Cost: one group commit per batch.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import click

from stream_car.api.calls import Calls
from stream_car.cli import feeds, summaries
from stream_car.cli.console import progress
from stream_car.cli.options import Session, command, require
from stream_car.ingest.files import STANDARD_INPUT, input_files, read_documents
from stream_car.processing.receipts import Receipt

BATCH = 2_000


@command("data", "rules", "url", "encoder")
@click.argument("files", nargs=-1, required=True, metavar="FILES...|-")
@feeds.format_option
@feeds.positions_option
@click.option(
    "--strict",
    is_flag=True,
    help="Publish nothing unless each document is valid, joins a scope and has no unknown key. Holds all documents "
    "in memory.",
)
def publish(session: Session, files: Sequence[str], form: str | None, positions: Path | None, strict: bool) -> None:
    """Publish documents from files or a pipe.

    Reads newline-delimited JSON, JSON objects or arrays, and CloudEvents; `-` is standard input. When the summary
    appears, what was accepted is on disk. Publishing the same again changes nothing.

    With --format, reads the format of a publisher, from directories too, and remembers how far each file was read.
    Exit code 1 if a piece could not be read or a document was rejected; the rest is published, unless --strict.

    Examples:
      stream-car publish advisories.jsonl releases.jsonl
      curl -s https://feeds.example/today.jsonl | stream-car publish -
      stream-car publish rulings.json --rules legal --data ./court
      stream-car publish --format osv ./advisories        another format: stream-car formats
      stream-car publish notes.jsonl --rules ./my-rules.toml --json
      stream-car publish notes.jsonl --strict             all or nothing: in a pipeline of your own documents
      stream-car publish notes.jsonl --url http://127.0.0.1:8377
      stream-car publish --format csaf ./advisories --url http://127.0.0.1:8377
    """
    if form is not None:
        chosen = feeds.require_format(form)
        inputs = list(input_files(files, chosen.suffixes))
        with session.open(create=True) as calls:
            if strict:
                feeds.require_strict_feed(calls, chosen, inputs)
            with feeds.destination(calls, positions) as destination:
                summary = feeds.publish(destination, chosen, inputs)
            session.settle(calls)
        session.report(summary, summaries.draw_feed)
        require(not summary.has_rejections)
        return
    _require_files(files)
    with session.open(create=True) as calls:
        documents = chain.from_iterable(map(read_documents, files))
        receipts = _publish_strictly(calls, documents) if strict else _publish(calls, documents)
        published = summaries.Summary.of(receipts)
        session.settle(calls)
    session.report(published, summaries.draw)
    require(not published.rejected)


def _require_files(files: Sequence[str]) -> None:
    for file in files:
        if file != STANDARD_INPUT and not Path(file).is_file():
            cure = "is a directory. Name the format of its files with --format."
            problem = cure if Path(file).is_dir() else "does not exist."
            raise click.BadParameter(f"{file!r} {problem}", param_hint="FILES")


def _publish_strictly(calls: Calls, documents: Iterator[bytes]) -> Sequence[Receipt]:
    return calls.publish(documents, strict=True, on_rejected="ignore").receipts


def _publish(calls: Calls, documents: Iterator[bytes]) -> Iterator[Receipt]:
    """Publish all documents in batches, with a progress bar, and yield their receipts."""
    with progress() as bar:
        task = bar.add_task("publishing", total=None)
        while batch := list(islice(documents, BATCH)):
            yield from calls.publish(batch, on_rejected="ignore").receipts
            bar.advance(task, len(batch))


@command("data", "rules", "url")
@click.argument("name", metavar="ID")
@click.option(
    "--revision",
    type=click.IntRange(min=1),
    help="Retract this revision and all before it.  [default: the one that is stored now]",
)
def retract(session: Session, name: str, revision: int | None) -> None:
    """Retract a document, as if it had never been published.

    What it superseded is in force again. Retracting it once more changes nothing. Exit code 1 if there is no such
    document.

    Examples:
      stream-car retract GHSA-jf85-cpcp-j695
      stream-car retract GHSA-jf85-cpcp-j695 --revision 2    its first two revisions; a later one stays in force
    """
    with session.open() as calls:
        receipt = calls.retract(name, revision)
    session.report(receipt, lambda receipt: summaries.draw(summaries.Summary.of([receipt])))
    require(receipt.outcome not in ("nothing", "rejected"))
