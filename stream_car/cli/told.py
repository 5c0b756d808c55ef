"""Changes of frontiers in words, for people.

Promise: a line says what happened to one document, through which scope, and because of which document;
it claims no more of that document than the change does.
"""

from collections.abc import Iterator

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from stream_car.cli.console import words
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, VOID
from stream_car.core.changes import Cause, FrontierChange, Member, Run
from stream_car.core.rules import AMENDED, LINK, keys_of
from stream_car.queries.answers import Told
from stream_car.subscriptions.events import DocumentChange

ENDED = {
    "voided": "is void now",
    "link": "is void now",
    "holds": "holds no longer",
    "moved": "left this scope",
    "corrected": "gave way to its correction",
    "retracted": "was retracted",
}


def told(said: Told) -> RenderableType:
    """A change of a frontier, under its number."""
    head = Text.assemble((f"{said.oseq:>6}  ", FAINT), words(said.change.scope, "bold"))
    return Lines(head, *(Padding.indent(line, 8) for line in change_lines(said.change)))


def became(said: DocumentChange) -> Text:
    """What became of a document: whether it is in force as of now, and because of which document."""
    cause = said.cause
    called = said.title or said.id
    by = "" if cause.id == said.id else f", because of {_titled(cause)}"
    rule = f" ({said.rule})" if said.rule and by else ""
    about = words(f"  {said.id} · {said.type}".rstrip(" ·"), FAINT)
    if said.active:
        freed = f": {_titled(cause)} was {cause.kind}" if by and cause.kind in ("retracted", "corrected") else ""
        return Text.assemble(("+ ", IN_FORCE), words(called, IN_FORCE), words(f" is in force{freed}"), about)
    ended = ENDED.get(said.why, "is void through another scope")
    return Text.assemble(("- ", BAD), words(called, VOID), words(f" {ended}{by}{rule}"), about)


def _titled(cause: Cause) -> str:
    return cause.title or cause.id


def change_lines(change: FrontierChange) -> Iterator[Text]:
    """One line for every member or run that entered or left, and because of what."""
    cause = change.cause
    for member in change.left:
        yield left_line(member, cause)
    for run in change.left_runs:
        yield Text.assemble(
            ("- ", BAD), words(f"{run.count} × {run.type} {_run_ended(run)}{_because(cause, run.rule)}")
        )
    for member in change.entered:
        said = _entered(member, cause, keys_of(change.scope))
        yield Text.assemble(("+ ", IN_FORCE), words(f"{_member(member)} {said}"))
    for run in change.entered_runs:
        yield Text.assemble(
            ("+ ", IN_FORCE), words(f"{run.count} × {run.type} {_hold(run)} here now{_because(cause, run.rule)}")
        )


def left_line(member: Member, cause: Cause) -> Text:
    """`- CVE-… advisory is void now, because of <title> (rule)`"""
    return Text.assemble(("- ", BAD), words(_member(member), VOID), words(f" {ENDED[member.why]}{_why(member, cause)}"))


def _why(member: Member, cause: Cause) -> str:
    if member.why == "link":
        if member.id == cause.id:
            return ": it says itself that it is superseded"
        return f": {_called(cause)} names it in `supersedes`"
    return "" if member.id == cause.id else _because(cause, member.rule)


def _entered(member: Member, cause: Cause, keys: str) -> str:
    if keys == LINK:
        return _freed(member, cause)
    if keys == AMENDED:
        return "amends it by name now"
    return (
        f"holds here now, and amends what is here ({member.rule})"
        if member.rule and member.id == cause.id
        else "holds here now"
    )


def _freed(member: Member, cause: Cause) -> str:
    """Why no link voids a document any more: who was the last to name it, and what became of that."""
    became = {"retracted": "was retracted"}.get(cause.kind, "was corrected")
    if member.id == cause.id:
        return f"is void by no link any more: it {became}, and it was the last to say that it is superseded"
    return f"is void by no link any more: {_called(cause)}, the last to name it in `supersedes`, {became}"


def _called(cause: Cause) -> str:
    return f"{cause.id} ({cause.title})" if cause.title else cause.id


def _member(member: Member) -> str:
    return f"{member.id} {member.type}".strip()


def _hold(run: Run) -> str:
    return "holds" if run.count == 1 else "hold"


def _run_ended(run: Run) -> str:
    if run.why in ("voided", "link"):
        return "is void now" if run.count == 1 else "are void now"
    return f"left ({run.why})"


def _because(cause: Cause, rule: str) -> str:
    said = f", because of {cause.title or cause.id}"
    return f"{said} ({rule})" if rule else said
