"""The small parts of what people see: a time, a number, a status, an indented text, a table.

Promise: values in, rich texts out. Nothing here prints, reads or decides. In force is green, superseded is struck out,
trouble is red or yellow; the words alone say the same, so nothing is lost without colours.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stream_car.cli.console import words
from stream_car.codec.times import format_time, to_micros
from stream_car.core.rule_pack import REVISED
from stream_car.queries.answers import (
    DocumentStatus,
    Evidence,
    Explanation,
    Lookup,
    PublishedDocument,
    Resolution,
    Step,
)

IN_FORCE = "bold green"
VOID = "strike dim"
FAINT = "dim"
BAD = "bold red"
WARN = "yellow"
STATUS_STYLES: Mapping[DocumentStatus, str] = {
    "in_force": IN_FORCE,
    "superseded": BAD,
    "retracted": BAD,
    "pending": WARN,
    "unknown": WARN,
}
COLUMN_GAP = 3  # characters around a column


def day(time: datetime) -> str:
    """Return a time for people: the day alone if the publisher gave no hour."""
    return format_time(to_micros(time)).removesuffix("T00:00:00Z").replace("T", " ")


def status_text(status: DocumentStatus) -> Text:
    """Return a status in words."""
    return Text(status.replace("_", " "), STATUS_STYLES[status])


def fate_text(of: Evidence | Resolution | Explanation | Lookup | PublishedDocument) -> Text:
    """Return what became of a document or record, `fixed in 2.0.0`, or else its status and the state of its record."""
    if of.outcome_text:
        return words(of.outcome_text, FAINT if of.outcome == REVISED else BAD)
    status = status_text(of.status)
    return Text.assemble(status, words(f", {of.state_text}", FAINT)) if of.status == "in_force" and of.state else status


def arrow(label: str) -> Text:
    """Return `──label──▶`."""
    return words(f" ──{label}──▶ ", "cyan")


def path_line(start: str, path: Sequence[Step], start_style: str = VOID) -> Text:
    """Return the path from a document to what controls it: `anchor ──fixed──▶ ... ──replaced──▶ controlling`."""
    line = words(start, start_style if path else IN_FORCE)
    for step in path:
        line = Text.assemble(
            line, arrow(step.outcome or step.rule), words(step.id, IN_FORCE if step is path[-1] else VOID)
        )
    return line


def numbered(items: Iterable[RenderableType]) -> Table:
    """Return the items, each after its number; lines that wrap stay aligned."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", style=FAINT, no_wrap=True, min_width=2)
    grid.add_column(overflow="fold")
    for number, item in enumerate(items, 1):
        grid.add_row(str(number), item)
    return grid


def indented(item: RenderableType, level: int = 1) -> Padding:
    """Return the item moved to the right, with all of its lines."""
    return Padding.indent(item, 3 * level)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return `1 document` or `2,000 documents`; give `plural` if an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


class Rows:
    """Rows under the names of their columns: a table if it fits, otherwise a list.

    In a list, each row begins with its first `heads` cells, and every other cell that is not empty has a line of its
    own. Columns in `whole` (dates, numbers) are never wrapped. Those in `shortened` have one line in a table: they end
    after the last word that fits.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Iterable[Sequence[Text]],
        *,
        heads: int = 1,
        whole: Sequence[int] = (),
        shortened: Sequence[int] = (),
    ) -> None:
        self._names = names
        self._rows = list(rows)
        self._heads = heads
        self._whole = whole
        self._shortened = shortened

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width - COLUMN_GAP * len(self._names))
        if widths:
            table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
            for column, width in zip(self._names, widths, strict=True):
                table.add_column(column, overflow="fold", width=width)
            for row in self._rows:
                table.add_row(*(_fitted(c, widths[at]) if at in self._shortened else c for at, c in enumerate(row)))
            yield table
            return
        for row in self._rows:
            yield Text("  ").join(cell for cell in row[: self._heads] if cell)
            for column, cell in list(zip(self._names, row, strict=True))[self._heads :]:
                if cell:
                    yield indented(Text.assemble((f"{column}: " if column else "", FAINT), cell))

    def _widths(self, room: int) -> list[int]:
        """Return widths that fit without breaking a word, taken from the widest columns first. Empty: none fit."""
        columns = [[Text(column), *(row[index] for row in self._rows)] for index, column in enumerate(self._names)]
        widths = [max(cell.cell_len for cell in column) for column in columns]
        least = [
            width if index in self._whole else max(cell_len(word) for cell in column for word in cell.plain.split(" "))
            for index, (column, width) in enumerate(zip(columns, widths, strict=True))
        ]
        widths = [min(width, max(floor, room)) for width, floor in zip(widths, least, strict=True)]
        while sum(widths) > room:
            widest = max(range(len(widths)), key=lambda index: (widths[index] > least[index], widths[index]))
            if widths[widest] == least[widest]:
                return []
            widths[widest] -= 1
        return widths


def _fitted(cell: Text, width: int) -> Text:
    """Return as many words of a cell as fit into one line of this width, and an ellipsis if these are not all."""
    if cell.cell_len <= width:
        return cell
    kept = ""
    for word in cell.plain.split(" "):
        if cell_len(longer := f"{kept} {word}".strip()) + 2 > width:
            break
        kept = longer
    return Text(f"{kept} …".strip(), style=cell.style)
