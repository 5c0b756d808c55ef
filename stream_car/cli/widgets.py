"""The small parts of what people see: a time, a document, a chain, a certificate, a table.

Promise: values in, rich texts out. Nothing here prints, reads or decides. In force is green, superseded is struck out,
trouble is red or yellow; the words alone say the same, so nothing is lost without colours.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import get_args

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group as Lines, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from stream_car.cli.console import words
from stream_car.codec.times import format_time, to_micros
from stream_car.queries.answers import (
    Certificate,
    Controlling,
    DocumentStatus,
    Evidence,
    Group,
    Incomplete,
    PlausibleScope,
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
REPLACED_MAX = 3  # documents that a document replaces
SCOPES_MAX = 3  # scopes not covered that are named
COLUMN_GAP = 3  # characters around a column

REASONS: Mapping[Incomplete, str] = {
    "cycle": "documents supersede one another",
    "successor_missing": "a document names a successor that is not published here",
    "budget": "the budget ran out; repeat the question with fewer anchors or a larger budget",
    "in_flight": "documents are still being applied; repeat the question",
    "pending": "a document waits for its time",
    "unknown": "no document has that name",
    "retracted": "the document was retracted",
    "no_anchor": "no document matches the question",
    "limit": "more documents are in force than are listed",
}
assert set(REASONS) == set(get_args(Incomplete))


def day(time: datetime) -> str:
    """Return a time for people: the day alone if the publisher gave no hour."""
    return format_time(to_micros(time)).removesuffix("T00:00:00Z").replace("T", " ")


def name(document: Evidence) -> str:
    """Return what people call the document: its title, or else its id."""
    return document.title or document.id


def facts(document: Evidence) -> Text:
    """Return one line about a document: its id, type, time, source and address."""
    parts = (document.id, document.type, day(document.time), document.source, document.url)
    return words(" · ".join(filter(None, parts)), FAINT)


def status_text(status: DocumentStatus) -> Text:
    """Return a status in words."""
    return Text(status.replace("_", " "), STATUS_STYLES[status])


def arrow(rule: str) -> Text:
    """Return `──rule──▶`."""
    return words(f" ──{rule}──▶ ", "cyan")


def chain(start: str, path: Sequence[Step], start_style: str = VOID) -> Text:
    """Return the path from a document to what controls it: `anchor ──rule──▶ ... ──rule──▶ controlling`."""
    line = words(start, start_style if path else IN_FORCE)
    for step in path:
        line = Text.assemble(line, arrow(step.rule), words(step.id, IN_FORCE if step is path[-1] else VOID))
    return line


def controlled(
    groups: Sequence[Group], documents: Sequence[Evidence] | None = None, *, text_max: int = 0, with_paths: bool = True
) -> RenderableType:
    """Return documents in force, numbered, each with what it replaces; then what is wrong with a group.

    Without `documents`, all that control the groups. Of their texts, the first `text_max` characters are shown.
    """
    if documents is None:
        controlling = (control.document for group in groups for control in group.controlling)
        documents = tuple({document.id: document for document in controlling}.values())
    items = [Lines(*_document(document, groups, text_max, with_paths=with_paths)) for document in documents]
    warnings = (indented(line) for group in groups for line in group_problems(group))
    return Lines(*([numbered(items)] if items else []), *warnings)


def _document(
    document: Evidence, groups: Sequence[Group], text_max: int, *, with_paths: bool
) -> Iterator[RenderableType]:
    yield words(name(document), IN_FORCE)
    text = " ".join(document.text.split())
    if text and text_max:
        yield words(text if len(text) <= text_max else text[:text_max].rpartition(" ")[0] + " ...")
    replaced: dict[str, Text] = {}
    paths: list[Text] = []
    for group in groups:
        known = {evidence.id: evidence for evidence in (group.anchor, *group.superseded)}
        for path in [control.path for control in _controls(document, [group]) if control.path]:
            paths.append(chain(group.anchor.id, path))
            for old in (group.anchor.id, *(step.id for step in path[:-1])):
                if old in known:
                    replaced[old] = words(f"{name(known[old])} ({day(known[old].time)})", VOID)
    titles = [*replaced.values()][:REPLACED_MAX]
    more = f", and {len(replaced) - REPLACED_MAX} more" if len(replaced) > REPLACED_MAX else ""
    since = f"In force since {day(document.time)}."
    yield Text.assemble(f"{since} Replaces ", Text(", ").join(titles), more) if titles else Text(since)
    yield facts(document)
    yield from paths if with_paths else ()
    yield from amendments(document, groups)


def _controls(document: Evidence, groups: Sequence[Group]) -> Iterator[Controlling]:
    return (control for group in groups for control in group.controlling if control.document.id == document.id)


def amendments(document: Evidence, groups: Sequence[Group]) -> Iterator[RenderableType]:
    """Yield what must be read together with a document in force, and how each of these amends it."""
    control = next(_controls(document, groups), None)
    if control is None:
        return
    for amendment in control.amendments:
        title = words(f"{name(amendment.document)} ({day(amendment.document.time)})", IN_FORCE)
        yield Text.assemble(("amended by: ", "magenta"), title)
        yield indented(chain(document.id, amendment.path, start_style=IN_FORCE))
    if control.amendments_more:
        yield Text(f"and by {counted(control.amendments_more, 'other document')}", "magenta")


def group_problems(group: Group) -> Iterator[Text]:
    """Yield what is wrong with a group: nothing controls it, a successor is missing, or there is a cycle."""
    if not group.controlling:
        yield Text.assemble(("nothing in force controls ", WARN), words(name(group.anchor), VOID))
    if group.missing:
        yield words(f"named as successor, but not published here: {', '.join(group.missing)}", WARN)
    if group.cycle:
        yield words(f"these supersede one another: {', '.join(group.cycle)}", WARN)


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


def certificate_line(certificate: Certificate, *, verbose: bool = False, advise: bool = True) -> Text:
    """Return what the answer guarantees, and as of when; with `verbose`, every figure of it.

    With `advise`, it names the options that show or cover more.
    """
    head, reasons = ("✔ Complete", IN_FORCE), ""
    if not certificate.complete:
        head, reasons = ("✘ Not complete", BAD), ": " + "; ".join(REASONS[reason] for reason in certificate.reasons)
    time = f" for {day(certificate.as_of)}," if certificate.as_of is not None else ""
    as_of = f"{time} as of {counted(sum(certificate.cut), 'message')}" if certificate.cut else time.rstrip(",")
    line = Text.assemble(head, f"{as_of}{reasons}.")
    if certificate.not_covered and advise:
        more = "larger --budget" if "budget" in certificate.reasons else "higher --k"
        matches = counted(len(certificate.not_covered), "weaker match", "weaker matches")
        line.append(f" A {more} would follow {matches} too.")
    if verbose:
        line.append(
            f" Anchors covered: {len(certificate.covered)}. phi {certificate.phi:.2f}, kappa {certificate.kappa:.2f}, "
            f"coverage {certificate.coverage:.2f}. Keys read: {certificate.lookups} in {certificate.rounds} rounds. "
            f"Generation {certificate.generation}, offsets {' '.join(map(str, certificate.cut))}.",
            FAINT,
        )
    elif advise:
        line.append(" (details: --verbose)", FAINT)
    return line


def left_out(scopes: Sequence[PlausibleScope]) -> Iterator[Text]:
    """Yield the likeliest scopes that the question may mean and that the answer does not cover, if there are any."""
    uncovered = [scope for scope in scopes if not scope.coverage]
    names = [f"{scope.scope or 'documents in no scope'} ({scope.probability:.2f})" for scope in uncovered[:SCOPES_MAX]]
    if names:
        more = f"; and {counted(len(uncovered) - SCOPES_MAX, 'other')}" if len(uncovered) > SCOPES_MAX else ""
        yield words(f"The question may also mean what is not covered: {'; '.join(names)}{more}.", FAINT)


class Rows:
    """Rows under the names of their columns: a table if it fits, otherwise a list.

    In a list, each row begins with its first `heads` cells, and every other cell that is not empty has a line of its
    own. Columns in `whole` (dates, numbers) are never wrapped.
    """

    def __init__(
        self, names: Sequence[str], rows: Iterable[Sequence[Text]], *, heads: int = 1, whole: Sequence[int] = ()
    ) -> None:
        self._names = names
        self._rows = list(rows)
        self._heads = heads
        self._whole = whole

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width - COLUMN_GAP * len(self._names))
        if widths:
            table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
            for column, width in zip(self._names, widths, strict=True):
                table.add_column(column, overflow="fold", width=width)
            for row in self._rows:
                table.add_row(*row)
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
