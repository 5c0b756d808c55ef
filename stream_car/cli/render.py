"""Whole answers for people, as rich renderables.

Promise: values in, renderables out. In force is green, void is struck out, trouble is red or yellow;
the words alone say the same, so nothing is lost without colours.
"""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group as Lines
from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from stream_car.cli.console import words
from stream_car.cli.hints import advised
from stream_car.cli.widgets import (
    BAD,
    FAINT,
    IN_FORCE,
    VOID,
    WARN,
    Rows,
    amendments,
    arrow,
    certificate_line,
    chain,
    controlled,
    counted,
    day,
    facts,
    indented,
    left_out,
    name,
    numbered,
)
from stream_car.core.changes import Cause, FrontierChange, Member, Run
from stream_car.core.scope_names import AMENDED, LINK, keys_of
from stream_car.queries.answers import (
    Answer,
    Audit,
    Bond,
    Evidence,
    Explanation,
    Frontier,
    Group,
    Held,
    History,
    Rejected,
    Replayed,
    Resolution,
    Told,
    Violation,
)
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


STATUS_STYLE = {"active": IN_FORCE, "void": BAD, "pending": WARN, "retracted": BAD, "unknown": WARN}


def answer(said: Answer, searched: Sequence[str] = ()) -> RenderableType:
    """The results, each with its chains; what else may be meant; then the certificate.

    `searched` are the types that a search looks at, where it looks at some only.
    """
    groups = telling(said)
    body = controlled(groups, said.results) if groups else _nothing_found(searched)
    left = left_out(said.scopes)
    lines = [words(said.question, "bold"), Text(), body, Text(), *left, certificate_line(said.certificate)]
    if said.pending:
        waiting = "document waits for its" if said.pending == 1 else "documents wait for their"
        lines.append(advised(f"{said.pending:,} {waiting} time", "pending", WARN))
    if said.unread:
        unread = counted(said.unread, "word")
        lines.append(Text(f"The question has too many words: the commonest ({unread}) were not looked for.", WARN))
    if said.behind:
        lines.append(Text(f"{counted(said.behind, 'document')} found by words only so far: vectors are made.", WARN))
    return Lines(*lines)


def _nothing_found(searched: Sequence[str]) -> RenderableType:
    lines = [advised("Nothing found. Try other words, or look at a scope", "frontier KEY=VALUE", WARN)]
    if searched:
        lines.append(
            words(f"A search looks only at documents of the anchor types: {', '.join(sorted(searched))}.", FAINT)
        )
    return Lines(*lines)


def telling(said: Answer) -> list[Group]:
    """The groups of an answer that a person should see."""
    wanted = {document.id for document in said.results}
    return [
        group
        for group in said.groups
        if not group.complete or any(control.document.id in wanted for control in group.controlling)
    ]


def resolution(said: Resolution) -> RenderableType:
    """What a name stands for now."""
    head = Text.assemble(words(said.asked, "bold"), " is ", (said.status, STATUS_STYLE[said.status]))
    if said.via in {"chunk", "record"}:
        head.append(f" (read as a {said.via})", FAINT)
    return Lines(head, controlled(said.groups)) if said.groups else head


FAULTS = {
    "unknown": "no document has that name",
    "retracted": "it was retracted",
    "pending": "it waits for its time, so it does not count yet",
    "stranded": "it is void, and nothing that is here controls it",
}


def audit(said: Audit) -> RenderableType:
    """Whether a set satisfies Theorem 4, and if not, what repairs it."""
    faults = [*_violations(said.violations), *_absent(said)]
    if said.holds:
        head = Text.assemble(("✔ holds", IN_FORCE), ": nothing in force is missing, nothing void stands alone.")
    else:
        wrong = counted(len(faults), "document is wrong", "documents are wrong")
        head = Text.assemble(("✘ does not hold", BAD), f": {wrong}.")
    lines: list[RenderableType] = [head, *faults]
    if not said.holds:
        repaired = words(" ".join(said.repaired), IN_FORCE) if said.repaired else Text("nothing is left of it", WARN)
        lines.append(Text.assemble("the set repaired: ", repaired))
    if said.certificate is not None:
        lines.append(certificate_line(said.certificate))
    return Lines(*lines)


def _violations(violations: Sequence[Violation]) -> Iterator[RenderableType]:
    """One entry for every document that breaks a condition, even where it breaks both."""
    of: dict[str, list[Violation]] = {}
    for violation in violations:
        of.setdefault(violation.id, []).append(violation)
    for document, some in of.items():
        # What adds everything in force that is lacking also gives a void document its superseder.
        violation = next((one for one in some if one.condition == "frontier_inclusion"), some[0])
        yield Lines(*_violation(document, violation, len(some) > 1))


def _violation(document: str, violation: Violation, is_both: bool) -> Iterator[RenderableType]:
    if is_both:
        fault, joint = "is superseded, and the set lacks what is in force instead", " and "
    elif violation.condition == "frontier_inclusion":
        fault, joint = "leads to what is in force, and the set lacks it", " and "
    else:
        fault, joint = "is superseded, and nothing in the set supersedes it", " or "
    yield indented(Text.assemble(words(document, VOID), f" {fault}"))
    if violation.path:
        yield indented(chain(document, violation.path), 2)
    yield indented(Text.assemble("add ", words(joint.join(violation.add), IN_FORCE)), 2)


