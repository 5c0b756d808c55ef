"""Frontiers and timelines as one table of records: since when each holds, its state, and what replaced it.

Promise: values in, rich texts out, as in `render`. A document of several scopes has one line. Superseded editions of a
record have none if a later edition of it has one; they are counted.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.cli.console import words
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, VOID, WARN, Rows, counted
from stream_car.core.rule_pack import REVISED
from stream_car.core.scope_names import RECORD
from stream_car.queries import answers as a
from stream_car.queries.queries import PACKAGE

COLUMNS = ("since", "until", "state", "record", "title", "about", "replaced by")
TITLE = 4
PublishedScope = Sequence[Mapping[str, Sequence[str]]]


class RecordLine(Struct, frozen=True, kw_only=True):
    """A line of the table, about a document that stands for its record."""

    id: str
    since: datetime
    until: datetime | None = None
    is_superseded: bool = False
    state: str
    outcome: str
    title: str
    scope: PublishedScope
    by: str = ""

    @property
    def record(self) -> str:
        """The record of which the document is an edition, or else its id."""
        return next((value for item in self.scope for value in item.get(RECORD, ())), self.id)

    @property
    def about(self) -> str:
        """The packages of the record, or else its names of the key that has the fewest, without its own name."""
        names: dict[str, dict[str, None]] = {}
        for item in self.scope:
            for key, values in item.items():
                names.setdefault(key, {}).update(dict.fromkeys(values))
        names = {PACKAGE: names[PACKAGE]} if PACKAGE in names else names
        others = [[name for name in values if name.casefold() != self.record.casefold()] for values in names.values()]
        shown = min((values for values in others if values), key=len, default=[])
        return f"{shown[0]} and {len(shown) - 1} more" if len(shown) > 1 else "".join(shown)


def frontiers(listed: Sequence[a.Frontier]) -> RenderableType:
    """Draw what is in force in scopes, latest first, and what another scope or a link supersedes."""
    lines = [_of_evidence(document) for frontier in listed for document in frontier.in_force]
    lines += [_of_evidence(item.document, by=item.by) for frontier in listed for item in frontier.blocked]
    return _table(lines, is_complete=all(frontier.complete for frontier in listed), latest_first=True)


def histories(listed: Sequence[a.History]) -> RenderableType:
    """Draw the timelines of scopes, oldest first: a line for each record, from its first edition to its end."""
    members = [member for history in listed for member in history.members]
    lines = [
        RecordLine(
            id=member.id,
            since=member.time,
            until=member.ended.time if member.ended else None,
            is_superseded=member.ended is not None,
            state=member.outcome or member.state,
            outcome=member.outcome,
            title=member.title or member.id,
            scope=member.scope,
            by=member.ended.id if member.ended else "",
        )
        for member in members
    ]
    return _table(lines, is_complete=all(history.complete for history in listed), latest_first=False)


def _of_evidence(document: a.Evidence, *, by: str = "") -> RecordLine:
    return RecordLine(
        id=document.id,
        since=document.time,
        is_superseded=bool(by),
        state=document.outcome or document.state,
        outcome=document.outcome,
        title=document.title or document.id,
        scope=document.scope,
        by=by,
    )


def _table(lines: Iterable[RecordLine], *, is_complete: bool, latest_first: bool) -> RenderableType:
    documents = {line.id: line for line in sorted(lines, key=lambda line: (line.since, line.id))}
    shown = _one_a_record(documents.values(), keeps_first_time=not latest_first)
    records = {line.id: line.record for line in documents.values()}
    rows = [_row(line, records) for line in (reversed(shown) if latest_first else shown)]
    used = [at for at in range(len(COLUMNS)) if any(row[at] for row in rows)]
    table = Rows(
        [COLUMNS[at] for at in used],
        [[row[at] for at in used] for row in rows],
        heads=4 - (1 not in used),
        whole=[place for place, at in enumerate(used) if at < 2],
        shortened=[place for place, at in enumerate(used) if at == TITLE],
    )
    hidden = len(documents) - len(shown)
    notes = [Text("Not all members are shown.", WARN)] if not is_complete else []
    if hidden:
        subject = counted(hidden, "superseded edition is", "superseded editions are")
        notes.append(Text(f"{subject} not shown. (details: --verbose)", FAINT))
    return Lines(table, *notes)


def _one_a_record(documents: Iterable[RecordLine], *, keeps_first_time: bool) -> list[RecordLine]:
    """Return the documents in force, and of each record without any the latest. They come and go in order of time."""
    records: dict[str, list[RecordLine]] = {}
    for line in documents:
        records.setdefault(line.record, []).append(line)
    shown: list[RecordLine] = []
    for editions in records.values():
        chosen = [line for line in editions if not line.is_superseded] or editions[-1:]
        since = editions[0].since
        shown += [replace(line, since=since) for line in chosen] if keeps_first_time else chosen
    return sorted(shown, key=lambda line: (line.since, line.id))


def _row(line: RecordLine, records: Mapping[str, str]) -> Sequence[Text]:
    style = VOID if line.is_superseded else WARN if line.outcome else IN_FORCE
    if line.outcome:
        state = words(line.state, FAINT if line.outcome == REVISED else BAD)
    else:
        state = words(f"in force, {line.state}" if line.state else "in force", IN_FORCE)
    return (
        _day(line.since),
        _day(line.until) if line.until is not None else Text(),
        state,
        words(line.record),
        words(line.title, style),
        words(line.about),
        words(records.get(line.by, line.by) if records.get(line.by) != line.record else line.by),
    )


def _day(time: datetime) -> Text:
    return Text(time.date().isoformat())
