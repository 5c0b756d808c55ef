"""`follow`: publish what is new in the files of a feed, and go on as they change.

Promise: what is reported as published is durable, and the next run continues where this one stopped. The data directory
is open only while something is published, so that other commands can use it in between.
"""

import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic

import click

from stream_car.cli import feeds, summaries
from stream_car.cli.console import note
from stream_car.cli.options import Session, examples, session
from stream_car.cli.widgets import WARN
from stream_car.errors import Busy, Unavailable
from stream_car.feeds import Format
from stream_car.ingest.files import STANDARD_INPUT, InputFile
from stream_car.ingest.watch import Watch


@click.command(
    epilog=examples(
        "stream-car follow --format csaf ./advisories",
        "stream-car follow --format osv history.jsonl --every 0.5",
        "stream-car follow --format osv ./advisories --url http://127.0.0.1:8377",
        "stream-car follow --format kev ./catalogues --idle 60    stop if nothing is new for a minute",
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILES|DIRECTORY")
@feeds.format_option
@feeds.positions_option
@click.option(
    "--every", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Seconds between two checks."
)
@click.option("--idle", type=click.FloatRange(min=0), help="Stop if nothing is new for this many seconds.")
@session("data", "rules", "url")
def follow(
    session: Session, files: Sequence[str], form: str | None, positions: Path | None, every: float, idle: float | None
) -> None:
    """Watch the files of a feed and publish what is new.

    New files of a directory, changed files and added lines are published as they appear, until you press Ctrl-C. The
    next run continues where this one stopped. An unfinished line, and a file that is still being written, are left
    for later.
    """
    if STANDARD_INPUT in files:
        raise click.BadParameter("Standard input cannot be watched. Use `stream-car publish`.", param_hint="FILES")
    chosen = feeds.require_format(form)
    watch = Watch(chosen, files)
    pause = threading.Event()
    last = monotonic()
    try:
        while idle is None or monotonic() - last < idle:
            changed = watch.changed_files()
            if changed and _publish_changed(session, chosen, changed, watch, positions):
                last = monotonic()
            pause.wait(every)
    except KeyboardInterrupt:
        note("Stopped. The next run continues here.")


def _publish_changed(
    session: Session, form: Format, files: Sequence[InputFile], watch: Watch, positions: Path | None
) -> bool:
    """Publish files, and return whether they had something new. If the data cannot be used now, try again later."""
    try:
        with session.open(create=True) as calls, feeds.destination(calls, positions) as destination:
            summary = feeds.publish(destination, form, files, growing=True)
    except (Busy, Unavailable) as error:
        note(f"{error} Trying again.", WARN)
        watch.retry(files)
        return False
    session.report(summary, summaries.draw_round)
    return summary.feed.has_news
