"""`rebuild`: other rules for a folder, built beside the old ones, compared, and switched to in one step.

Promise: nothing changes before the last step, and an interrupted command changes nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import click
from msgspec import Struct
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from stream_car.api.plain import line
from stream_car.cli import options
from stream_car.cli.console import emit, show, words
from stream_car.cli.pieces import FAINT, IN_FORCE, VOID, counted
from stream_car.cli.publish import progress
from stream_car.cli.tables import Rows
from stream_car.engine.answers import Difference
from stream_car.runtime.rebuild import Rebuild

SHOWN = 50
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
        "stream-car rebuild --dry-run --json | jq -r 'select(.after == \"void\") | .id'",
    ),
)
@click.option("--dry-run", is_flag=True, help="Change nothing, only say which documents would stand otherwise.")
@click.option(
    "--future",
    type=click.Choice(["wait", "apply"]),
    help="Whether documents ahead of their time wait for it, or count at once.  [default: as before]",
)
@options.reading
def command(
    dry_run: bool,
    future: Literal["wait", "apply"] | None,
    data: Path,
    rules: Sequence[str],
    as_json: bool,
) -> None:
    """Change the rules that the data goes by.

    Builds state and index from the log under other rules, beside the old ones, then switches at once.
    What the old rules refused is looked at again. Without --rules the packs that the data goes by are
    read again, after a file was edited or a new release has come.
    """
    with options.existing(data, ()) as engine, engine.rebuild(rules or None, future=future) as rebuild:
        _build(rebuild)
        if dry_run:
            _compare(rebuild, as_json=as_json)
            return
        rebuild.switch()
        header = engine.header()
        said = Rebuilt(
            generation=engine.generation,
            packs=engine.going_by.packs,
            records=engine.next_offset,
            documents=header.documents,
            rejected=header.counts.get("rejected", 0),
        )
    options.answer_one(said, as_json=as_json, draw=_draw)


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
    counts: Counter[tuple[str, str]] = Counter()
    shown: list[Difference] = []
    for one in rebuild.differences():
        counts[one.before, one.after] += 1
        if len(shown) < SHOWN:
            shown.append(one)
    show(Lines(*_differences(counts, shown)))


def _differences(counts: Counter[tuple[str, str]], shown: Sequence[Difference]) -> Iterator[RenderableType]:
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
    packs = ", ".join(said.packs) or "all shipped packs"
    return Lines(
        Text(f"✔ built from {counted(said.records, 'message')} of the log, and switched", IN_FORCE),
        words(f"{counted(said.documents, 'document')}, {said.rejected:,} rejected, under {packs}"),
        Text(f"generation {said.generation}", FAINT),
    )
