"""`python -m benchmarks.paper answers`: the paper's tables, measured on sets that lie at hand.

Promise: nothing is fetched; what needs a model that is not here says so.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

import click
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.progress import Progress

from benchmarks.paper import charts, numbered, programs, sheets
from benchmarks.paper.budgets import curve
from benchmarks.paper.lab import Lab, Report, Track
from benchmarks.paper.models import Models
from benchmarks.paper.sets import COLLECTIONS, Question, Split, known
from benchmarks.paper.sheets import Sheet
from stream_car.api.json import line
from stream_car.cli import options
from stream_car.cli.console import emit, show, words
from stream_car.cli.publish import progress
from stream_car.cli.widgets import FAINT, Rows
from stream_car.errors import InvalidRequest


@click.command(
    "answers",
    epilog=options.examples(
        "python -m benchmarks.paper answers --data ./benchmarks",
        "python -m benchmarks.paper answers --data ./benchmarks --set ghsa --set fda --json",
        "python -m benchmarks.paper answers --data ./benchmarks --table 5",
        "python -m benchmarks.paper answers --data ./benchmarks --charts ./charts",
        "python -m benchmarks.paper answers --data ./benchmarks --set ghsa --curve",
        "python -m benchmarks.paper answers --data ./benchmarks --set fda --encoder ./all-MiniLM-L6-v2",
        "python -m benchmarks.paper answers --data ./benchmarks --table 5 --encoder ./e5 --generator './write.sh'",
    ),
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    required=True,
    metavar="DIR",
    help="The directory with a directory for each set.",
)
@click.option(
    "--set",
    "names",
    multiple=True,
    metavar="NAME",
    help=f"A set; may be repeated: {', '.join(one.name for one in COLLECTIONS)}; "
    "and `scotus`, whose texts you have to bring.  [default: all but that]",
)
@click.option(
    "--table",
    type=click.IntRange(2, 13),
    metavar="N",
    help="One table of the paper, by its number: "
    + "; ".join(f"{number} {what}" for number, what in numbered.ABOUT.items()),
)
@click.option("--split", type=click.Choice(get_args(Split)), default="dev", show_default=True, help="Which questions.")
@click.option("--curve", "is_curve", is_flag=True, help="Instead: coverage and risk as the budget of look-ups grows.")
@click.option("--failures", is_flag=True, help="Also list every question that fails, and why.")
@click.option(
    "--charts",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Also draw the figures into this directory, as SVG.",
)
@click.option(
    "--encoder",
    "encoders",
    multiple=True,
    metavar="FOLDER",
    help="A sentence encoder, as `stream-car up --encoder` takes it; may be repeated.",
)
@click.option(
    "--cross-encoder",
    metavar="COMMAND",
    help='A program that reads lines of {"question", "text"} and writes a score a line.',
)
@click.option("--generator", metavar="COMMAND", help="A program that reads a prompt and writes a text: HyDE asks it.")
@options.as_json
def command(
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
    as_json: bool,
) -> None:
    """Measure answers beside the paper's systems.

    Every set, with the paper's figures and its baselines run here, the engine as it ships, and what is possible
    at best; with --table, one table in the paper's shape. Shares carry 95 % Wilson intervals.
    """
    if table is not None and (names or folder is not None or failures or is_curve):
        raise InvalidRequest("table", "a table has its own sets; give --table alone, or leave it out")
    models = Models(
        encoders=programs.named(encoders),
        cross=programs.scoring(cross_encoder) if cross_encoder else None,
        writer=programs.writing(generator) if generator else None,
    )
    with progress() as bar, Lab(data, split=split, models=models, track=_tracked(bar)) as lab:
        if table is not None:
            said = numbered.numbered(table, lab)
            options.answer_one(said, as_json=as_json, draw=draw)
            return
        if is_curve:
            curves = []
            for collection in known(names):
                curves.append(curve(lab, collection))
                options.answer_one(curves[-1], as_json=as_json, draw=lambda said: draw(sheets.budgets(said)))
            _name(charts.write_curves(curves, folder) if folder is not None else ())
            return
        reports = []
        for collection in known(names):
            reports.append(lab.report(collection))
            _tell(reports[-1], failures=failures, as_json=as_json)
    if not as_json:
        show(*map(draw, (sheets.side_by_side(reports), sheets.factorisation(reports), sheets.lookups(reports))))
    _name(charts.write(reports, folder) if folder is not None else ())


def _name(paths: Iterable[Path]) -> None:
    for path in paths:
        click.echo(str(path), err=True)


def _tell(report: Report, *, failures: bool, as_json: bool) -> None:
    if as_json:
        emit(line(report))
        return
    show(draw(sheets.systems(report)))
    if (by_hop := sheets.hops(report)) is not None:
        show(draw(by_hop))
    if failures and report.failures:
        show(draw(sheets.failures(report)))


def draw(sheet: Sheet) -> RenderableType:
    """A sheet under its title, its notes beneath."""
    rows = [[words(cell) for cell in row] for row in sheet.rows]
    whole = [at for at in range(len(sheet.columns)) if at and all(len(row[at]) < 30 for row in sheet.rows)]
    table = Rows(sheet.columns, rows, whole=whole)
    return Lines(words(sheet.title, "bold"), table, *(words(note, FAINT) for note in sheet.notes), words(""))


def _tracked(bar: Progress) -> Track:
    def track(questions: Sequence[Question], what: str) -> Iterable[Question]:
        task = bar.add_task(what, total=len(questions))
        for one in questions:
            yield one
            bar.advance(task)
        bar.remove_task(task)

    return track
