"""Tables that become lists where the terminal is narrow.

Promise: no word is broken for want of columns; a list says the same as the table.
"""

from collections.abc import Iterable, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from stream_car.cli.widgets import FAINT, indented

EDGE = 3  # what a column has around it


class Rows:
    """Rows under the names of their columns.

    In a list each row begins with its first `heads` cells, and has a line for every other that says
    something. Columns in `whole` (dates, numbers) are never wrapped.
    """

    def __init__(
        self, names: Sequence[str], rows: Iterable[Sequence[Text]], *, heads: int = 1, whole: Sequence[int] = ()
    ) -> None:
        self._names = names
        self._rows = list(rows)
        self._heads = heads
        self._whole = whole

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As wide as it may be."""
        widths = self._widths(options.max_width - EDGE * len(self._names))
        if widths:
            yield self._table(widths)
            return
        for row in self._rows:
            yield Text("  ").join(cell for cell in row[: self._heads] if cell)
            for name, cell in list(zip(self._names, row, strict=True))[self._heads :]:
                if cell:
                    yield indented(Text.assemble((f"{name}: " if name else "", FAINT), cell))

    def _widths(self, room: int) -> list[int]:
        """The widths of columns that fit without breaking a word: the widest give first. Empty: they do not fit."""
        columns = [[Text(name), *(row[at] for row in self._rows)] for at, name in enumerate(self._names)]
        widths = [max(cell.cell_len for cell in column) for column in columns]
        least = [
            width if at in self._whole else max(cell_len(word) for cell in column for word in ["", *cell.plain.split()])
            for at, (column, width) in enumerate(zip(columns, widths, strict=True))
        ]
        widths = [min(width, max(floor, room)) for width, floor in zip(widths, least, strict=True)]
        while sum(widths) > room:
            spare = [at for at in range(len(widths)) if widths[at] > least[at]]
            if not spare:
                return []
            widths[max(spare, key=widths.__getitem__)] -= 1
        return widths

    def _table(self, widths: Sequence[int]) -> Table:
        table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for name, width in zip(self._names, widths, strict=True):
            table.add_column(name, overflow="fold", width=width)
        for row in self._rows:
            table.add_row(*row)
        return table
