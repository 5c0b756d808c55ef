"""Which packages are affected, for people: a line per package, and below it what concerns its version."""

from collections.abc import Collection, Iterator, Sequence

from rich.console import Group as Lines, RenderableType
from rich.text import Text

from stream_car.cli.console import words
from stream_car.cli.widgets import BAD, FAINT, IN_FORCE, WARN, counted, day, indented, path_line
from stream_car.queries.findings import PackageFindings, RecordFinding, by_vulnerability
from stream_car.queries.vulnerability_context import lacks_reason
from stream_car.versions.verdicts import PackageStatus

STYLES: dict[PackageStatus, str] = {"affected": BAD, "unknown": WARN, "not_affected": IN_FORCE, "no_record": WARN}
CLEAN = ("not_affected", "no_record")  # nothing to show
BRIEF_MAX = 5  # vulnerabilities
BASES = {  # why a verdict is what it is, where the range does not tell
    "no_version": "give a version to tell",
    "left_out": "the record was too large to keep its versions",
    "no_ranges": "the record does not say which versions are affected",
    "unreadable": "the version cannot be compared",
    "no_order": "how versions of this ecosystem are ordered is unknown",
    "commits": "the record names commits only",
    "release": "name the distribution's release in the purl, such as ?distro=debian-12",
    "ecosystem": "the record names no ecosystem; it may be about another package of this name",
    "investigation": "its publisher is still looking",
    "disputed": "a later record does not call this version affected",
    "default": "for all versions that the record does not name",
}


def packages(
    answer: Sequence[PackageFindings], *, lists_all: bool = False, arguments: Collection[str] = ()
) -> RenderableType:
    """Draw packages, those without a finding together in the last line. No record for one of `arguments` is shown."""
    lines: list[RenderableType] = []
    shown = [
        each
        for each in answer
        if lists_all
        or each.status not in CLEAN
        or len(answer) == 1
        or (each.status == "no_record" and each.package in arguments)
    ]
    for each in shown:
        lines += [_head(each), *(indented(finding) for finding in _findings(each, lists_all=lists_all))]
    return Lines(*lines, _summary(answer))


def in_brief(package: PackageFindings) -> RenderableType:
    """Draw in a few lines whether a package is affected, as the beginning of an answer in words."""
    listed = [each for each in package.findings if each.status != "not_affected"]
    lines = []
    for same in by_vulnerability(listed)[:BRIEF_MAX]:
        first = same[0]
        depends = (
            f"{first.range} {'are affected' if first.range else ''}".strip() if not package.version else first.range
        )
        fix = f"fixed in {', '.join(first.fixed_in)}" if first.fixed_in else "no fix is known"
        exploited = "exploited" if first.exploited else ""
        lines.append(words(f"{first.record}: {'; '.join(part for part in (depends, fix, exploited) if part)}"))
    if len(listed) > BRIEF_MAX:
        lines.append(words(f"All of them: stream-car affected {package.package}", FAINT))
    if package.status == "unknown" and not package.version:
        head = Text.assemble(words(package.package, "bold"), "  ", Text("it depends on the version", WARN))
        return Lines(head, *map(indented, lines))
    return Lines(_head(package), *map(indented, lines))


def _head(package: PackageFindings) -> Text:
    return Text.assemble(words(package.package, "bold"), "  ", _status(package.status))


def _status(status: PackageStatus) -> Text:
    words_of = "no record names it; check the name and the ecosystem" if status == "no_record" else status
    return Text(words_of.replace("_", " "), STYLES[status])


def _ending(outcome: str) -> Text | None:
    """Return how a record has ended, `None` if it holds. That a fix superseded it does not say that this is fixed."""
    return Text("superseded" if outcome == "fixed" else outcome.replace("_", " "), FAINT) if outcome else None


def _findings(package: PackageFindings, *, lists_all: bool) -> Iterator[RenderableType]:
    """Yield what is known of a package: one item for each vulnerability, with all its records."""
    listed = [each for each in package.findings if lists_all or each.status != "not_affected" or each.statements]
    for same in by_vulnerability(listed):
        yield Lines(*_vulnerability(same))
    if not package.name:
        yield words("It names no package that records could name, so it was not judged.", FAINT)
    if package.reasons:
        yield Text(f"These may not be all ({', '.join(package.reasons)}).", WARN)


def _vulnerability(findings: Sequence[RecordFinding]) -> Iterator[RenderableType]:
    first = findings[0]
    names = list(dict.fromkeys(name for each in findings for name in each.names)) or [first.record]
    head = Text.assemble(_ending(first.outcome) or _status(first.status), "  ", words(", ".join(names), "bold"))
    if first.exploited:
        head.append(f"  exploited, known since {day(min(each.time for each in first.exploited))}", BAD)
    yield head
    if first.title:
        yield words(first.title)
    for each in findings:
        yield indented(Lines(*_record(each)))


def _record(finding: RecordFinding) -> Iterator[RenderableType]:
    about = [finding.range, BASES.get(finding.basis, "")]
    if finding.status != "not_affected":
        about.append(f"fixed in {', '.join(finding.fixed_in)}" if finding.fixed_in else "no fix is known")
    if finding.basis == "statement":
        about = [f"a statement overrules {finding.range}", finding.justification.replace("_", " ")]
    elif finding.justification:
        about.append(finding.justification.replace("_", " "))
    line = "; ".join(part for part in about if part)
    yield Text.assemble(words(finding.record, "bold"), ": ", words(line))
    if finding.outcome_text:
        yield words(finding.outcome_text, FAINT)
    yield words(" · ".join(part for part in (finding.source, finding.url) if part), FAINT)
    for each in finding.disputed_by:
        yield words(f"{each.record} says {_status(each.status).plain}: {each.range}".removesuffix(": "), WARN)
    for statement in finding.statements:
        counts = "" if statement.decides else ", which does not count: see --product and --vex-author"
        if lacks_reason(statement.status, statement.justification, statement.impact):
            counts = ", which does not count: it gives neither a justification nor an impact"
        reason = f" ({statement.justification.replace('_', ' ')})" if statement.justification else ""
        line = f"{statement.author or 'a statement'}: {statement.status.replace('_', ' ')}{reason}{counts}"
        yield words(line, FAINT)
    for chain in finding.chains:
        yield path_line(chain.start, chain.steps)


def _summary(answer: Sequence[PackageFindings]) -> Text:
    """Return the last line: how many packages are affected, and by how many vulnerabilities."""
    total = counted(len(answer), "package")
    affected = [each for each in answer if each.status == "affected"]
    unknown = sum(each.status == "unknown" for each in answer)
    more = f" Of {counted(unknown, 'package')} it is unknown." if unknown else ""
    unnamed = sum(each.status == "no_record" for each in answer)
    more += f" No record names {unnamed:,} of them." if unnamed else ""
    if unnamed == len(answer):
        return Text(f"No record names {'it' if unnamed == 1 else 'any of them'}: nothing is known of {total}.", WARN)
    if not affected:
        return Text(f"None of {total} is affected.{more}", WARN if unknown else IN_FORCE)
    vulnerabilities = [
        group
        for each in affected
        for group in by_vulnerability([f for f in each.findings if f.status == "affected" and not f.outcome])
    ]
    exploited = sum(any(finding.exploited for finding in group) for group in vulnerabilities)
    known = f", {exploited} of them exploited" if exploited else ""
    by = counted(len(vulnerabilities), "vulnerability", "vulnerabilities")
    verb = "is" if len(affected) == 1 else "are"
    return Text(f"{len(affected)} of {total} {verb} affected by {by}{known}.{more}", BAD)
