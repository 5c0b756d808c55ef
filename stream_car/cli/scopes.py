"""`frontier`, `history`, `changes`, `pending`: what holds in a scope, what held, what changed, what waits."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

import stream_car
from stream_car.api.messages import Waiting
from stream_car.cli import hints as unknown
from stream_car.cli import options, render
from stream_car.cli.console import words
from stream_car.cli.render import told
from stream_car.cli.widgets import day
from stream_car.core.rules import Ruleset
from stream_car.pictures import timeline

NO_SCOPE = "No scope has these values{guess}. See which keys the rules use: stream-car rules show"


@click.command(
    epilog=options.examples(
        "stream-car frontier package=lodash",
        "stream-car frontier vulnerability=CVE-2021-44228 package=log4j-core",
        "stream-car frontier drug=ranitidine --as-of 2019-09-01 --json",
    )
)
@options.scope
@options.as_of
@options.asking
def frontier(
    parts: Mapping[str, str], as_of: int | None, data: Path, rules: Sequence[str], url: str | None, as_json: bool
) -> None:
    """Show what is in force in a scope.

    Every scope that has these values is shown. Members that are void through another scope or a
    link are listed apart, with what voids them. Exit code 1 where no scope has the values.
    """
    with options.opened(data, rules, url) as engine:
        said = engine.frontier(parts, as_of=as_of)
        options.hint_at_rules(engine, is_found=bool(said))
        nothing = "" if said else _no_scope(options.ruleset_of(engine), parts)
    options.answer_each(said, as_json=as_json, draw=render.frontier, nothing=nothing)
    options.end(is_found=bool(said))


@click.command(
    epilog=options.examples(
        "stream-car history drug=ranitidine",
        "stream-car history package=lodash --json",
        "stream-car history drug=ranitidine --svg timeline.svg",
    )
)
@options.scope
@options.svg("the timelines")
@options.asking
def history(
    parts: Mapping[str, str], svg: Path | None, data: Path, rules: Sequence[str], url: str | None, as_json: bool
) -> None:
    """Show the timeline of a scope.

    For every scope that has these values: what held from when to when, and what ended it. Exit code 1
    where no scope has them.
    """
    with options.opened(data, rules, url) as engine:
        said = engine.history(parts)
        options.hint_at_rules(engine, is_found=bool(said))
        nothing = "" if said else _no_scope(options.ruleset_of(engine), parts)
    options.draw_to(svg, lambda: timeline.draw_timelines(said))
    options.answer_each(said, as_json=as_json, draw=render.history, nothing=nothing)
    options.end(is_found=bool(said))


@click.command(
    epilog=options.examples(
        "stream-car changes --limit 20",
        "stream-car changes package=lodash",
        "stream-car changes --after 1200 --json        go on where you stopped",
    )
)
@click.argument("parts", nargs=-1, metavar="[KEY=VALUE...]", callback=options.read_parts)
@click.option("--after", type=click.IntRange(min=0), default=0, help="Only changes behind this number (`oseq`).")
@click.option(
    "--behind",
    default="",
    metavar="POSITION",
    help="Only changes behind this one (`position`): over Kafka and Redis, where each shard counts for itself.",
)
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="At most so many.")
@options.asking
def changes(
    parts: Mapping[str, str],
    after: int,
    behind: str,
    limit: int,
    data: Path,
    rules: Sequence[str],
    url: str | None,
    as_json: bool,
) -> None:
    """List what changed in frontiers, and because of what.

    In order; `--after` goes on behind the last number that you have seen.
    """
    with options.opened(data, rules, url) as engine:
        said = engine.changes(parts or None, after=after, limit=limit, behind=behind)
    options.answer_each(said, as_json=as_json, draw=told, nothing="Nothing has changed there.")


@click.command(epilog=options.examples("stream-car pending", "stream-car pending --json"))
@options.asking
def pending(data: Path, rules: Sequence[str], url: str | None, as_json: bool) -> None:
    """List the documents that wait for their time."""
    with options.opened(data, rules, url) as engine:
        said = _waiting(engine)
    options.answer_each(
        said,
        as_json=as_json,
        draw=lambda item: words(f"{day(item.time)}  {item.id} (revision {item.revision})"),
        nothing="Nothing waits.",
    )


def _waiting(car: "options.Car") -> tuple[Waiting, ...]:
    if isinstance(car, stream_car.Engine):
        return tuple(Waiting(id=name, revision=revision, time=time) for name, revision, time in car.pending())
    return car.pending()


def _no_scope(ruleset: Ruleset, parts: Mapping[str, str]) -> str:
    """That nothing was found; a key that no rule knows gets the one that was probably meant."""
    return NO_SCOPE.format(guess="".join(f": {guess}" for guess in unknown.keys(ruleset, parts)))
