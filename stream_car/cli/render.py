"""Whole answers for people.

Promise: values in, rich texts out. In force is green, superseded is struck out, trouble is red or yellow; the words
alone say the same, so nothing is lost without colours. Scores, positions and other details only with `verbose`.
"""

import sys
from collections.abc import Iterator, Sequence

from rich.console import Group as Lines, RenderableType
from rich.padding import Padding
from rich.text import Text

from stream_car.cli.console import words
from stream_car.cli.hints import advise
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
    status_text,
)
from stream_car.core.changes import Member
from stream_car.core.scope_names import AMENDED, LINK, keys_of
from stream_car.queries import answers as a
from stream_car.subscriptions.events import DocumentChange

EXCERPT_MAX = 400  # characters of a text
ENDINGS = {  # why a document left a frontier
    "voided": "is superseded",
    "link": "is superseded",
    "holds": "is not in force",
    "moved": "left this scope",
    "corrected": "was replaced by its correction",
    "retracted": "was retracted",
}
PROBLEMS = {  # why a name is not part of a safe set
    "unknown": "no document has this name",
    "retracted": "it was retracted",
    "pending": "it waits for its time, so it does not count yet",
    "stranded": "it is superseded, and no document here controls it",
}


# Answers


def answer(answer: a.Answer, searched_types: Sequence[str] = (), *, verbose: bool = False) -> RenderableType:
    """Draw the results, each with what it replaces, and what the answer guarantees.

    `searched_types` are the types that a search reads if these are not all. With `verbose`, draw paths and scores.
    """
    groups = shown_groups(answer)
    lines: list[RenderableType] = [words(answer.question, "bold"), Text()]
    if answer.results or groups:
        text_max = sys.maxsize if verbose else EXCERPT_MAX
        lines.append(controlled(groups, answer.results, text_max=text_max, with_paths=verbose))
    else:
        lines.append(advise("Nothing was found. Try other words, or look at a scope", "frontier KEY=VALUE"))
        if searched_types:
            lines.append(words(f"Only these types are searched: {', '.join(searched_types)}.", FAINT))
    if verbose:
        lines += [_scores(answer), *left_out(answer.scopes)]
    lines += [Text(), certificate_line(answer.certificate, verbose=verbose)]
    if answer.pending:
        subject = counted(answer.pending, "document waits for its time", "documents wait for their time")
        lines.append(advise(subject, "pending"))
    if answer.ignored_terms:
        terms = counted(answer.ignored_terms, "word")
        lines.append(Text(f"The question is too long: its most common words ({terms}) were not searched for.", WARN))
    if answer.vectors_pending:
        subject = counted(answer.vectors_pending, "document")
        lines.append(Text(f"{subject} could be found only by words, because vectors are still being made.", WARN))
    return Lines(*lines)


def _scores(answer: a.Answer) -> RenderableType:
    rows = [
        (words(group.anchor.id), Text(f"{group.score:.3f}"), Text(f"{group.probability:.2f}"))
        for group in answer.groups
    ]
    return Rows(("found by search", "score", "probability"), rows, whole=(1, 2))


def shown_groups(answer: a.Answer) -> list[a.Group]:
    """Return the groups of an answer that lead to a result, or that are not complete."""
    ids = {document.id for document in answer.results}
    return [
        group
        for group in answer.groups
        if not group.complete or any(control.document.id in ids for control in group.controlling)
    ]


def ranking(documents: Sequence[a.Evidence]) -> RenderableType:
    """Draw what search found, in force or not."""
    if not documents:
        return Text("Nothing was found. Try other words.", WARN)
    return numbered(
        words(name(document))
        if document.status == "in_force"
        else Text.assemble(words(name(document), VOID), "  ", status_text(document.status))
        for document in documents
    )


def resolution(resolution: a.Resolution) -> RenderableType:
    """Draw what a name means now."""
    head = Text.assemble(words(resolution.name, "bold"), " is ", status_text(resolution.status))
    if resolution.via in ("chunk", "record"):
        head.append(f" (it names a {resolution.via})", FAINT)
    return Lines(head, controlled(resolution.groups)) if resolution.groups else head


