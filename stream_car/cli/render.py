"""Whole answers for people.

Promise: values in, rich texts out. In force is green, superseded is struck out, trouble is red or yellow; the words
alone say the same, so nothing is lost without colours. Scores, positions and other details only with `verbose`.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.cli import render_affected
from stream_car.cli.console import words
from stream_car.cli.hints import advise, advise_rules
from stream_car.cli.widgets import (
    BAD,
    FAINT,
    IN_FORCE,
    VOID,
    WARN,
    Rows,
    arrow,
    counted,
    day,
    fate_text,
    indented,
    numbered,
    path_line,
)
from stream_car.core.rule_pack import REVISED
from stream_car.core.rules import Ruleset
from stream_car.queries import answers as a
from stream_car.suggest import join_names

REPLACED_MAX = 3  # documents that a document replaces
OTHERS_MAX = 3  # records that have the same name
SCOPES_MAX = 3  # scopes not covered that are named
EXCERPT_MAX = 400  # characters of a text
PROBLEMS = {  # why a name is not part of a safe set
    "unknown": "no document has this name",
    "retracted": "it was retracted",
    "pending": "it waits for its time, so it does not count yet",
    "stranded": "it is superseded, and no document here controls it",
}
REASONS: Mapping[a.Incomplete, str] = {  # why an answer is not complete
    "cycle": "documents supersede one another",
    "successor_missing": "a document names a successor that is not published here",
    "budget": "the budget ran out; repeat the question with fewer anchors or a larger budget",
    "in_flight": "documents are still being applied; repeat the question",
    "lost_history": "Kafka has deleted records that are needed; the operator's runbook has the steps to take",
    "pending": "a document waits for its time",
    "unknown": "no document has that name",
    "retracted": "the document was retracted",
    "no_anchor": "no document matches the question",
    "history_unknown": "what a record said at that time is not known here, only later editions of it",
    "limit": "there is more than fits into one answer",
    "quarantined": "a record that may matter was set aside; see `stream-car quarantine list`",
}
assert set(REASONS) == set(get_args(a.Incomplete))


# Documents


def name(document: a.Evidence) -> str:
    """Return what people call the document: its title, or else its id."""
    return document.title or document.id


def facts(document: a.Evidence) -> Text:
    """Return one line about a document: its id, type, time, source and address."""
    parts = (document.id, document.type, day(document.time), document.source, document.url)
    return words(" · ".join(filter(None, parts)), FAINT)


def controlled(
    groups: Sequence[a.Group],
    documents: Sequence[a.Evidence] | None = None,
    *,
    text_max: int = 0,
    with_paths: bool = True,
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
    document: a.Evidence, groups: Sequence[a.Group], text_max: int, *, with_paths: bool
) -> Iterator[RenderableType]:
    yield words(name(document), WARN if document.outcome else IN_FORCE)
    text = " ".join(document.text.split())
    if text and text_max:
        yield words(text if len(text) <= text_max else text[:text_max].rpartition(" ")[0] + " ...")
    replaced: dict[str, Text] = {}
    paths: list[Text] = []
    for group in groups:
        known = {evidence.id: evidence for evidence in (group.anchor, *group.superseded)}
        for path in [control.path for control in _controls(document, [group]) if control.path]:
            paths.append(path_line(group.anchor.id, path))
            for old in (group.anchor.id, *(step.id for step in path[:-1])):
                if old in known:
                    replaced[old] = _replaced(known[old])
    titles = [*replaced.values()][:REPLACED_MAX]
    more = f", and {len(replaced) - REPLACED_MAX} more" if len(replaced) > REPLACED_MAX else ""
    ended = f"{document.outcome_text[:1].upper()}{document.outcome_text[1:]}."
    since = words(ended, BAD) if document.outcome else Text(f"In force since {day(document.time)}.")
    yield Text.assemble(since, " Replaces ", Text(", ").join(titles), more) if titles else since
    yield facts(document)
    yield from paths if with_paths else ()
    yield from amendments(document, groups)


def _replaced(document: a.Evidence) -> Text:
    is_news = document.outcome_text and document.outcome != REVISED
    why = words(f": {document.outcome_text}") if is_news else ""
    return Text.assemble(words(f"{name(document)} ({day(document.time)})", VOID), why)


def _controls(document: a.Evidence, groups: Sequence[a.Group]) -> Iterator[a.Controlling]:
    return (control for group in groups for control in group.controlling if control.document.id == document.id)


def amendments(document: a.Evidence, groups: Sequence[a.Group]) -> Iterator[RenderableType]:
    """Yield what must be read together with a document in force, and how each of these amends it."""
    control = next(_controls(document, groups), None)
    if control is None:
        return
    for amendment in control.amendments:
        title = words(f"{name(amendment.document)} ({day(amendment.document.time)})", IN_FORCE)
        yield Text.assemble(("amended by: ", "magenta"), title)
        yield indented(path_line(document.id, amendment.path, start_style=IN_FORCE))
    if control.amendments_more:
        yield Text(f"and by {counted(control.amendments_more, 'other document')}", "magenta")


def group_problems(group: a.Group) -> Iterator[Text]:
    """Yield what is wrong with a group: nothing controls it, a successor is missing, or there is a cycle."""
    if not group.controlling:
        yield Text.assemble(("nothing in force controls ", WARN), words(name(group.anchor), VOID))
    if group.missing:
        yield words(f"named as successor, but not published here: {', '.join(group.missing)}", WARN)
    if group.cycle:
        yield words(f"these supersede one another: {', '.join(group.cycle)}", WARN)


# Answers


def answer(answer: a.Answer, searched_types: Sequence[str] = (), *, verbose: bool = False) -> RenderableType:
    """Draw the results, each with what it replaces, and what the answer guarantees.

    `searched_types` are the types that a search reads if these are not all. With `verbose`, draw paths and scores.
    """
    groups = shown_groups(answer)
    lines: list[RenderableType] = [words(answer.question, "bold"), Text()]
    if answer.packages:
        lines += [*map(render_affected.in_brief, answer.packages), Text()]
    is_far = bool(answer.results) and not answer.is_close
    if is_far:
        lines.append(Text("These documents share little with the question:", WARN))
    if answer.results or groups:
        text_max = sys.maxsize if verbose else EXCERPT_MAX
        lines.append(controlled(groups, answer.results, text_max=text_max, with_paths=verbose))
    else:
        lines.append(advise("Nothing was found. Try other words, or look at a scope", "frontier KEY=VALUE"))
        if searched_types:
            lines.append(words(f"Only these types are searched: {', '.join(searched_types)}.", FAINT))
    if verbose:
        lines += [_scores(answer), *left_out(answer.scopes)]
    lines.append(Text())
    if verbose or not is_far:
        lines.append(certificate_line(answer.certificate, verbose=verbose))
    if answer.pending:
        subject = counted(answer.pending, "document waits for its time", "documents wait for their time")
        lines.append(advise(subject, "pending"))
    if answer.ignored_terms:
        terms = counted(answer.ignored_terms, "word")
        lines.append(Text(f"The question is too long: its most common words ({terms}) were not searched for.", WARN))
    if answer.vectors_pending:
        subject = counted(answer.vectors_pending, "document")
        lines.append(Text(f"{subject} could be found only by words, because vectors are still being made.", WARN))
    if is_far:
        lines.append(advise("✘ Nothing close was found. Try other words, or look at a scope", "frontier KEY=VALUE"))
    return Lines(*lines)


def _scores(answer: a.Answer) -> RenderableType:
    rows = [
        (words(group.anchor.id), Text(f"{group.score:.3f}"), Text(f"{group.probability:.2f}"))
        for group in answer.groups
    ]
    return Rows(("found by search", "score", "probability"), rows, whole=(1, 2))


def certificate_line(certificate: a.Certificate, *, verbose: bool = False, advise: bool = True) -> Text:
    """Return what the answer guarantees, and as of when; with `verbose`, every figure of it.

    With `advise`, it names the options that show or cover more.
    """
    count = sum(certificate.cut)
    messages = f"none of the {count:,} messages published so far" if count > 1 else "nothing published so far"
    if certificate.pending and certificate.as_of is not None:
        waiting = counted(certificate.pending, "document that waits for its time", "documents that wait for their time")
        messages += f", not counting {waiting},"
    time = f" by {day(certificate.as_of)}" if certificate.as_of is not None else ""
    if certificate.complete:
        line = Text.assemble(("✔ Complete", IN_FORCE), f": {messages} supersedes what is shown{time}.")
    else:
        reasons = "; ".join(REASONS[reason] for reason in certificate.reasons)
        line = Text.assemble(("✘ Not complete", BAD), f": {reasons}.")
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


def left_out(scopes: Sequence[a.PlausibleScope]) -> Iterator[Text]:
    """Yield the likeliest scopes that the question may mean and that the answer does not cover, if there are any."""
    uncovered = [scope for scope in scopes if not scope.coverage]
    names = [f"{scope.scope or 'documents in no scope'} ({scope.probability:.2f})" for scope in uncovered[:SCOPES_MAX]]
    if names:
        more = f"; and {counted(len(uncovered) - SCOPES_MAX, 'other')}" if len(uncovered) > SCOPES_MAX else ""
        yield words(f"The question may also mean what is not covered: {'; '.join(names)}{more}.", FAINT)


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
    return numbered(Lines(_ranked(document), facts(document)) for document in documents)


def _ranked(document: a.Evidence) -> Text:
    if document.status == "in_force" and not document.outcome:
        return words(name(document))
    return Text.assemble(words(name(document), VOID), "  ", fate_text(document))


def resolution(resolution: a.Resolution) -> RenderableType:
    """Draw what a name means now."""
    line = head(resolution)
    return Lines(line, controlled(resolution.groups)) if resolution.groups else line


def head(named: a.Resolution | a.Explanation | a.Lookup) -> Text:
    """Return a name, its status, and what it names if that is not a document."""
    line = Text.assemble(words(named.name, "bold"), " is ", fate_text(named), _did_you_mean(named.similar))
    kind = {"chunk": "it names a chunk", "record": "it names a record", "alias": "another name"}.get(named.via)
    return line.append(f" ({kind})", FAINT) if kind else line


def _did_you_mean(similar: Sequence[str]) -> Text:
    return words(f". Did you mean {join_names(similar, 'or')}?" if similar else "", WARN)


def explanation(explanation: a.Explanation, ruleset: Ruleset | None = None) -> RenderableType:
    """Draw why a document is or is not in force, scope by scope and link by link.

    With the rules, also draw why no rule applies to a document that joins no scope.
    """
    lines: list[RenderableType] = [head(explanation)]
    if explanation.due is not None:
        lines.append(indented(Text(f"It waits for {day(explanation.due)}.", WARN)))
    if explanation.document is not None:
        lines += [indented(words(explanation.document.title)), indented(facts(explanation.document))]
    if explanation.others:
        more = len(explanation.others) - OTHERS_MAX
        rest = f" and {more} more" if more > 0 else ""
        others = words(f"It is also another name of {', '.join(explanation.others[:OTHERS_MAX])}{rest}.", WARN)
        lines.append(indented(others))
    if explanation.memberships:
        rows = map(_membership, explanation.memberships)
        lines.append(Rows(("scope or link", "in force", "superseded by"), rows, whole=(1,)))
    elif ruleset is not None and explanation.document is not None:
        lines += map(indented, _no_scope(explanation.document.type, ruleset))
    if explanation.status == "unknown":
        lines.append(advise("Nothing has this name. See whether it was rejected", "rejected list"))
    elif explanation.group is not None and explanation.group.anchor.status != "in_force":
        lines += [Text("What controls it now:", "bold"), controlled([explanation.group])]
    elif explanation.group is not None and explanation.document is not None:
        lines += [indented(line) for line in amendments(explanation.document, [explanation.group])]
    return Lines(*lines)


def _no_scope(kind: str, ruleset: Ruleset) -> Iterator[Text]:
    """Yield that no rule applies to a document of this type, and the keys that the rules of its type need."""
    fixed = ruleset.pack_of[kind].fixed.get(kind, {}) if kind in ruleset.pack_of else {}
    key_sets = {
        " and ".join(key for key in rule.scope_keys if key not in fixed)
        for rule in ruleset.rules.values()
        if kind in (rule.superseding_type, rule.superseded_type)
    }
    yield Text("It joins no scope, so no rule applies to it: only a link can supersede it.", WARN)
    if key_sets:
        yield words(f"Rules need these keys of the type {kind}, in `scope`: {', or '.join(sorted(key_sets))}.", WARN)
        yield advise_rules("See the keys and other names for them", WARN)
    else:
        yield words(f"No rule mentions the type {kind}.", WARN)


def _membership(membership: a.Membership) -> tuple[Text, ...]:
    is_in_force = Text("yes", IN_FORCE) if membership.holds else Text("no", BAD)
    return words(membership.scope), is_in_force, words(", ".join(map(_superseding, membership.by)))


def _superseding(step: a.Step) -> str:
    return f"{step.id} ({step.outcome}, {step.rule})" if step.outcome else f"{step.id} ({step.rule})"


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
        became = violation.outcome_text or "superseded"
        if len(broken) > 1:
            problem = f"is {became}, and what is in force instead is missing"
        elif is_inclusion:
            problem = "leads to documents in force that are missing"
        else:
            problem = f"is {became}, and nothing in the set supersedes it"
        cure = words((" and " if is_inclusion else " or ").join(violation.add), IN_FORCE)
        head = indented(Text.assemble(words(document, VOID), f" {problem}"))
        path = [indented(path_line(document, violation.path), 2)] if violation.path else []
        yield Lines(head, *path, indented(Text.assemble("add ", cure), 2))


def _names_to_remove(audit: a.Audit) -> Iterator[RenderableType]:
    """Yield an entry per name that is not part of a safe set, unless a violation has reported it."""
    for record in audit.ended:
        yield indented(
            Text.assemble((f"{record.outcome}: ", BAD), words(record.name), words(f" ({record.outcome_text})"))
        )
    reported = {violation.id for violation in audit.violations}
    for status, ids in zip(PROBLEMS, (audit.unknown, audit.retracted, audit.pending, audit.stranded), strict=True):
        for document in ids:
            if document not in reported:
                meant = _did_you_mean(audit.similar.get(document, ()))
                yield indented(Text.assemble((f"{status}: ", WARN), words(document), f" ({PROBLEMS[status]})", meant))


# Scopes


def frontier(frontier: a.Frontier) -> RenderableType:
    """Draw the active members of a scope, and those that something else supersedes."""
    members = f"  {counted(frontier.members, 'member')}, {len(frontier.in_force)} in force"
    lines: list[RenderableType] = [Text.assemble(words(frontier.scope, "bold"), (members, FAINT))]
    for document in frontier.in_force:
        lines += [indented(_member(document)), indented(facts(document), 2)]
    for blocked in frontier.blocked:
        became = blocked.document.outcome_text or "superseded"
        reason = Text.assemble(
            words(f"{became}, through "), words(blocked.scope), ":", arrow(blocked.rule), words(blocked.by)
        )
        lines += [indented(words(name(blocked.document), VOID)), indented(reason, 2)]
    return Lines(*lines, *_incomplete(frontier))


def _member(document: a.Evidence) -> Text:
    if not document.outcome:
        return words(name(document), IN_FORCE)
    return Text.assemble(words(name(document), WARN), "  ", fate_text(document))


def history(history: a.History) -> RenderableType:
    """Draw a scope's timeline: from when to when each member was in force, and what superseded it."""
    columns = ("from", "until", "document", "type", "what became of it", "superseded by")
    table = Rows(columns, map(_timeline_row, history.members), heads=2, whole=(0, 1))
    return Lines(words(history.scope, "bold"), table, *_incomplete(history))


def _timeline_row(member: a.TimelineMember) -> tuple[Text, ...]:
    ended = member.ended
    until = Text(day(ended.time)) if ended else Text("in force here", IN_FORCE)
    title = words(member.title or member.id, VOID if ended else WARN if member.outcome else IN_FORCE)
    became = words(member.outcome_text, FAINT if member.outcome == REVISED else "")
    superseding = words(ended.id if ended else "")
    return Text(day(member.time)), until, title, words(member.type), became, superseding


def _incomplete(value: a.Frontier | a.History) -> Iterator[Text]:
    if not value.complete:
        yield Text("Not all members are shown.", WARN)


def pending(document: a.PendingDocument) -> Text:
    """Draw a document that waits for its time."""
    return words(f"{day(document.time)}  {document.id} (revision {document.revision})")
