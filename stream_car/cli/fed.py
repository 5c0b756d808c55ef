"""What a feed said, counted, beside what became of its documents.

Promise: every record counts once; refusals are kept up to a number, and counted beyond. Cost: memory for
the refusals kept, never for the feed.
"""

from collections.abc import Iterable

from msgspec import Struct
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.text import Text

from stream_car.cli.console import words
from stream_car.cli.summaries import Summary
from stream_car.cli.summaries import draw as draw_summary
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, WARN, counted
from stream_car.ingest.ingest import Step

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

    def add(self, step: Step) -> None:
        """Count one step."""
        if step.unchanged is not None:
            self.unchanged += 1
            self.refused += step.unchanged.refused
        elif step.refused is not None:
            self.refuse(step)
        elif step.converted is not None:
            said = step.converted
            self.records += said.records
            self.known += said.known
            self.documents += len(said.documents)
            self.ties += said.ties

    def refuse(self, step: Step) -> None:
        """Count a refusal."""
        self.refused += 1
        if len(self.refusals) < KEPT_MAX:
            self.refusals.append(refusal(step))


class FedSummary(Struct, kw_only=True):
    """What was read, and what became of its documents."""

    feed: Feed
    published: Summary


def refusal(step: Step) -> Refusal:
    """The refusal that a step tells of."""
    assert step.refused is not None
    return Refusal(
        file=step.source.shown,
        where=step.where,
        code=step.refused.code,
        reason=step.refused.reason,
        id=step.refused.document_id,
    )


def draw(said: FedSummary) -> RenderableType:
    """Both for people."""
    lines = list(_feed(said.feed))
    if said.published.outcomes:
        lines.append(draw_summary(said.published))
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
