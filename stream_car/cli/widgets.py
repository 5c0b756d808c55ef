"""The small parts of what people see: a time, a document, a chain, a certificate.

Promise: values in, rich texts out; nothing here prints, reads or decides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.console import Group as Lines
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stream_car.cli.console import words
from stream_car.codec import format_time
from stream_car.queries.answers import Certificate, Controlling, Evidence, Group, Incomplete, Plausible, Step

IN_FORCE = "bold green"
VOID = "strike dim"
FAINT = "dim"
BAD = "bold red"
WARN = "yellow"
AMENDED = "magenta"
LEFT_MAX = 3  # scopes not covered that are named

REASONS: Mapping[Incomplete, str] = {
    "cycle": "documents void one another",
    "successor_missing": "a successor is named that is not here",
    "budget": "looking was stopped before its end; ask with fewer anchors or a larger budget",
    "in_flight": "documents are still being applied; ask again",
    "pending": "a document waits for its time",
    "unknown": "no document has that name",
    "retracted": "the document was retracted",
    "no_anchor": "no document matches the question",
    "limit": "more documents are in force than are listed",
}
assert set(REASONS) == set(get_args(Incomplete))


def day(micros: int) -> str:
    """A time for people: the day alone where the publisher gave no hour."""
    text = format_time(micros)
    return text.removesuffix("T00:00:00Z") if text.endswith("T00:00:00Z") else text.replace("T", " ")


def name(document: Evidence) -> str:
    """What a person calls the document: its title, or else its id."""
    return document.title or document.id


def facts(document: Evidence) -> Text:
    """One line about a document: its id, type, time, source and address."""
    said = [document.id, document.type, day(document.time), document.source, document.url]
    return words(" · ".join(part for part in said if part), FAINT)


def arrow(rule: str) -> Text:
    """`──rule──▶`"""
    return Text.assemble((" ──", "cyan"), words(rule, "cyan"), ("──▶ ", "cyan"))


def chain(start: str, path: Sequence[Step], end_style: str = IN_FORCE, start_style: str = VOID) -> Text:
    """The way from a document to what controls it: `anchor ──rule──▶ ... ──rule──▶ controlling`."""
    said = [words(start, start_style if path else end_style)]
    for step in path:
        said += [arrow(step.rule), words(step.id, end_style if step is path[-1] else VOID)]
    return Text.assemble(*said)


def controlled(groups: Sequence[Group], results: Sequence[Evidence] | None = None) -> RenderableType:
    """The results behind their numbers, each with the chains that lead to it; then what is amiss.

    Without `results` every controlling document is one, in the order of the groups.
    """
    if results is None:
        results = list({c.document.id: c.document for group in groups for c in group.controlling}.values())
    told: set[str] = set()
    items = [Lines(*_result_lines(document, groups, told)) for document in results]
    return Lines(*([numbered(items)] if items else []), *(indented(line) for group in groups for line in _amiss(group)))


def _result_lines(document: Evidence, groups: Sequence[Group], told: set[str]) -> Iterator[RenderableType]:
    """A document that is in force, and how each anchor leads to it; anchors in `told` were named before."""
    yield words(name(document), IN_FORCE)
    yield facts(document)
    for group in groups:
        for control in group.controlling:
            if control.document.id == document.id and control.path:
                yield chain(group.anchor.id, control.path)
                if group.anchor.id not in told and not group.anchor.active:
                    yield indented(_void(group.anchor))
                told.add(group.anchor.id)
    yield from amendments(document, groups)


def amendments(document: Evidence, groups: Sequence[Group]) -> Iterator[RenderableType]:
    """What is to be read with a document in force, and how each came to amend it."""
    control = next((c for group in groups for c in group.controlling if c.document.id == document.id), None)
    if control is not None:
        yield from _amendments(control)


def _amendments(control: Controlling) -> Iterator[RenderableType]:
    for one in control.amendments:
        yield Text.assemble(
            ("amended by: ", AMENDED), words(f"{name(one.document)} ({day(one.document.time)})", IN_FORCE)
        )
        yield indented(chain(control.document.id, one.path, start_style=IN_FORCE))
    if control.amendments_more:
        yield Text(f"and by {counted(control.amendments_more, 'other document')}", AMENDED)


def _void(document: Evidence) -> Text:
    return Text.assemble(("void: ", FAINT), words(f"{name(document)} ({day(document.time)})", VOID))


def _amiss(group: Group) -> Iterator[Text]:
    """What a group cannot tell: where nothing controls, whom it misses, who void one another."""
    if not group.controlling:
        yield Text.assemble(("nothing in force controls ", WARN), words(name(group.anchor), VOID))
    if group.missing:
        yield Text.assemble(("named as successor, but not here: ", WARN), words(", ".join(group.missing), WARN))
    if group.cycle:
        yield Text.assemble(("these void one another: ", WARN), words(", ".join(group.cycle), WARN))


def numbered(items: Iterable[RenderableType]) -> Table:
    """The items, each behind its number; what wraps stays behind it."""
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", style=FAINT, no_wrap=True, min_width=2)
    grid.add_column(overflow="fold")
    for number, item in enumerate(items, 1):
        grid.add_row(str(number), item)
    return grid


def indented(item: RenderableType, level: int = 1) -> Padding:
    """The item moved to the right, with all of its lines."""
    return Padding.indent(item, 3 * level)


def why(reasons: Sequence[Incomplete]) -> str:
    """The reasons in words."""
    return "; ".join(REASONS[reason] for reason in reasons)


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 document`, `2,000 documents`; `plural` where an s is not enough."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def certificate_line(said: Certificate) -> Text:
    """What the answer warrants: for which anchors, counting what, as of when."""
    anchors = counted(len(said.covered), "anchor")
    since = f", as of {day(said.as_of)}" if said.as_of is not None else ""
    cut = f", counting {_messages(said.cut[0])} of the log" if len(said.cut) == 1 else ""
    figures = f" (phi {said.phi:.2f}, kappa {said.kappa:.2f})"
    left = len(said.not_covered)
    more = "larger --budget" if "budget" in said.reasons else "higher --k"
    rest = f" A {more} would follow {counted(left, 'weaker match', 'weaker matches')} too." if left else ""
    if said.complete:
        return Text.assemble(("✔ complete", IN_FORCE), f" for {anchors}{since}{cut}{figures}.{rest}")
    return Text.assemble(("✘ not complete", BAD), f": {why(said.reasons)}. It covers {anchors}{since}{cut}.{rest}")


def left_out(scopes: Sequence[Plausible]) -> Iterator[Text]:
    """The likeliest scopes that the question may mean and of which the answer covers nothing, if there are any."""
    found = [f"{one.scope or 'what is in no scope'} ({one.belief:.2f})" for one in scopes if not one.coverage]
    if found:
        more = f"; and {counted(len(found) - LEFT_MAX, 'other')}" if len(found) > LEFT_MAX else ""
        yield words(f"It may also mean what is not covered: {'; '.join(found[:LEFT_MAX])}{more}.", FAINT)


def _messages(cut: int) -> str:
    return "the only message" if cut == 1 else f"the first {cut:,} messages"


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