def explanation(explanation: a.Explanation) -> RenderableType:
    """Draw why a document is or is not in force, scope by scope and link by link."""
    lines: list[RenderableType] = [
        Text.assemble(words(explanation.name, "bold"), " is ", status_text(explanation.status))
    ]
    if explanation.due is not None:
        lines.append(indented(Text(f"It waits for {day(explanation.due)}.", WARN)))
    if explanation.document is not None:
        lines += [indented(words(explanation.document.title)), indented(facts(explanation.document))]
    if explanation.memberships:
        rows = map(_membership, explanation.memberships)
        lines.append(Rows(("scope or link", "in force", "superseded by"), rows, whole=(1,)))
    if explanation.status == "unknown":
        lines.append(advise("Nothing has this name. See whether it was rejected", "rejected list"))
    elif explanation.group is not None and explanation.status != "in_force":
        lines += [Text("What controls it now:", "bold"), controlled([explanation.group])]
    elif explanation.group is not None and explanation.document is not None:
        lines += [indented(line) for line in amendments(explanation.document, [explanation.group])]
    return Lines(*lines)


def _membership(membership: a.Membership) -> tuple[Text, ...]:
    is_in_force = Text("yes", IN_FORCE) if membership.holds else Text("no", BAD)
    return words(membership.scope), is_in_force, words(", ".join(f"{step.id} ({step.rule})" for step in membership.by))


# A set that somebody retrieved


def audit(audit: a.Audit, *, verbose: bool = False) -> RenderableType:
    """Draw whether a set is safe, and if not, what repairs it."""
    findings = [*_violations(audit.violations), *_names_to_remove(audit)]
    if audit.holds:
        lines: list[RenderableType] = [
            Text.assemble(("✔ Safe", IN_FORCE), ": nothing in force is missing, and nothing superseded is alone.")
        ]
    else:
        number = counted(len(findings), "document is wrong", "documents are wrong")
        repaired = words(" ".join(audit.repaired), IN_FORCE) if audit.repaired else Text("nothing remains", WARN)
        head = Text.assemble(("✘ Not safe", BAD), f": {number}.")
        lines = [head, *findings, Text.assemble("The repaired set: ", repaired)]
    if audit.certificate is not None:
        lines.append(certificate_line(audit.certificate, verbose=verbose))
    return Lines(*lines)


def _violations(violations: Sequence[a.Violation]) -> Iterator[RenderableType]:
    """Yield an entry per document that breaks a condition, even if it breaks both."""
    by_document: dict[str, list[a.Violation]] = {}
    for violation in violations:
        by_document.setdefault(violation.id, []).append(violation)
    for document, broken in by_document.items():
        # Adding all that is in force and missing also adds what supersedes the document.
        violation = next((item for item in broken if item.condition == "frontier_inclusion"), broken[0])
        is_inclusion = violation.condition == "frontier_inclusion"
        if len(broken) > 1:
            problem = "is superseded, and what is in force instead is missing"
        elif is_inclusion:
            problem = "leads to documents in force that are missing"
        else:
            problem = "is superseded, and nothing in the set supersedes it"
        cure = words((" and " if is_inclusion else " or ").join(violation.add), IN_FORCE)
        head = indented(Text.assemble(words(document, VOID), f" {problem}"))
        path = [indented(chain(document, violation.path), 2)] if violation.path else []
        yield Lines(head, *path, indented(Text.assemble("add ", cure), 2))


def _names_to_remove(audit: a.Audit) -> Iterator[RenderableType]:
    """Yield an entry per name that is not part of a safe set, unless a violation has reported it."""
    reported = {violation.id for violation in audit.violations}
    names = {
        "unknown": audit.unknown,
        "retracted": audit.retracted,
        "pending": audit.pending,
        "stranded": audit.stranded,
    }
    for status, ids in names.items():
        for document in ids:
            if document not in reported:
                yield indented(Text.assemble((f"{status}: ", WARN), words(document), f" ({PROBLEMS[status]})"))


# Scopes


def frontier(frontier: a.Frontier) -> RenderableType:
    """Draw the active members of a scope, and those that something else supersedes."""
    members = f"  {counted(frontier.members, 'member')}, {len(frontier.in_force)} in force"
    lines: list[RenderableType] = [Text.assemble(words(frontier.scope, "bold"), (members, FAINT))]
    for document in frontier.in_force:
        lines += [indented(words(name(document), IN_FORCE)), indented(facts(document), 2)]
    for blocked in frontier.blocked:
        reason = Text.assemble("superseded through ", words(blocked.scope), ":", arrow(blocked.rule), words(blocked.by))
        lines += [indented(words(name(blocked.document), VOID)), indented(reason, 2)]
    return Lines(*lines, *_incomplete(frontier))


def history(history: a.History) -> RenderableType:
    """Draw a scope's timeline: from when to when each member was in force, and what superseded it."""
    columns = ("from", "until", "document", "type", "superseded by")
    table = Rows(columns, map(_timeline_row, history.members), heads=2, whole=(0, 1))
    return Lines(words(history.scope, "bold"), table, *_incomplete(history))


