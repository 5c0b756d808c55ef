"""What became of a publication, counted.

Promise: every receipt counts exactly once under its outcome; a rejection keeps one example a code.
Cost: memory for the kinds of trouble, never for the documents.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Self

from msgspec import Struct
from rich import box
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from stream_car.cli.console import words
from stream_car.cli.hints import advised
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, WARN, counted
from stream_car.ingest.ingest import FeedStep
from stream_car.processing.receipts import Receipt

PLACED = frozenset({"accepted"})  # outcomes of documents that could have joined a scope
MEANING = {
    "accepted": "taken in",
    "pending": "taken in, but wait for their time",
    "duplicate": "known already",
    "older": "a higher revision is known, or this one was retracted",
    "retracted": "retractions",
    "nothing": "retract what was never said",
    "rejected": "refused and kept",
    "control": "records of the engine itself",
}


class Lacking(Struct, frozen=True, kw_only=True, order=True):
    """How many documents of a type lacked a key that rules of the type go by."""

    type: str
    key: str
    documents: int


class Refused(Struct, frozen=True, kw_only=True):
    """How many were refused under a code, and the first one's reason."""

    code: str
    documents: int
    example: str


class Misspelt(Struct, frozen=True, kw_only=True, order=True):
    """An attribute that looks like a field, and in how many documents."""

    attribute: str
    field: str
    documents: int


class Summary(Struct, kw_only=True):
    """The counts so far."""

    outcomes: Counter[str]
    in_no_scope: int
    lacking: list[Lacking]
    rejected: list[Refused]
    misspelt: list[Misspelt]

    @classmethod
    def of(cls, receipts: Iterable[Receipt]) -> Self:
        """The summary of these receipts."""
        outcomes: Counter[str] = Counter()
        lacking: Counter[tuple[str, str]] = Counter()
        misspelt: Counter[tuple[str, str]] = Counter()
        codes: Counter[str] = Counter()
        reasons: dict[str, str] = {}
        in_no_scope = 0
        for receipt in receipts:
            outcomes[receipt.outcome] += 1
            in_no_scope += receipt.outcome in PLACED and receipt.scopes == 0
            lacking.update((receipt.type or "", key) for key in receipt.lacking)
            misspelt.update((one.attribute, one.field) for one in receipt.misspelt)
            if receipt.outcome == "rejected":
                code = receipt.code or ""
                codes[code] += 1
                reasons.setdefault(code, receipt.reason or "")
        return cls(
            outcomes=outcomes,
            in_no_scope=in_no_scope,
            lacking=sorted(Lacking(type=kind, key=key, documents=n) for (kind, key), n in lacking.items()),
            rejected=[Refused(code=code, documents=n, example=reasons[code]) for code, n in codes.most_common()],
            misspelt=sorted(Misspelt(attribute=a, field=f, documents=n) for (a, f), n in misspelt.items()),
        )


def draw(said: Summary) -> RenderableType:
    """The summary for people."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("outcome")
    table.add_column("documents", justify="right")
    table.add_column("", style=FAINT)
    for outcome, count in said.outcomes.most_common():
        style = BAD if outcome == "rejected" else IN_FORCE if outcome == "accepted" else ""
        table.add_row(Text(outcome, style), f"{count:,}", MEANING.get(outcome, ""))
    lines: list[RenderableType] = [table]
    if said.in_no_scope:
        documents, them = counted(said.in_no_scope, "document"), "it" if said.in_no_scope == 1 else "them"
        lines.append(Text(f"{documents} joined no scope: rules cannot void {them} or void by {them}.", WARN))
    lines += [
        words(f"  {item.type} lacked {item.key} ({counted(item.documents, 'document')})", WARN) for item in said.lacking
    ]
    lines += [
        words(
            f"  `{item.attribute}` is kept as an attribute ({counted(item.documents, 'document')}); "
            f"did you mean the field `{item.field}`?",
            WARN,
        )
        for item in said.misspelt
    ]
    if said.rejected:
        lines.append(Text("Rejected:", BAD))
        lines += [words(f"  {item.code} ({item.documents:,}), for one: {item.example}") for item in said.rejected]
        lines.append(advised("See them with their bytes", "rejected list", FAINT))
    return Lines(*lines)


KEPT_MAX = 1000
SHOWN_MAX = 10


class Refusal(Struct, frozen=True, kw_only=True):
    """A piece that could not be read, and why."""

    file: str
    where: str
    code: str
    reason: str
    id: str | None = None


class Feed(Struct, kw_only=True):
    """What was read. `unchanged` files were as they had been; `known` records said nothing new.

    `ties` are statements that no order of the publisher's tells apart from another of the same time.
    """

    format: str
    files: int = 0
    unchanged: int = 0
    records: int = 0
    known: int = 0
    documents: int = 0
    ties: int = 0
    refused: int = 0
    refusals: list[Refusal] = []

    def add(self, step: FeedStep) -> None:
        """Count one step."""
        if step.unchanged is not None:
            self.unchanged += 1
            self.refused += step.unchanged.rejected
        elif step.rejected is not None:
            self.refuse(step)
        elif step.conversion is not None:
            said = step.conversion
            self.records += said.records
            self.known += said.known
            self.documents += len(said.documents)
            self.ties += said.ties

    def refuse(self, step: FeedStep) -> None:
        """Count a refusal."""
        self.refused += 1
        if len(self.refusals) < KEPT_MAX:
            self.refusals.append(refusal(step))


class FedSummary(Struct, kw_only=True):
    """What was read, and what became of its documents."""

    feed: Feed
    published: Summary


def refusal(step: FeedStep) -> Refusal:
    """The refusal that a step tells of."""
    assert step.rejected is not None
    return Refusal(
        file=step.file.shown,
        where=step.where,
        code=step.rejected.code,
        reason=step.rejected.reason,
        id=step.rejected.document_id,
    )


def draw_feed(said: FedSummary) -> RenderableType:
    """Both for people."""
    lines = list(_feed(said.feed))
    if said.published.outcomes:
        lines.append(draw(said.published))
    return Lines(*lines)


def _feed(said: Feed) -> Iterable[RenderableType]:
    read = said.files - said.unchanged
    head = f"{counted(said.records, 'record')} of {counted(read, 'file')} read: {counted(said.documents, 'document')}."
    if not said.documents:
        head = f"Nothing new in {counted(said.files, 'file')}."
    yield Text(head, IN_FORCE if said.documents else "bold")
    if said.unchanged:
        yield Text(f"{counted(said.unchanged, 'file')} unchanged since the last time.", FAINT)
    if said.known:
        yield Text(f"{counted(said.known, 'record')} said nothing new.", FAINT)
    if said.ties:
        yield Text(
            f"{counted(said.ties, 'statement')} of the same time as another about the same thing: "
            "neither voids the other, both are in force.",
            WARN,
        )
    if said.refused:
        yield Text(f"{counted(said.refused, 'piece')} could not be read, and changed nothing:", BAD)
        yield from (words(f"  {one.file}, {one.where} ({one.code}): {one.reason}") for one in said.refusals[:SHOWN_MAX])
        if said.refused > SHOWN_MAX:
            yield Text(f"  and {said.refused - SHOWN_MAX:,} more; --json lists them.", FAINT)
