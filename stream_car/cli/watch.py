"""`watch`: what becomes of records, as it happens.

Promise: with a cursor file, nothing is missed between two runs, however the first one ended. What was printed last may
be printed twice.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import get_args

import click
from msgspec.structs import replace
from rich.text import Text

from stream_car.api import arguments
from stream_car.api.calls import Calls
from stream_car.api.json import to_json
from stream_car.cli import hints, options, render_changes
from stream_car.cli.console import emit, note, show
from stream_car.cli.options import EXISTING_FILE, FILE, Session, command
from stream_car.cli.webhooks import send_to_webhook, webhook_options
from stream_car.cli.widgets import WARN
from stream_car.core.rules import Ruleset
from stream_car.lockfiles.formats import read_dependencies
from stream_car.queries.queries import PACKAGE
from stream_car.subscriptions import events as e
from stream_car.subscriptions.cursor import Cursor
from stream_car.versions.packages import lookup_names, parse_package

IS_ALL = (
    "These are all changes so far. Nobody else can publish to a data directory while a command has it open. "
    "To watch new changes, run {serve}, then: stream-car watch --url http://127.0.0.1:8377"
)


@command("data", "rules", "url", "attributes")
@options.scopes
@click.option(
    "--lockfile",
    "lockfiles",
    type=EXISTING_FILE,
    multiple=True,
    help="The packages of a lockfile or a bill of materials, by name, as in `affected`; may be repeated.",
)
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this document or record; may be repeated.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only documents of this type; may be repeated.")
@click.option("--pack", "packs", multiple=True, metavar="PACK", help="Only types of this rule pack; may be repeated.")
@click.option(
    "--view",
    type=click.Choice(get_args(e.View)),
    default="record",
    show_default=True,
    help="Show changes of records, of documents, or of scopes.",
)
@options.only
@click.option(
    "--material/--all",
    default=None,
    help="Leave out new editions that change nothing material, or show them too.  [default: --material for records]",
)
@options.since
@click.option("--snapshot", is_flag=True, help="Show what is in force first.")
@click.option(
    "--cursor", "cursor_file", type=FILE, help="Remember in this file what has been shown, and continue from there."
)
@click.option("--limit", type=click.IntRange(min=1), help="Stop after this many changes.")
@webhook_options
def watch(
    session: Session,
    scope: Mapping[str, Sequence[str]],
    lockfiles: Sequence[Path],
    ids: Sequence[str],
    types: Sequence[str],
    packs: Sequence[str],
    view: e.View,
    only: Sequence[str],
    material: bool | None,
    since: datetime | None,
    snapshot: bool,
    cursor_file: Path | None,
    limit: int | None,
    webhook: str | None,
    webhook_secret_file: str | None,
    webhook_allow: Sequence[str],
    outbox: Path,
) -> None:
    """Show what becomes of records, as it happens.

    Prints one line per record and change until you press Ctrl-C: when, what became of it, and the document to read.
    New editions that change nothing material are left out. With several values for a key, any of them counts. Over a
    data directory, without a service, it shows the changes so far and ends.

    Examples:
      stream-car watch --url http://127.0.0.1:8377                  every change, from now on
      stream-car watch --url URL package=lodash package=axios       of these packages
      stream-car watch --url URL --lockfile package-lock.json       of all packages in a lockfile
      stream-car watch --url URL --only withdrawn,fixed --cursor seen.txt   continue where the last run ended
      stream-car watch --since 2026-08-14 package=lodash            what has changed since then
      stream-car watch --url URL --view document --type advisory    each document that changes
      stream-car watch --url URL package=lodash --webhook https://example.org/hook   send them there
    """
    if lockfiles:
        scope = {**scope, PACKAGE: [*scope.get(PACKAGE, ()), *_package_names(lockfiles)]}
    with session.open() as calls, suppress(KeyboardInterrupt):
        outcomes = options.outcomes(only)
        if types or packs or scope or outcomes:
            ruleset = Ruleset(calls.rules().packs)
            for problem in hints.unknown_names(ruleset, types=types, packs=packs, keys=scope, outcomes=outcomes):
                note(f"{problem} Nothing matches it under these rules.", WARN)
        if ids:
            hints.note_unknown_ids(calls, ids)
        subscribe = partial(
            calls.subscribe,
            view=view,
            ids=ids,
            types=types,
            rules=packs,
            scope=scope or None,
            only=outcomes,
            material=material,
            since=since,
            include=session.include,
            snapshot=snapshot,
        )
        events = subscribe(cursor_file=cursor_file)
        if webhook is not None:
            send_to_webhook(
                session,
                events.request,
                url=webhook,
                secret_file=webhook_secret_file,
                allow=webhook_allow,
                outbox=outbox,
            )
            return
        if session.is_remote:
            if sys.stderr.isatty():
                note(f"Watching {session.url}. Press Ctrl-C to stop.")
        elif events.cursor is None and not snapshot and since is None:
            events = subscribe(after=_first_cursor(calls), cursor_file=cursor_file)
        if since is not None:
            _note_lost_changes(calls)
        with events:
            count = _print(events, limit, session)
            events.keep()
        if not session.is_remote and count != limit and since is None:
            note(IS_ALL.format(serve=hints.again("serve")))


def _package_names(lockfiles: Sequence[Path]) -> Sequence[str]:
    """Return the names under which documents may list the packages of lockfiles."""
    packages = read_dependencies(arguments.dependency_files(lockfiles)).packages
    return list(dict.fromkeys(name for package in packages for name in lookup_names(parse_package(package))))


def _note_lost_changes(calls: Calls) -> None:
    """Say so if the first changes are not kept any more."""
    if (first := calls.status().changes_from) > 1:
        note(f"The first {first - 1:,} changes are not kept any more, so earlier ones may be missing.", WARN)


def _first_cursor(calls: Calls) -> str:
    """Return the cursor before the first change that is kept."""
    status = calls.status()
    return str(replace(Cursor.parse(status.cursor), numbers=(status.changes_from - 1,)))


def _print(events: Iterable[e.Event], limit: int | None, session: Session) -> int:
    """Print events, and return how many changes there were.

    What becomes of a document arrives once for each of its scopes, and is shown to people once per cause.
    """
    changes, cause, shown = 0, None, set[str]()
    for event in events:
        if session.as_json:
            emit(to_json(event))
        elif (drawn := render_changes.event(event)) is not None:
            if isinstance(event, e.DocumentChange) and isinstance(drawn, Text):
                if event.cause != cause:
                    cause, shown = event.cause, set()
                if drawn.plain in shown:
                    continue
                shown.add(drawn.plain)
            show(drawn)
        changes += isinstance(event, e.RecordChange | e.DocumentChange | e.ScopeChange)
        if changes == limit:
            break
    return changes
