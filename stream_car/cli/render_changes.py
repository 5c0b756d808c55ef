"""Changes and events in words: what entered or left a scope, what became of a document, and because of which other.

Promise: values in, rich texts out, as in `render`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.cli.console import words
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, VOID, WARN, Rows, day, indented, status_text
from stream_car.core.rule_pack import PUBLISHED, REPLACED, REVISED
from stream_car.core.scope_names import AMENDED, LINK, keys_of
from stream_car.queries import answers as a
from stream_car.subscriptions import events as e

NAMED_MAX = 3
ENDINGS = {  # why a document left a frontier
    "voided": "is superseded",
    "link": "is superseded",
    "moved": "left this scope",
    "corrected": "was replaced by its correction",
    "retracted": "was retracted",
}
STATUS_AFTER = {"voided": "superseded", "link": "superseded", "retracted": "retracted"}  # by why it left
ENTRIES = {  # what made a document enter a scope, by the kind of the change that it caused itself
    "placed": "was published",
    "corrected": "was corrected",
    "moved": "was corrected",
    "retracted": "was retracted",
    "released": "came due",
}
RESETS = {  # why a stream begins again
    "cursor_generation": "The rules have changed since the last run. This is what is in force now.",
    "cursor_log": "The last run watched other data, or a backup was restored since. This is what is in force now.",
    "cursor_expired": "The changes since the last run are not kept any more. This is what is in force now.",
    "generation": "The rules have changed. This is what is in force now.",
}


def event(event: e.Event) -> RenderableType | None:
    """Draw an event of a subscription, or return `None` if it says nothing to people."""
    match event:
        case e.RecordChange():
            return record_change(event)
        case e.SnapshotRecord():
            about = words(f"  {event.document.title or event.document.id} · {day(event.document.time)}", FAINT)
            name, style = _with_package(event.record, event.names), WARN if event.outcome else IN_FORCE
            return Text.assemble("= ", words(name, style), words(f" is {event.state_text or 'in force'}"), about)
        case e.DocumentChange():
            return document_change(event)
        case e.ScopeChange():
            return change(event.change)
        case e.SnapshotDocument():
            about = words(f"  {event.id} · {event.type} · {day(event.time)}", FAINT)
            ended = words(f" is {event.outcome_text}", BAD) if event.outcome else ""
            return Text.assemble("= ", words(event.title or event.id, WARN if ended else IN_FORCE), ended, about)
        case e.SnapshotScope(superseded=""):
            head = words(f"{event.scope}{' (continued)' if event.continued else ''}", "bold")
            return Lines(head, *map(_member_line, event.members))
        case e.SnapshotScope():
            return Text.assemble(("- ", BAD), words(event.superseded, VOID), " is superseded by a link")
        case e.Reset():
            return Text(RESETS[event.reason], WARN)
        case e.SnapshotBegin():
            return Text("In force:", "bold")
        case e.SnapshotEnd():
            return Text("Changes:", "bold")
        case e.Heartbeat():
            return None


def record_change(event: e.RecordChange) -> Text:
    """Draw how a record changed: `2022-08-14 - RUSTSEC-2020-0001 (git2) was withdrawn 2022-08-14: open → withdrawn`."""
    is_revised, is_new = event.outcome == REVISED, event.outcome == PUBLISHED
    mark, style = ("~ ", FAINT) if is_revised else ("+ ", IN_FORCE) if is_new else ("- ", BAD)
    states = dict.fromkeys(state for state in (event.state_before, event.state) if state)
    moved = f" ({' → '.join(states)})" if is_new or event.state_before else ""
    now = f"; it is {event.state_now} now" if event.state_now not in (event.state, "") else ""
    title = event.document.title or event.document.id
    return Text.assemble(
        words(f"{day(event.cause.time)} " if event.cause.time is not None else "", FAINT),
        (mark, style),
        words(_with_package(event.record, event.names), style),
        words(f" {event.outcome_text}{moved if states else ''}{now}"),
        words(f"  {title}" if title not in event.outcome_text else "", FAINT),
    )


def _with_package(record: str, names: Mapping[str, Sequence[str]]) -> str:
    """Return a record with what it is about: its names of the key that has the fewest, without its own name.

    Of keys that have as many, the first in the alphabet counts: a package rather than a vulnerability.
    """
    others = [[name for name in names[key] if name.casefold() != record.casefold()] for key in sorted(names)]
    shown = min((values for values in others if values), key=len, default=[])
    more = f" and {len(shown) - NAMED_MAX} more" if len(shown) > NAMED_MAX else ""
    return f"{record} ({', '.join(shown[:NAMED_MAX])}{more})" if shown else record


def table(changes: Iterable[a.Change]) -> RenderableType:
    """Draw changes with a line for every member or run that entered or left. What moved in several scopes has one."""
    scopes: dict[tuple[a.ChangeCause, str], dict[str, Text]] = {}
    for change in changes:
        for line in change_lines(change):
            scopes.setdefault((change.cause, line.plain), {})[change.scope] = line
    rows = [
        (
            Text(day(cause.time) if cause.time is not None else ""),
            next(iter(lines.values())),
            words(f"{max(lines, key=len)} and {len(lines) - 1} more" if len(lines) > 1 else "".join(lines)),
        )
        for (cause, _), lines in scopes.items()
    ]
    is_dated = any(date for date, *_ in rows)
    names, shown = ("since", "change", "scope"), [row if is_dated else row[1:] for row in rows]
    return Rows(names if is_dated else names[1:], shown, heads=1 + is_dated, whole=[0] if is_dated else [])


def change(change: a.Change, *, verbose: bool = False) -> RenderableType:
    """Draw a change of a frontier: when it took effect, and a line for everything that entered or left."""
    time = f"  {day(change.cause.time)}" if change.cause.time is not None else ""
    about = words(f"{time}  {change.position}" if verbose else time, FAINT)
    head = Text.assemble(words(change.scope, "bold"), about)
    return Lines(head, *map(indented, change_lines(change)))


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


def _member_line(member: a.ChangedMember) -> Text:
    """Draw a member that is in force in a scope: `  = CVE-... advisory: open`."""
    state = member.outcome_text or member.state_text
    return Text.assemble(
        "  ",
        words(f"= {member.id} {member.type}", WARN if member.outcome else IN_FORCE),
        words(f": {state}" if state else ""),
    )


def left_line(member: a.ChangedMember, cause: a.ChangeCause) -> Text:
    """Draw `- CVE-... advisory is fixed in 2.0.0, because of TITLE (RULE)`."""
    if member.outcome == REVISED:
        text = words(f"{member.id} {member.type}", FAINT)
        return Text.assemble(("~ ", FAINT), text, words(f" was {member.outcome_text}"))
    is_replaced = member.outcome in ("", REPLACED)  # which says no more than the cause does
    if member.why == "link":
        by = ": it says so itself" if member.id == cause.id else f": {_named(cause)} names it in `supersedes`"
    elif member.id == cause.id:
        by = ""
    else:
        is_named = not is_replaced and bool(cause.title) and cause.title in member.outcome_text
        by = (f" ({member.rule})" if member.rule else "") if is_named else _because(cause, member.rule)
    ended = ENDINGS[member.why] if is_replaced else f"is {member.outcome_text}"
    text = words(f"{member.id} {member.type}".strip(), VOID)
    return Text.assemble(("- ", BAD), text, words(f" {ended}{by}"))


def document_change(change: e.DocumentChange) -> Text:
    """Draw what happened to a document, because of which other one, and its status now if that is another."""
    cause, is_caused = change.cause, change.cause.id != change.id
    if change.outcome and (change.in_force or (change.why in ("voided", "link") and change.status == "superseded")):
        return _became(change)
    title, about = change.title or change.id, words(f"  {_about(change)}", FAINT)
    now = f"; it is {change.outcome_text or status_text(change.status)} now"
    if change.why not in ENDINGS or (change.in_force and change.why in ("corrected", "moved")):
        is_freed = is_caused and cause.kind in ("retracted", "corrected", "moved")
        freed = f": {cause.title or cause.id} was {cause.kind}" if is_freed else ""
        entered = "entered a scope" if is_caused else ENTRIES[cause.kind]
        text = f" is in force{freed}" if change.in_force else f" {entered}{freed}{now}"
        return Text.assemble(("+ ", IN_FORCE), words(title, IN_FORCE if change.in_force else VOID), words(text), about)
    because = _because(cause, change.rule) if is_caused else ""
    is_so_now = change.status == STATUS_AFTER.get(change.why)
    ended = ENDINGS[change.why] if is_so_now else ENDINGS[change.why].replace("is superseded", "was superseded")
    return Text.assemble(("- ", BAD), words(title, VOID), words(f" {ended}{because}{'' if is_so_now else now}"), about)


def _about(change: e.DocumentChange) -> str:
    """Return the id and the type of a document, and the day of its change."""
    time = change.cause.time
    return " · ".join(part for part in (change.id, change.type, day(time) if time is not None else "") if part)


def _became(change: e.DocumentChange) -> Text:
    """Draw what became of a document or its record: `- TITLE is fixed in 2.0.0`, `~ TITLE was revised 2024-01-05`."""
    is_revised, title = change.outcome == REVISED, change.title or change.id
    by = change.cause.title or change.cause.id
    because = "" if is_revised or change.in_force or by in change.outcome_text else f", because of {by}"
    return Text.assemble(
        ("~ ", FAINT) if is_revised else ("- ", BAD),
        words(title, FAINT if is_revised else WARN if change.in_force else VOID),
        words(f" {'was' if is_revised else 'is'} {change.outcome_text}{because}"),
        words(f"  {_about(change)}", FAINT),
    )


def _entered(member: a.ChangedMember, cause: a.ChangeCause, keys: str) -> str:
    if keys == AMENDED:
        return "amends it by name"
    if keys != LINK:
        is_amending = member.rule and member.id == cause.id
        state = member.outcome_text or member.state_text
        here = f"is in force here: {state}" if state else "is in force here"
        return f"{here}, and amends what is here ({member.rule})" if is_amending else here
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