def _absent(said: Audit) -> Iterator[RenderableType]:
    """One entry for every name that has no place in a sound set, unless a violation told of it already."""
    told = {violation.id for violation in said.violations}
    named = {"unknown": said.unknown, "retracted": said.retracted, "pending": said.pending, "stranded": said.stranded}
    for status, ids in named.items():
        for one in ids:
            if one not in told:
                yield indented(Text.assemble((f"{status}: ", WARN), words(one), f" ({FAULTS[status]})"))


def frontier(said: Frontier) -> RenderableType:
    """A scope: its active members, and those that are void through something else."""
    members = counted(said.members, "member")
    head = Text.assemble(words(said.scope, "bold"), (f"  {members}, {len(said.active)} in force", FAINT))
    lines: list[RenderableType] = [head]
    for document in said.active:
        lines += [indented(words(name(document), IN_FORCE)), indented(facts(document), 2)]
    for blocked in said.blocked:
        reason = Text.assemble("void through ", words(blocked.scope), ":", arrow(blocked.rule), words(blocked.by))
        lines += [indented(words(name(blocked.document), VOID)), indented(reason, 2)]
    if not said.complete:
        lines.append(Text("Not all members are shown.", WARN))
    return Lines(*lines)


def history(said: History) -> RenderableType:
    """A scope's timeline: from when to when each member held, and what ended it."""
    names = ("from", "until", "document", "type", "ended by")
    table = Rows(names, map(_held, said.members), heads=2, whole=(0, 1))
    rest = [] if said.complete else [Text("Not all members are shown.", WARN)]
    return Lines(words(said.scope, "bold"), table, *rest)


def _held(held: Held) -> tuple[Text, ...]:
    style = VOID if held.ended else IN_FORCE
    until = Text(day(held.ended.time)) if held.ended else Text("in force here", IN_FORCE)
    by = words(f"{held.ended.id} ({held.ended.rule})") if held.ended else Text()
    return Text(day(held.time)), until, words(held.title or held.id, style), words(held.type), by


def explanation(said: Explanation) -> RenderableType:
    """Why a document is or is not in force, scope by scope and link by link."""
    head = Text.assemble(words(said.asked, "bold"), " is ", (said.status, STATUS_STYLE[said.status]))
    lines: list[RenderableType] = [head]
    if said.due is not None:
        lines.append(indented(Text(f"it waits for {day(said.due)}", WARN)))
    if said.document is not None:
        lines += [indented(words(said.document.title)), indented(facts(said.document))]
    if said.bonds:
        lines.append(_bonds(said.bonds))
    if said.group is not None and said.document is not None and said.status == "active":
        lines += [indented(one) for one in amendments(said.document, [said.group])]
    if said.group is not None and said.status != "active":
        lines.append(Text("what controls it now:", "bold"))
        lines.append(controlled([said.group]))
    if said.status == "unknown":
        lines.append(advised("   Nothing has this name. See whether it was rejected", "rejected list", WARN))
    return Lines(*lines)


def _bonds(bonds: Iterable[Bond]) -> RenderableType:
    return Rows(("scope or link", "holds", "void because of"), map(_bond, bonds), whole=(1,))


def _bond(bond: Bond) -> tuple[Text, ...]:
    holds = Text("yes", IN_FORCE) if bond.holds else Text("no", BAD)
    return words(bond.scope), holds, words(", ".join(f"{step.id} ({step.rule})" for step in bond.by))


def rejected_table(items: Sequence[Rejected]) -> RenderableType:
    """Refused input, one row each."""
    if not items:
        return Text("Nothing was rejected.", IN_FORCE)
    rows = ((Text(f"{item.offset}"), Text(item.code, BAD), words(item.id or ""), words(item.reason)) for item in items)
    table = Rows(("offset", "code", "id", "why"), rows, heads=2, whole=(0, 1))
    return Lines(table, advised("See one with its bytes", "rejected show OFFSET", FAINT))


def rejected(item: Rejected) -> RenderableType:
    """One refused input with its bytes as text."""
    bytes_shown = words(item.value.decode("utf-8", "backslashreplace"))
    return Lines(
        Text.assemble(f"input {item.offset} was rejected (", (item.code, BAD), f") at {day(item.append_time)}"),
        words(item.reason),
        Text(),
        bytes_shown,
    )


def replayed(items: Sequence[Replayed], *, is_trial: bool) -> RenderableType:
    """What became of input that was sent again."""
    if not items:
        return Text("Nothing was rejected.", IN_FORCE)
    done = "would be replayed" if is_trial else "replayed"
    return Rows(("offset", "", "now"), (_replayed(item, done) for item in items), heads=2, whole=(0, 1))


def _replayed(item: Replayed, done: str) -> tuple[Text, ...]:
    offset = Text(f"{item.offset}")
    if item.outcome == "refused":
        return offset, Text("still refused", BAD), words(f"{item.code}: {item.reason}")
    if item.outcome == "before":
        return offset, Text("replayed before", FAINT), Text(f"input {item.at}")
    receipt = item.receipt
    now = f"input {receipt.offset}: {receipt.outcome} {receipt.id or ''}" if receipt is not None else ""
    return offset, Text(done, IN_FORCE), words(now)


def ranking(documents: Sequence[Evidence]) -> RenderableType:
    """What plain relevance would have answered: void documents are struck out."""
    return numbered(
        Text.assemble(
            words(name(document), "" if document.active else VOID), ("" if document.active else "  void", BAD)
        )
        for document in documents
    )
