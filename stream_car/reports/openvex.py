"""Findings about packages as an OpenVEX document: a statement per package and vulnerability.

Each says what the records say: affected with what to do, not affected with the reason, or still to be looked into.
"""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

import msgspec

from stream_car.codec.times import format_time, to_micros
from stream_car.queries.findings import PackageFindings, RecordFinding, by_vulnerability
from stream_car.reports.sarif import advice, vulnerability_names
from stream_car.version import __version__
from stream_car.versions.packages import purl_of

CONTEXT = "https://openvex.dev/ns/v0.2.0"
Fields = dict[str, object]


def openvex(answer: Sequence[PackageFindings], *, author: str, time: datetime, product: str = "") -> Fields:
    """Return the document. With a `product`, the packages are its components."""
    statements = [
        _statement(package, findings, product)
        for package in answer
        for findings in by_vulnerability([finding for finding in package.findings if not finding.outcome])
    ]
    digest = sha256(msgspec.json.encode(statements)).hexdigest()
    return {
        "@context": CONTEXT,
        "@id": f"https://openvex.dev/docs/public/vex-{digest}",
        "author": author,
        "timestamp": format_time(to_micros(time)),
        "version": 1,
        "tooling": f"Stream-CAR {__version__}",
        "statements": statements,
    }


def _statement(package: PackageFindings, findings: Sequence[RecordFinding], product: str) -> Fields:
    first, names = findings[0], vulnerability_names(findings)
    component = {"@id": purl_of(package.package)}
    statement: Fields = {
        "vulnerability": {"name": names[0], "aliases": names[1:]},
        "products": [{"@id": product, "subcomponents": [component]} if product else component],
    }
    if first.status == "affected":
        return {**statement, "status": "affected", "action_statement": advice(first)}
    if first.status == "unknown":
        return {**statement, "status": "under_investigation"}
    deciding = next((each for each in first.statements if each.decides and first.basis == "statement"), None)
    if deciding is not None and deciding.status == "fixed":
        return {**statement, "status": "fixed"}
    if deciding is not None:
        reasons = {"justification": deciding.justification, "impact_statement": deciding.impact}
        return {**statement, "status": "not_affected", **{name: text for name, text in reasons.items() if text}}
    affected = f" ({first.range})" if first.range else ""
    impact = f"{package.version or 'This version'} is not among the affected versions of {first.record}{affected}."
    return {**statement, "status": "not_affected", "impact_statement": impact}
