"""Findings about packages as SARIF 2.1.0, which code scanning reads.

A rule per vulnerability, a result per package that it affects or may affect. What a statement has cleared is a result
with a suppression.
"""

import re
from collections.abc import Iterator, Sequence

from stream_car.lockfiles.dependencies import DependencyFile
from stream_car.queries.findings import PackageFindings, RecordFinding, by_vulnerability
from stream_car.version import __version__
from stream_car.versions.verdicts import AffectedStatus

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: dict[AffectedStatus, str] = {"affected": "error", "unknown": "warning", "not_affected": "none"}
Fields = dict[str, object]


def sarif(answer: Sequence[PackageFindings], files: Sequence[DependencyFile] = ()) -> Fields:
    """Return a SARIF log; `files` list the packages, by their names from the root of the repository."""
    rules: dict[str, Fields] = {}
    results = []
    for package in answer:
        in_force = [finding for finding in package.findings if not finding.outcome]
        for findings in by_vulnerability(in_force):
            if findings[0].status != "not_affected" or findings[0].basis == "statement":
                rule = _rule(findings)
                rules.setdefault(str(rule["id"]), rule)
                results.append(_result(package, findings, files))
    driver = {"name": "Stream-CAR", "semanticVersion": __version__, "rules": list(rules.values())}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def vulnerability_names(findings: Sequence[RecordFinding]) -> list[str]:
    """Return all names of a vulnerability, a CVE first."""
    names = dict.fromkeys(name for finding in findings for name in (*finding.names, finding.record))
    return sorted(names, key=lambda name: not name.upper().startswith("CVE-"))


def advice(finding: RecordFinding) -> str:
    """Return what to do about a finding."""
    return f"Update to {' or '.join(finding.fixed_in)}." if finding.fixed_in else "No fixed version is known."


def _rule(findings: Sequence[RecordFinding]) -> Fields:
    first, names = findings[0], vulnerability_names(findings)
    title = first.title or names[0]
    tags = ["security", *(["known-exploited"] if first.exploited else [])]
    rule: Fields = {
        "id": names[0],
        "shortDescription": {"text": title},
        "fullDescription": {"text": f"{', '.join(names)}: {title}"},
        "properties": {"tags": tags},
    }
    return {**rule, "helpUri": first.url} if first.url else rule


def _result(package: PackageFindings, findings: Sequence[RecordFinding], files: Sequence[DependencyFile]) -> Fields:
    first, name = findings[0], vulnerability_names(findings)[0]
    result: Fields = {
        "ruleId": name,
        "level": LEVELS[first.stated_status or first.status],
        "message": {"text": " ".join(_sentences(package, first))},
        "locations": [{"physicalLocation": _location(package, files)}],
        "partialFingerprints": {"package/v1": package.package, "vulnerability/v1": name},
    }
    if first.basis == "statement":
        result["suppressions"] = [{"kind": "external", "justification": first.justification}]
    return result


def _location(package: PackageFindings, files: Sequence[DependencyFile]) -> Fields:
    """Return the first line that names a package, or else the first line of the first file."""
    own_name = re.escape(re.split(r"[/:]", package.name)[-1])
    if package.ecosystem == "PyPI":
        own_name = re.sub(r"(\\[-.]|_)+", "[-_.]+", own_name)
    pattern = re.compile(rf"(?<![\w.-]){own_name}(?![\w.-])", re.IGNORECASE)
    for file in files:
        if (match := pattern.search(file.text)) is not None:
            line = file.text.count("\n", 0, match.start()) + 1
            return {"artifactLocation": {"uri": file.name}, "region": {"startLine": line}}
    return {"artifactLocation": {"uri": files[0].name if files else "packages"}, "region": {"startLine": 1}}


def _sentences(package: PackageFindings, finding: RecordFinding) -> Iterator[str]:
    status = {"affected": "is affected", "unknown": "may be affected", "not_affected": "is not affected"}
    affected = f" ({finding.range})" if finding.range else ""
    yield f"{package.package} {status[finding.status]} by {finding.record}{affected}."
    yield advice(finding)
    for other in finding.disputed_by:
        yield f"{other.record} says that it {status[other.status]}{f' ({other.range})' if other.range else ''}."
    if finding.exploited:
        yield "The vulnerability is known to be exploited."
