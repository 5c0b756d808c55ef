"""`python -m benchmarks.paper answers`: the paper's tables, measured on sets on this machine.

Promise: nothing is downloaded. The output lists what was not run because it needs a model.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

import click
from rich.console import Group as Lines, RenderableType
from rich.progress import Progress

from benchmarks.paper import charts, programs, tables, text_tables
from benchmarks.paper.budgets import curve
from benchmarks.paper.lab import Lab, Report, Track
from benchmarks.paper.models import Models
from benchmarks.paper.sets import COLLECTIONS, Question, Split, find_collections
from benchmarks.paper.text_tables import TextTable
from stream_car.api.json import to_json
from stream_car.cli import options
from stream_car.cli.console import emit, progress, show, words
from stream_car.cli.widgets import FAINT, Rows
from stream_car.errors import InvalidRequest


@options.command(name="answers")
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    metavar="DIR",
    help="The directory that contains a directory for each set.",
)
@click.option(
    "--set",
    "names",
    multiple=True,
    metavar="NAME",
    help=f"A set; may be repeated: {', '.join(each.name for each in COLLECTIONS)}; "
    "and `scotus`, whose texts you must provide.  [default: all except `scotus`]",
)
@click.option(
    "--table",
    type=click.IntRange(2, 13),
    metavar="N",
    help="One table of the paper, by its number: "
    + "; ".join(f"{number} {about}" for number, about in tables.ABOUT.items()),
)
@click.option(
    "--split", type=click.Choice(get_args(Split)), default="dev", show_default=True, help="The questions to use."
)
@click.option(
    "--curve", "is_curve", is_flag=True, help="Measure coverage and risk as the budget of look-ups grows instead."
)
@click.option("--failures", is_flag=True, help="Also list every failed question, and why it failed.")
@click.option(
    "--charts",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Also draw the figures as SVG into this directory.",
)
@click.option(
    "--encoder",
    "encoders",
    multiple=True,
    metavar="FOLDER",
    help="A sentence encoder, as `stream-car serve --encoder` takes it; may be repeated.",
)
@click.option(
    "--cross-encoder",
    metavar="COMMAND",
    help='A program that reads lines of {"question", "text"} and writes one score per line.',
)
@click.option(
    "--generator", metavar="COMMAND", help="A program that reads a prompt and writes a text, for HyDE and table 12."
)
def command(
    session: options.Session,
    data: Path,
    names: Sequence[str],
    table: int | None,
    split: Split,
    is_curve: bool,
    failures: bool,
    folder: Path | None,
    encoders: Sequence[str],
    cross_encoder: str | None,
    generator: str | None,
) -> None:
    """Measure answers and compare them with the paper's systems.

    Runs the paper's baselines and the engine as it ships on every set, and shows the paper's figures and the
    ceiling. With --table, shows one table in the paper's shape. Shares have 95 % Wilson intervals.

    Examples:
      python -m benchmarks.paper answers --data ./benchmarks
      python -m benchmarks.paper answers --data ./benchmarks --set ghsa --set fda --json
      python -m benchmarks.paper answers --data ./benchmarks --table 5
      python -m benchmarks.paper answers --data ./benchmarks --charts ./charts
      python -m benchmarks.paper answers --data ./benchmarks --set ghsa --curve
      python -m benchmarks.paper answers --data ./benchmarks --set fda --encoder ./all-MiniLM-L6-v2
      python -m benchmarks.paper answers --data ./benchmarks --table 5 --encoder ./e5 --generator './write.sh'
    """
    if table is not None and (names or folder is not None or failures or is_curve):
        raise InvalidRequest(
            "table", "--table uses its own sets. Give it without --set, --charts, --failures and --curve."
        )
    models = Models(
        encoders=programs.load_encoders(encoders),
        cross=programs.cross_encoder(cross_encoder) if cross_encoder else None,
        writer=programs.generator(generator) if generator else None,
    )
    with progress() as bar, Lab(data, split=split, models=models, track=_with_progress(bar)) as lab:
        if table is not None:
            session.report(tables.paper_table(table, lab), draw)
            return
        if is_curve:
            curves = []
            for collection in find_collections(names):
                curves.append(curve(lab, collection))
                session.report(curves[-1], lambda each: draw(text_tables.budget_table(each)))
            _print_paths(charts.write_curves(curves, folder) if folder is not None else ())
            return
        reports = []
        for collection in find_collections(names):
            reports.append(lab.report(collection))
            _print_report(reports[-1], failures=failures, as_json=session.as_json)
    if not session.as_json:
        summaries = (text_tables.comparison, text_tables.factorisation, text_tables.lookups)
        show(*(draw(table_of(reports)) for table_of in summaries))
    _print_paths(charts.write_reports(reports, folder) if folder is not None else ())


def _print_paths(paths: Iterable[Path]) -> None:
    for path in paths:
        click.echo(str(path), err=True)


def _print_report(report: Report, *, failures: bool, as_json: bool) -> None:
    if as_json:
        emit(to_json(report))
        return
    show(draw(text_tables.systems(report)))
    if (by_hop := text_tables.hops(report)) is not None:
        show(draw(by_hop))
    if failures and report.failures:
        show(draw(text_tables.failures(report)))


def draw(table: TextTable) -> RenderableType:
    """Draw a table with its title above and its notes below."""
    rows = [[words(cell) for cell in row] for row in table.rows]
    unwrapped = [at for at in range(len(table.columns)) if at and all(len(row[at]) < 30 for row in table.rows)]
    drawn = Rows(table.columns, rows, whole=unwrapped)
    return Lines(words(table.title, "bold"), drawn, *(words(note, FAINT) for note in table.notes), words(""))


def _with_progress(bar: Progress) -> Track:
    def track(questions: Sequence[Question], what: str) -> Iterable[Question]:
        task = bar.add_task(what, total=len(questions))
        for question in questions:
            yield question
            bar.advance(task)
        bar.remove_task(task)

    return track
