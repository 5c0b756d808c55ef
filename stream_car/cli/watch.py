"""`watch`: what becomes void and what holds again, as it happens.

Promise: with a cursor file nothing is missed between two runs, however the first one ended, and what was
printed last may be printed twice.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

import stream_car
from stream_car.api.json import line
from stream_car.cli import hints as unknown
from stream_car.cli import options
from stream_car.cli.console import emit, err, show, words
from stream_car.cli.hints import again
from stream_car.cli.render import became, told
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, VOID, WARN, day
from stream_car.errors import InvalidRequest
from stream_car.queries.answers import Told
from stream_car.subscriptions.events import (
    ActiveDocument,
    DocumentChange,
    Event,
    Filter,
    Reset,
    ScopeState,
    SnapshotBegin,
    SnapshotEnd,
)

if TYPE_CHECKING:
    from stream_car.client.subscription import Place

RESET = {
    "cursor_generation": "the rules have changed since you were here; this is what is in force now",
    "cursor_expired": "you were away for longer than changes are kept; this is what is in force now",
    "generation": "the rules have changed; this is what is in force now",
}
ALONE = (
    "That is all so far, and nobody else can publish into a folder that is open here. "
    "To follow it live: {up}, then stream-car watch --url http://127.0.0.1:8377"
)


@click.command(
    "watch",
    epilog=options.examples(
        "stream-car watch --url http://127.0.0.1:8377                  every change, from now on",
        "stream-car watch --url URL package=lodash --snapshot          what is in force there first",
        "stream-car watch --url URL --type advisory --cursor seen.txt  go on where the last run ended",
        "stream-car watch --url URL --id GHSA-jf85-cpcp-j695 --limit 1 wait for one change of one document",
    ),
)
@click.argument("parts", nargs=-1, metavar="[KEY=VALUE...]", callback=options.read_parts)
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this document or record; may be repeated.")
@click.option("--type", "types", multiple=True, metavar="TYPE", help="Only documents of this type; may be repeated.")
@click.option("--domain", "domains", multiple=True, metavar="PACK", help="Only types of this rule pack.")
@click.option("--scopes", "by_scope", is_flag=True, help="Changes of frontiers, exactly as they are told.")
@click.option("--snapshot", is_flag=True, help="Tell what is in force first.")
@click.option("--cursor", "cursor_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Keep the place in this file, and go on from it.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=1), help="End after so many changes.")
@options.asking
def watch(
    parts: Mapping[str, str],
    ids: Sequence[str],
    types: Sequence[str],
    domains: Sequence[str],
    by_scope: bool,
    snapshot: bool,
    cursor_file: Path | None,
    limit: int | None,
    data: Path,
    rules: Sequence[str],
    url: str | None,
    as_json: bool,
) -> None:
    """Tell what becomes void and what holds again, as it happens.

    One line for each document, with what caused it, until Ctrl-C. Over a folder, without a service, it
    tells the changes so far and ends.
    """
    from stream_car.client.subscription import Place

    view: Literal["document", "scope"] = "scope" if by_scope else "document"
    selection = Filter(
        view=view,
        ids=frozenset(ids),
        types=frozenset(types),
        domains=frozenset(domains),
        parts=frozenset(parts.items()),
    )
    service = options.connected(url)
    with suppress(KeyboardInterrupt):
        if service is None:
            place = Place(None, cursor_file)
            with options.existing(data, rules) as engine:
                _warn(engine, selection)
                _tell(_so_far(engine, selection, place, snapshot=snapshot), limit, as_json=as_json)
            place.save()
            err().print(words(ALONE.format(up=again("up")), FAINT), soft_wrap=True)
            return
        with service:
            _warn(service, selection)
            with service.subscribe(
                view=view,
                ids=ids,
                types=types,
                domains=domains,
                parts=parts or None,
                snapshot=snapshot,
                cursor_file=cursor_file,
            ) as events:
                if sys.stderr.isatty():
                    err().print(f"watching {service.url}; Ctrl-C ends it", style=FAINT, soft_wrap=True)
                _tell(events, limit, as_json=as_json)
                events.keep()


def _warn(car: "options.Car", selection: Filter) -> None:
    """Of names that no rule knows nothing is ever told: say so before the wait."""
    if not (selection.types or selection.domains or selection.parts):
        return
    ruleset = options.ruleset_of(car)
    strange = [
        *unknown.types(ruleset, sorted(selection.types)),
        *unknown.packs(ruleset, sorted(selection.domains)),
        *unknown.keys(ruleset, sorted({key for key, _ in selection.parts})),
    ]
    for said in strange:
        err().print(words(f"{said}; while the rules are these, nothing is told of it", WARN), soft_wrap=True)


def _so_far(engine: stream_car.Engine, selection: Filter, place: "Place", *, snapshot: bool) -> Iterator[Event]:
    """What a folder tells, up to now."""
    from stream_car.local.change_feed import so_far

    try:
        for said in so_far(engine, selection, place.cursor, snapshot=snapshot):
            yield said
            place.passed(said)
    except InvalidRequest as error:
        raise place.refused(error) from error


def _tell(events: Iterable[Event], limit: int | None, *, as_json: bool) -> None:
    """Each event; people are not told twice that a document changed, once for each of its scopes."""
    changes, before = 0, ""
    for said in events:
        if as_json:
            emit(line(said))
        else:
            drawn = draw(said)
            if isinstance(drawn, Text) and drawn.plain == before:
                continue
            before = drawn.plain if isinstance(drawn, Text) else ""
            if drawn is not None:
                show(drawn)
        changes += said.event == "change"
        if limit is not None and changes >= limit:
            return


def draw(said: Event) -> RenderableType | None:
    """An event for people; where there is nothing to say, nothing."""
    data = said.data
    if isinstance(data, DocumentChange):
        return became(data)
    if isinstance(data, Told):
        return told(data)
    if isinstance(data, ActiveDocument):
        called = words(data.title or data.id, IN_FORCE)
        return Text.assemble("= ", called, words(f"  {data.id} · {data.type} · {day(data.time)}", FAINT))
    if isinstance(data, ScopeState):
        return _scope(data)
    if isinstance(data, Reset):
        return Text(RESET[data.reason], WARN)
    if isinstance(data, SnapshotBegin):
        return Text("In force:", "bold")
    if isinstance(data, SnapshotEnd):
        return Text("Changes:", "bold")
    return None


def _scope(said: ScopeState) -> RenderableType:
    if said.void:
        return Text.assemble(("- ", BAD), words(said.void, VOID), " is void by a link")
    members = (words(f"= {member.id} {member.type}", IN_FORCE) for member in said.members)
    return Lines(words(said.scope, "bold"), *(Text.assemble("  ", member) for member in members))