def _timeline_row(member: a.TimelineMember) -> tuple[Text, ...]:
    ended = member.ended
    until = Text(day(ended.time)) if ended else Text("in force here", IN_FORCE)
    title = words(member.title or member.id, VOID if ended else IN_FORCE)
    return (
        Text(day(member.time)),
        until,
        title,
        words(member.type),
        words(f"{ended.id} ({ended.rule})" if ended else ""),
    )


def _incomplete(value: a.Frontier | a.History) -> Iterator[Text]:
    if not value.complete:
        yield Text("Not all members are shown.", WARN)


def pending(document: a.PendingDocument) -> Text:
    """Draw a document that waits for its time."""
    return words(f"{day(document.time)}  {document.id} (revision {document.revision})")


# Changes


def change(change: a.Change, *, verbose: bool = False) -> RenderableType:
    """Draw a change of a frontier: a line for everything that entered or left."""
    scope = words(change.scope, "bold")
    head = Text.assemble(scope, words(f"  {change.position}", FAINT)) if verbose else scope
    return Lines(head, *(Padding.indent(line, 3) for line in change_lines(change)))


def change_lines(change: a.Change) -> Iterator[Text]:
    """Yield a line for every member or run that entered or left, with the cause."""
    cause = change.cause
    for member in change.left:
        yield left_line(member, cause)
    for run in change.left_runs:
        ended = "superseded" if run.why in ("voided", "link") else f"gone ({run.why})"
        yield _line("- ", BAD, f"{run.count} × {run.type} {_are(run)} {ended}{_because(cause, run.rule)}")
    for member in change.entered:
        text = f"{member.id} {member.type}".strip()
        yield _line("+ ", IN_FORCE, f"{text} {_entered(member, cause, keys_of(change.scope))}")
    for run in change.entered_runs:
        yield _line("+ ", IN_FORCE, f"{run.count} × {run.type} {_are(run)} in force here{_because(cause, run.rule)}")


def left_line(member: a.ChangedMember | Member, cause: a.ChangeCause) -> Text:
    """Draw `- CVE-... advisory is superseded, because of TITLE (RULE)`."""
    if member.why == "link":
        by = ": it says so itself" if member.id == cause.id else f": {_named(cause)} names it in `supersedes`"
    else:
        by = "" if member.id == cause.id else _because(cause, member.rule)
    text = words(f"{member.id} {member.type}".strip(), VOID)
    return Text.assemble(("- ", BAD), text, words(f" {ENDINGS[member.why]}{by}"))


def document_change(change: DocumentChange) -> Text:
    """Draw the status of a document now, and the document that caused it."""
    cause, is_caused = change.cause, change.cause.id != change.id
    title, about = change.title or change.id, words(f"  {change.id} · {change.type}".rstrip(" ·"), FAINT)
    by = cause.title or cause.id
    if change.in_force:
        freed = f": {by} was {cause.kind}" if is_caused and cause.kind in ("retracted", "corrected") else ""
        return Text.assemble(("+ ", IN_FORCE), words(title, IN_FORCE), words(f" is in force{freed}"), about)
    ended = ENDINGS.get(change.why, "is superseded in another scope")
    because = _because(cause, change.rule) if is_caused else ""
    return Text.assemble(("- ", BAD), words(title, VOID), words(f" {ended}{because}"), about)


def _entered(member: a.ChangedMember, cause: a.ChangeCause, keys: str) -> str:
    if keys == AMENDED:
        return "amends it by name"
    if keys != LINK:
        is_amending = member.rule and member.id == cause.id
        return f"is in force here, and amends what is here ({member.rule})" if is_amending else "is in force here"
    ended = "retracted" if cause.kind == "retracted" else "corrected"
    if member.id == cause.id:
        return f"is not superseded by a link any more: it was {ended}, and only it said so"
    return f"is not superseded by a link any more: {_named(cause)}, which named it in `supersedes`, was {ended}"


def _line(mark: str, style: str, text: str) -> Text:
    return Text.assemble((mark, style), words(text))


def _named(cause: a.ChangeCause) -> str:
    return f"{cause.id} ({cause.title})" if cause.title else cause.id


def _are(run: a.ChangedRun) -> str:
    return "is" if run.count == 1 else "are"


def _because(cause: a.ChangeCause, rule: str) -> str:
    return f", because of {cause.title or cause.id}" + (f" ({rule})" if rule else "")
