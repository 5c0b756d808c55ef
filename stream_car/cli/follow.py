"""`follow`: publish what a feed's files say, and go on as they change.

Promise: what was told as published is durable; a second run goes on where the first one stopped. The data
directory is held only while something is published, so that questions can be asked in between.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic

import click
from rich.text import Text

from stream_car.api.json import line
from stream_car.cli import feeds, options, summaries
from stream_car.cli.console import emit, err, show, words
from stream_car.cli.widgets import BAD, FAINT, WARN, counted
from stream_car.errors import Busy, Unavailable
from stream_car.feeds import Format
from stream_car.ingest.files import STANDARD_INPUT, InputFile
from stream_car.ingest.watch import Watch


@click.command(
    "follow",
    epilog=options.examples(
        "stream-car follow --format csaf ./advisories",
        "stream-car follow --format osv history.jsonl --every 0.5",
        "stream-car follow --format osv ./advisories --url http://127.0.0.1:8377",
        "stream-car follow --format kev ./catalogues --idle 60    end when nothing was new for a minute",
    ),
)
@click.argument("files", nargs=-1, required=True, metavar="FILES|DIRECTORY")
@feeds.format_option
@feeds.positions_option
@click.option("--every", type=click.FloatRange(min=0.01), default=1.0, show_default=True, help="Seconds between looks.")
@click.option("--idle", type=click.FloatRange(min=0), help="End when nothing was new for so many seconds.")
@options.asking
def command(
    files: Sequence[str],
    form: str | None,
    positions: Path | None,
    every: float,
    idle: float | None,
    data: Path,
    rules: Sequence[str],
    url: str | None,
    as_json: bool,
) -> None:
    """Watch the files of a feed and publish what is new.

    New files of a directory, changed files, lines that are added: each is published as it comes, until you
    interrupt it. What was read is remembered, so that the next run goes on there. A line that does not end
    yet, and a file that is still being written, are left for later.
    """
    if STANDARD_INPUT in files:
        raise click.BadParameter("standard input cannot be watched; use publish", param_hint="FILES")
    chosen = feeds.chosen(form)
    watch = Watch(chosen, files)

    def opened() -> "options.Car":
        return options.connected(url) or options.engine_over(data, rules)

    pause = threading.Event()
    last = monotonic()
    try:
        while idle is None or monotonic() - last < idle:
            found = watch.changed()
            if found and _publish(chosen, found, watch, opened, positions, as_json=as_json):
                last = monotonic()
            pause.wait(every)
    except KeyboardInterrupt:
        err().print("stopped; the next run goes on here", style=FAINT)


def _publish(
    form: Format,
    found: Sequence[InputFile],
    watch: Watch,
    opened: "Callable[[], options.Car]",
    positions: Path | None,
    *,
    as_json: bool,
) -> bool:
    """Publish these; whether something was new. Where the data are in use or the service is away, later."""
    try:
        with opened() as car, feeds.destination(car, positions) as to:
            said = feeds.publish(to, form, found, growing=True)
    except (Busy, Unavailable) as trouble:
        err().print(words(f"{trouble}; trying again", WARN), soft_wrap=True)
        watch.retry(found)
        return False
    if as_json:
        emit(line(said))
    else:
        show(*_told(said))
    return bool(said.feed.documents or said.feed.refused)


def _told(said: summaries.FedSummary) -> list[Text]:
    """What a round brought, in a line or two."""
    feed, outcomes = said.feed, said.published.outcomes
    if not (feed.documents or feed.refused):
        return [Text(f"nothing new in {counted(feed.files, 'file')}", FAINT)]
    became = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())
    lines = [Text(f"{counted(feed.records, 'record')} of {counted(feed.files, 'file')}: {became or 'nothing new'}")]
    lines += [words(f"  refused: {one.file}, {one.where} ({one.code}): {one.reason}", BAD) for one in feed.refusals]
    return lines
