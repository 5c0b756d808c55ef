"""`rebuild`: other rules for a folder, built beside the old ones, compared, and switched to in one step.

Promise: nothing changes before the last step, and an interrupted command changes nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import sleep
from typing import Literal

import click
from msgspec import Struct
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from stream_car.api.json import line
from stream_car.api.messages import Progress
from stream_car.cli import options
from stream_car.cli.console import emit, err, show, words
from stream_car.cli.publish import progress
from stream_car.cli.widgets import FAINT, IN_FORCE, VOID, Rows, counted
from stream_car.client import Client
from stream_car.errors import StreamCarError
from stream_car.local.rebuild import Rebuild
from stream_car.queries.answers import Difference, Stands

SHOWN = 50
AGAIN_S = 0.1  # until a service is asked again how far it is
STYLES = {"active": IN_FORCE, "void": VOID, "pending": FAINT, "absent": FAINT}


class Rebuilt(Struct, frozen=True, kw_only=True):
    """What the folder goes by now."""

    generation: str
    packs: tuple[str, ...]
    records: int
    documents: int
    rejected: int


@click.command(
    "rebuild",
    epilog=options.examples(
        "stream-car rebuild --rules ./mine.toml --dry-run     what would be in force, or void, and why",
        "stream-car rebuild --rules ./mine.toml --rules security",
        "stream-car rebuild                                   the same packs, read again",
        "stream-car rebuild --rules ./mine.toml --url http://127.0.0.1:8377     beside the requests, with its token",
        "stream-car rebuild --dry-run --json | jq -r 'select(.after == \"void\") | .id'",
    ),
)
@click.option("--dry-run", is_flag=True, help="Change nothing, only say which documents would stand otherwise.")
@click.option(
    "--future",
    type=click.Choice(["wait", "apply"]),
    help="Whether documents ahead of their time wait for it, or count at once.  [default: as before]",
)
@options.asking
def command(
    dry_run: bool,
    future: Literal["wait", "apply"] | None,
    data: Path,
    rules: Sequence[str],
    url: str | None,
    as_json: bool,
) -> None:
    """Change the rules that the data goes by.

    Builds state and index from the log under other rules, beside the old ones, then switches at once.
    What the old rules refused is looked at again. Without --rules the packs that the data goes by are
    read again, after a file was edited or a new release has come; those that were sent to a service
    stay as sent. A service does it while it answers.
    """
    if service := options.connected(url, with_rules=True):
        with service:
            _in_service(
                service, _packs(rules) if options.is_typed("rules") else (), future, dry_run=dry_run, as_json=as_json
            )
        return
    with options.existing(data, ()) as engine, engine.rebuild(rules or None, future=future) as rebuild:
        _build(rebuild)
        if dry_run:
            _compare(rebuild, as_json=as_json)
            return
        rebuild.switch()
        header = engine.header()
        said = Rebuilt(
            generation=engine.generation,
            packs=tuple(domain.name for domain in engine.ruleset.packs),
            records=engine.next_offset,
            documents=header.documents,
            rejected=header.counts.get("rejected", 0),
        )
    options.answer_one(said, as_json=as_json, draw=_draw)


def _packs(rules: Sequence[str]) -> tuple[str | Path, ...]:
    """Names of shipped packs as they are, files as paths."""
    return tuple(Path(one) if one.endswith(".toml") or "/" in one else one for one in rules)


def _in_service(
    service: Client,
    packs: Sequence[str | Path],
    future: Literal["wait", "apply"] | None,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Have a service do it, and wait until it is done."""
    said = _followed(service, service.rebuild(packs, future=future, dry_run=dry_run))
    if said.state == "failed":
        raise StreamCarError(said.detail)
    if dry_run:
        _tell(said, as_json=as_json)
        return
    standing = service.status()
    rebuilt = Rebuilt(
        generation=standing.generation,
        packs=tuple(domain.name for domain in service.rules().domains),
        records=standing.next_offset,
        documents=standing.documents,
        rejected=standing.outcomes.get("rejected", 0),
    )
    options.answer_one(rebuilt, as_json=as_json, draw=_draw)


def _followed(service: Client, said: Progress) -> Progress:
    with progress() as bar:
        task = bar.add_task("reading the log", total=said.end)
        while said.state in ("building", "comparing"):
            bar.update(task, completed=said.applied, total=said.end)
            sleep(AGAIN_S)
            said = service.rebuilding()
    return said


def _tell(said: Progress, *, as_json: bool) -> None:
    if not as_json:
        counts = Counter({(one.before, one.after): one.documents for one in said.counts})
        show(Lines(*_differences(counts, said.differences[:SHOWN])))
        return
    for one in said.differences:
        emit(line(one))
    if (left := sum(one.documents for one in said.counts) - len(said.differences)) > 0:
        err().print(f"and {left:,} more, which a service counts and does not list", style=FAINT)


def _build(rebuild: Rebuild) -> None:
    with progress() as bar:
        task = bar.add_task("reading the log", total=rebuild.end)
        while count := rebuild.step():
            bar.update(task, advance=count, total=rebuild.end)


def _compare(rebuild: Rebuild, *, as_json: bool) -> None:
    if as_json:
        for one in rebuild.differences():
            emit(line(one))
        return
    counts: Counter[tuple[Stands, Stands]] = Counter()
    shown: list[Difference] = []
    for one in rebuild.differences():
        counts[one.before, one.after] += 1
        if len(shown) < SHOWN:
            shown.append(one)
    show(Lines(*_differences(counts, shown)))


def _differences(counts: Counter[tuple[Stands, Stands]], shown: Sequence[Difference]) -> Iterator[RenderableType]:
    if not counts:
        yield Text("✔ every document would stand as it does now", IN_FORCE)
        return
    yield Rows(("document", "now", "then", "what voids it"), map(_row, shown), whole=(1, 2))
    if counts.total() > len(shown):
        yield Text(f"and {counts.total() - len(shown):,} more; --json lists all", FAINT)
    for (before, after), count in counts.most_common():
        yield Text(f"{counted(count, 'document')}: {before} now, {after} then")
    yield Text("Nothing was changed. Without --dry-run it would be.", FAINT)


def _row(one: Difference) -> tuple[Text, ...]:
    why = ", ".join(f"{step.id} ({step.rule} in {step.scope})" for step in one.why[:3])
    return words(one.id), Text(one.before, STYLES[one.before]), Text(one.after, STYLES[one.after]), words(why)


def _draw(said: Rebuilt) -> RenderableType:
    return Lines(
        Text(f"✔ built from {counted(said.records, 'message')} of the log, and switched", IN_FORCE),
        words(f"{counted(said.documents, 'document')}, {said.rejected:,} rejected, under {', '.join(said.packs)}"),
        Text(f"generation {said.generation}", FAINT),
    )
