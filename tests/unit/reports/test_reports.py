"""Findings about packages in the formats of other tools."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from stream_car.lockfiles.dependencies import DependencyFile
from stream_car.queries.findings import Exploitation, PackageFindings, RecordFinding, Statement
from stream_car.reports.openvex import openvex
from stream_car.reports.sarif import sarif
from stream_car.versions.verdicts import AffectedStatus, Basis
from tests.support.feeds import Reading, documents

DAY = datetime(2024, 1, 1, tzinfo=UTC)
UNREACHABLE = "vulnerable_code_not_in_execute_path"


def statement(status: str = "not_affected", impact: str = "") -> Statement:
    """One that decides."""
    reason = "" if impact else UNREACHABLE
    return Statement(
        id="vex", status=status, author="Shop", time=DAY, decides=True, justification=reason, impact=impact
    )


def finding(record: str, *names: str, status: AffectedStatus = "affected", basis: Basis = "range") -> RecordFinding:
    return RecordFinding(
        document=f"{record}@1",
        record=record,
        type="advisory",
        time=DAY,
        names=names,
        status=status,
        basis=basis,
        range="< 4.17.12",
        fixed_in=("4.17.12",) if status == "affected" else (),
        justification=UNREACHABLE if basis == "statement" else "",
        stated_status="affected" if basis == "statement" else None,
        title=f"A flaw by {record}",
        url=f"https://example.org/{record}",
        exploited=(Exploitation(id="KEV", title="", time=DAY),) if record == "GHSA-1" else (),
        statements=(statement(),) if basis == "statement" else (),
    )


def package(name: str, *findings: RecordFinding) -> PackageFindings:
    return PackageFindings(
        package=f"pkg:npm/{name}@4.17.4",
        name=name,
        version="4.17.4",
        ecosystem="npm",
        status="affected",
        findings=findings,
    )


ANSWER = (
    package(
        "lodash",
        finding("GHSA-1", "GHSA-1", "CVE-2024-1"),
        finding("PYSEC-1", "PYSEC-1", "CVE-2024-1"),
        finding("GHSA-2", "GHSA-2", status="unknown", basis="commits"),
        finding("GHSA-3", "GHSA-3", status="not_affected", basis="outside"),
    ),
    package("hoek", finding("GHSA-4", "GHSA-4", status="not_affected", basis="statement")),
)


def dig(value: object, *path: str | int) -> object:
    """Return what lies at a path in a tree of objects and lists."""
    for step in path:
        if isinstance(step, int):
            assert isinstance(value, list)
            value = value[step]
        else:
            assert isinstance(value, dict)
            value = value[step]
    return value


def test_sarif_has_a_result_per_vulnerability_of_a_package() -> None:
    log = sarif(ANSWER)
    results = dig(log, "runs", 0, "results")

    assert isinstance(results, list)
    assert [(result["ruleId"], result["level"], "suppressions" in result) for result in results] == [
        ("CVE-2024-1", "error", False),
        ("GHSA-2", "warning", False),
        ("GHSA-4", "error", True),
    ]
    assert dig(results, 0, "message", "text") == (
        "pkg:npm/lodash@4.17.4 is affected by GHSA-1 (< 4.17.12). Update to 4.17.12. "
        "The vulnerability is known to be exploited."
    )
    assert dig(results, 2, "suppressions", 0, "justification") == UNREACHABLE
    assert dig(log, "runs", 0, "tool", "driver", "rules", 0, "properties", "tags") == ["security", "known-exploited"]
    assert dig(log, "runs", 0, "tool", "driver", "rules", 0, "helpUri") == "https://example.org/GHSA-1"


def test_sarif_points_at_the_line_of_a_lockfile_that_names_the_package() -> None:
    file = DependencyFile(name="web/package-lock.json", text='{\n"lodash-es": 1,\n"node_modules/lodash": 2}')
    location = dig(sarif(ANSWER, [file]), "runs", 0, "results", 0, "locations", 0, "physicalLocation")

    assert location == {"artifactLocation": {"uri": "web/package-lock.json"}, "region": {"startLine": 3}}


def test_sarif_finds_a_python_package_however_its_name_is_spelt() -> None:
    jose = PackageFindings(
        package="pkg:pypi/python-jose@3.3.0", name="python-jose", version="3.3.0", ecosystem="PyPI", status="affected",
        findings=(finding("GHSA-1", "GHSA-1"),),
    )  # fmt: skip
    for spelling in ("python_jose[cryptography]==3.3.0", "Python.Jose==3.3.0", "python-jose==3.3.0"):
        file = DependencyFile(name="requirements.txt", text=f"flask==1.0\npython-jose-x==1\n{spelling}")
        location = dig(sarif([jose], [file]), "runs", 0, "results", 0, "locations", 0, "physicalLocation")
        assert dig(location, "region", "startLine") == 3


def test_openvex_has_a_statement_per_vulnerability_of_a_package() -> None:
    statements = dig(openvex(ANSWER, author="Shop", time=DAY), "statements")

    assert isinstance(statements, list)
    assert [(each["vulnerability"]["name"], each["status"]) for each in statements] == [
        ("CVE-2024-1", "affected"),
        ("GHSA-2", "under_investigation"),
        ("GHSA-3", "not_affected"),
        ("GHSA-4", "not_affected"),
    ]
    assert statements[0]["action_statement"] == "Update to 4.17.12."
    assert statements[2]["impact_statement"] == "4.17.4 is not among the affected versions of GHSA-3 (< 4.17.12)."
    assert statements[3]["justification"] == UNREACHABLE


@pytest.mark.parametrize(
    ("deciding", "expected"),
    [
        (statement(), {"status": "not_affected", "justification": UNREACHABLE}),
        (statement(impact="Never called."), {"status": "not_affected", "impact_statement": "Never called."}),
        (statement("fixed"), {"status": "fixed"}),
    ],
)
def test_openvex_repeats_the_statement_that_decided(deciding: Statement, expected: Mapping[str, str]) -> None:
    cleared = replace(finding("GHSA-4", "GHSA-4", status="not_affected", basis="statement"), statements=(deciding,))
    written = dig(openvex([package("hoek", cleared)], author="Shop", time=DAY), "statements", 0)

    assert isinstance(written, dict)
    assert {name: written[name] for name in written.keys() - {"vulnerability", "products"}} == expected


def test_what_is_written_as_openvex_is_read_as_openvex() -> None:
    written = openvex(ANSWER, author="Shop", time=DAY, product="pkg:oci/shop")
    read = documents(Reading("openvex").read(written))

    assert [document.attributes["status"] for document in read] == [
        *("affected", "under_investigation", "not_affected", "not_affected"),
    ]
    assert read[0].scope[0]["package"] == ("pkg:oci/shop",)
    assert read[0].scope[0]["component"] == ("pkg:npm/lodash@4.17.4",)
