"""What became of a publication, and of the feed that it came from, counted.

Promise: every receipt is counted once under its outcome, and each code of a rejection keeps one example.
Cost: memory for each kind of problem, not for documents.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Self

from msgspec import Struct
from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.cli.console import words
from stream_car.cli.hints import advise
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, WARN, Rows, counted
from stream_car.ingest.ingest import FeedStep
from stream_car.processing.receipts import Receipt

MEANINGS = {
    "accepted": "stored",
    "pending": "stored; they wait for their time",
    "duplicate": "stored before",
    "older": "a higher revision is stored, or the document was retracted",
    "retracted": "retractions",
    "nothing": "retractions of documents that were never published",
    "rejected": "not accepted; kept for correction",
    "control": "internal records",
}
REJECTIONS_MAX = 1000  # rejected pieces listed in JSON
SHOWN_MAX = 10  # rejected pieces shown to people


class MissingKey(Struct, frozen=True, kw_only=True, order=True):
    """How many documents of a type lack a key that the rules of the type need."""

    type: str
    key: str
    documents: int


class RejectedCode(Struct, frozen=True, kw_only=True):
    """How many documents were rejected with a code, and the reason of the first one."""

    code: str
    documents: int
    example: str


class TypoCount(Struct, frozen=True, kw_only=True, order=True):
    """An attribute that is probably a misspelt field, and how many documents have it."""

    attribute: str
    field: str
    documents: int


class UnknownKeyCount(Struct, frozen=True, kw_only=True, order=True):
    """A scope key that no rule pack mentions, the one that was probably meant, and how many documents have it."""

    key: str
    meant: str
    documents: int


class HiddenCount(Struct, frozen=True, kw_only=True, order=True):
    """A character in ids or in values of a scope key that readers cannot see, and how many documents have it."""

    place: str
    character: str
    documents: int


class Summary(Struct, kw_only=True):
    """The receipts of a publication, counted. `in_no_scope` documents neither supersede nor are superseded by rules."""

    outcomes: Counter[str]
    in_no_scope: int
    missing_keys: list[MissingKey]
    rejected: list[RejectedCode]
    likely_typos: list[TypoCount]
    unknown_keys: list[UnknownKeyCount]
    hidden_characters: list[HiddenCount]

    @classmethod
    def of(cls, receipts: Iterable[Receipt]) -> Self:
        """Return the summary of these receipts."""
        outcomes: Counter[str] = Counter()
        keys: Counter[tuple[str, str]] = Counter()
        typos: Counter[tuple[str, str]] = Counter()
        unknown: Counter[tuple[str, str]] = Counter()
        hidden: Counter[tuple[str, str]] = Counter()
        codes: Counter[str] = Counter()
        reasons: dict[str, str] = {}
        in_no_scope = 0
        for receipt in receipts:
            outcomes[receipt.outcome] += 1
            in_no_scope += receipt.outcome == "accepted" and receipt.scopes == 0
            keys.update((receipt.type or "", key) for key in receipt.missing_keys)
            typos.update((typo.attribute, typo.field) for typo in receipt.likely_typos)
            unknown.update((key.key, key.meant) for key in receipt.unknown_keys)
            hidden.update((name.place, name.character) for name in receipt.hidden_characters)
            if receipt.outcome == "rejected":
                code = receipt.code or ""
                codes[code] += 1
                reasons.setdefault(code, receipt.reason or "")
        return cls(
            outcomes=outcomes,
            in_no_scope=in_no_scope,
            missing_keys=sorted(MissingKey(type=kind, key=key, documents=n) for (kind, key), n in keys.items()),
            rejected=[RejectedCode(code=code, documents=n, example=reasons[code]) for code, n in codes.most_common()],
            likely_typos=sorted(TypoCount(attribute=a, field=f, documents=n) for (a, f), n in typos.items()),
            unknown_keys=sorted(UnknownKeyCount(key=key, meant=m, documents=n) for (key, m), n in unknown.items()),
            hidden_characters=sorted(HiddenCount(place=p, character=c, documents=n) for (p, c), n in hidden.items()),
        )


def draw(summary: Summary) -> RenderableType:
    """Draw a summary."""
    if not summary.outcomes:
        return Text("There was nothing to publish: the input has no documents.", WARN)
    styles = {"accepted": IN_FORCE, "rejected": BAD}
    rows = [
        (Text(outcome, styles.get(outcome, "")), Text(f"{count:,}"), Text(MEANINGS.get(outcome, ""), FAINT))
        for outcome, count in summary.outcomes.most_common()
    ]
    table = Rows(("outcome", "documents", ""), rows, heads=2, whole=(0, 1))
    return Lines(table, *_warnings(summary), *_rejections(summary))


def _warnings(summary: Summary) -> Iterator[Text]:
    if summary.in_no_scope:
        subject = counted(summary.in_no_scope, "document is", "documents are")
        them = "it" if summary.in_no_scope == 1 else "them"
        yield Text(f"{subject} in no scope, so no rule applies to {them}.", WARN)
    for missing in summary.missing_keys:
        verb = "lacks" if missing.documents == 1 else "lack"
        subject = f"{counted(missing.documents, 'document')} of the type {missing.type}"
        yield words(f"  {subject} {verb} the key {missing.key}", WARN)
    for typo in summary.likely_typos:
        subject = counted(typo.documents, "document has", "documents have")
        guess = f"Did you mean `{typo.field}`?"
        yield words(f"  {subject} the attribute `{typo.attribute}`. {guess}", WARN)
    for unknown in summary.unknown_keys:
        subject = counted(unknown.documents, "document has", "documents have")
        guess = f" Did you mean `{unknown.meant}`?" if unknown.meant else ""
        yield words(f"  {subject} the scope key `{unknown.key}`, which no rule uses.{guess}", WARN)
    for name in summary.hidden_characters:
        subject = counted(name.documents, "document has", "documents have")
        place = "id" if name.place == "id" else f"scope key {name.place}"
        yield words(f"  {subject} the invisible character {name.character} in the {place}.", WARN)


def _rejections(summary: Summary) -> Iterator[Text]:
    if summary.rejected:
        yield Text("Rejected:", BAD)
        for rejected in summary.rejected:
            yield words(f"  {rejected.code} ({rejected.documents:,}), for example: {rejected.example}")
        yield advise("See them with their bytes", "rejected list", FAINT)


class RejectedPiece(Struct, frozen=True, kw_only=True):
    """A piece of a feed that could not be read, and why."""

    file: str
    where: str
    code: str
    reason: str
    id: str | None = None

    @classmethod
    def of(cls, step: FeedStep) -> Self:
        """Return the rejected piece of a step that has one."""
        error = step.rejected
        assert error is not None
        return cls(file=step.file.shown, where=step.where, code=error.code, reason=error.reason, id=error.document_id)

    def __str__(self) -> str:
        return f"{self.file}, {self.where} ({self.code}): {self.reason}"


class Feed(Struct, kw_only=True):
    """What was read of a feed.

    `unchanged` files are as they were at the last run; `known` records are the same as before. `ties` are documents
    that nothing orders against another one of the same time.
    """

    format: str
    files: int = 0
    unchanged: int = 0
    records: int = 0
    known: int = 0
    documents: int = 0
    ties: int = 0
    rejected: int = 0
    rejections: list[RejectedPiece] = []

    def add(self, step: FeedStep) -> None:
        """Count a step."""
        if step.unchanged is not None:
            self.unchanged += 1
            self.rejected += step.unchanged.rejected
        elif step.rejected is not None:
            self.rejected += 1
            if len(self.rejections) < REJECTIONS_MAX:
                self.rejections.append(RejectedPiece.of(step))
        elif step.conversion is not None:
            self.records += step.conversion.records
            self.known += step.conversion.known
            self.documents += len(step.conversion.documents)
            self.ties += step.conversion.ties

    @property
    def has_news(self) -> bool:
        """Whether anything was published or rejected."""
        return bool(self.documents or self.rejected)


class FeedSummary(Struct, kw_only=True):
    """What was read of a feed, and what became of its documents."""

    feed: Feed
    published: Summary

    @property
    def has_rejections(self) -> bool:
        """Whether a piece of the feed or a document was rejected."""
        return bool(self.feed.rejected or self.published.rejected)


def draw_feed(summary: FeedSummary) -> RenderableType:
    """Draw what was read of a feed, and what became of its documents."""
    lines = list(_feed(summary.feed))
    return Lines(*lines, draw(summary.published)) if summary.published.outcomes else Lines(*lines)


def _feed(feed: Feed) -> Iterator[Text]:
    if feed.documents:
        read = f"{counted(feed.records, 'record')} of {counted(feed.files - feed.unchanged, 'file')} read"
        yield Text(f"{read}: {counted(feed.documents, 'document')}.", IN_FORCE)
    else:
        yield Text(f"Nothing new in {counted(feed.files, 'file')}.", "bold")
    if feed.unchanged:
        yield Text(f"{counted(feed.unchanged, 'file has', 'files have')} not changed since the last run.", FAINT)
    if feed.known:
        yield Text(f"{counted(feed.known, 'record')} brought nothing new.", FAINT)
    if feed.ties:
        subject = counted(feed.ties, "document has", "documents have")
        yield Text(f"{subject} the same time as another one on the same subject, so both are in force.", WARN)
    if feed.rejected:
        yield Text(f"{counted(feed.rejected, 'piece')} could not be read and changed nothing:", BAD)
        yield from (words(f"  {piece}") for piece in feed.rejections[:SHOWN_MAX])
        if feed.rejected > SHOWN_MAX:
            yield Text(f"  and {feed.rejected - SHOWN_MAX:,} more. List them with --json.", FAINT)


def draw_round(summary: FeedSummary) -> RenderableType:
    """Draw what a round of `follow` brought, in a line or two."""
    feed, outcomes = summary.feed, summary.published.outcomes
    if not feed.has_news:
        return Text(f"Nothing new in {counted(feed.files, 'file')}.", FAINT)
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in outcomes.most_common())
    head = f"{counted(feed.records, 'record')} of {counted(feed.files, 'file')}: {counts or 'nothing new'}"
    return Lines(Text(head), *(words(f"  could not be read: {piece}", BAD) for piece in feed.rejections))
