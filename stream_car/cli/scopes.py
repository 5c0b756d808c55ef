"""`frontier`, `history`, `changes` and `pending`: what is in force in a scope, what was, what changed, what waits."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

import click
from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.api.calls import Calls
from stream_car.cli import hints, options, render, render_changes, render_records
from stream_car.cli.console import note, show, words
from stream_car.cli.options import Session, command, require
from stream_car.cli.widgets import WARN
from stream_car.core.rules import Ruleset
from stream_car.pictures.timeline import draw_timelines


@command("data", "rules", "url", "verbose", "attributes")
@options.scope
@options.as_of
@options.types
@options.states
def frontier(
    session: Session,
    scope: Mapping[str, str],
    as_of: datetime | None,
    types: Sequence[str],
    states: Sequence[str],
) -> None:
    """Show what is in force in a scope.

    One line a record, latest first, of every scope that has these values. A record that another scope or a link
    supersedes is listed with what replaced it; `--state in_force` leaves it out. --verbose shows scope by scope, with
    every edition. Exit code 1 if nothing is found.

    Examples:
      stream-car frontier package=lodash
      stream-car frontier package=lodash --state in_force --type advisory
      stream-car frontier vulnerability=CVE-2021-44228 package=log4j-core
      stream-car frontier drug=ranitidine --as-of 2019-09-01 --json
    """
    with session.open() as calls:
        frontiers = calls.frontier(scope, as_of=as_of, types=types, states=states, include=session.include)
        has_members = any(frontier.in_force or frontier.blocked for frontier in frontiers)
        is_filtered = bool(types or states)
        is_empty = not has_members if is_filtered else not frontiers
        advice = _advise(calls, scope, types, states) if is_empty else ""
    if session.as_json or (not is_empty and (session.verbose or not has_members)):
        session.report_each(frontiers, render.frontier)
    else:
        show(advice if is_empty else render_records.frontiers(frontiers))
    require(not is_empty)


@command("data", "rules", "url", "verbose")
@options.scope
@options.types
@options.states
@options.svg("the timelines")
def history(
    session: Session, scope: Mapping[str, str], types: Sequence[str], states: Sequence[str], svg: Path | None
) -> None:
    """Show the timeline of a scope.

    One line a record, oldest first, of every scope that has these values: since when each record is there, until when
    it was in force, and what replaced it. --verbose shows scope by scope, with every edition. Exit code 1 if nothing
    is found.

    Examples:
      stream-car history package=lodash --state ended
      stream-car history drug=ranitidine
      stream-car history package=lodash --json
      stream-car history drug=ranitidine --svg timeline.svg
    """
    with session.open() as calls:
        histories = calls.history(scope, types=types, states=states)
        advice = None if histories else _advise(calls, scope, types, states)
    options.write_svg(svg, lambda: draw_timelines(histories))
    if session.verbose or session.as_json or not histories:
        session.report_each(histories, render.history, if_empty=advice or "")
    else:
        show(render_records.histories(histories))
    require(bool(histories))


def _advise(calls: Calls, scope: Mapping[str, str], types: Sequence[str], states: Sequence[str]) -> RenderableType:
    """Return that no scope was found, and the keys that were probably meant; note why documents may be missing."""
    if (types or states) and calls.history(scope, limit=1):
        return Text("Nothing in these scopes has this type and state. Omit --type or --state to see all.", WARN)
    hints.note_unknown_types(calls)
    problems = hints.unknown_names(Ruleset(calls.rules().packs), keys=scope)
    explained = " ".join(["No scope has these values.", *problems])
    return Lines(words(explained), hints.advise_rules("List the keys of its rules"))


@command("data", "rules", "url", "verbose")
@options.scopes
@options.types
@options.states
@options.only
@click.option("--material", is_flag=True, help="Leave out new editions that change nothing material.")
@click.option("--after", default="", metavar="POSITION", help="List only changes after the one with this `position`.")
@options.since
@options.limit(1000)
def changes(
    session: Session,
    scope: Mapping[str, Sequence[str]],
    types: Sequence[str],
    states: Sequence[str],
    only: Sequence[str],
    material: bool,
    after: str,
    since: datetime | None,
    limit: int,
) -> None:
    """List what entered and left frontiers, when and why.

    One line a document that entered (+) or left (-), oldest first. --verbose shows change by change, with the position
    of each for --after. What became of records is shorter: stream-car watch --since TIME.

    Examples:
      stream-car changes --limit 20
      stream-car changes package=lodash package=axios --only fixed,withdrawn
      stream-car changes --since 2026-08-14 --material --state ended
      stream-car changes --json --after POSITION        continue after a change, by its `position`
    """
    with session.open() as calls:
        listed = calls.changes(
            scope or None,
            types=types,
            states=states,
            only=options.outcomes(only),
            material=material,
            after=after,
            since=since,
            limit=limit + 1,
        )
    shown = listed[:limit]
    if session.verbose or session.as_json or not shown:
        is_filtered = bool(scope or types or states or only or material or after or since)
        nothing = "No change is like that." if is_filtered else "Nothing has changed."
        session.report_each(shown, lambda each: render_changes.change(each, verbose=True), if_empty=nothing)
    else:
        show(render_changes.table(shown))
    if len(listed) > limit:
        note(f"There are more changes. Continue with --after {shown[-1].position}, or raise --limit.", WARN)


@command("data", "rules", "url")
def pending(session: Session) -> None:
    """List the documents that wait for their time.

    Examples:
      stream-car pending
      stream-car pending --json
    """
    with session.open() as calls:
        documents = calls.pending()
    session.report_each(documents, render.pending, if_empty="No document waits for its time.")
