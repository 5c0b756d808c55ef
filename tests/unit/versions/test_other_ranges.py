"""Whether a version is affected by what CVE records and CSAF advisories say of their products."""

from collections.abc import Mapping

import pytest

from stream_car.versions.csaf_products import csaf_judge, is_within
from stream_car.versions.cve_ranges import cve_judge
from stream_car.versions.orders import NUMBERS
from stream_car.versions.packages import parse_package
from stream_car.versions.verdicts import Verdict

BRANCHES = [
    {"version": "3.0", "status": "affected", "lessThan": "3.2", "versionType": "custom"},
    {
        "version": "1.0",
        "status": "affected",
        "lessThan": "2.0",
        "versionType": "semver",
        "changes": [{"at": "1.5", "status": "unaffected"}, {"at": "1.8", "status": "affected"}],
    },
    {"version": "5.0", "status": "affected"},
]


def cve(package: str, versions: object = BRANCHES, **fields: object) -> Verdict | None:
    product = {"vendor": "acme", "product": "Anvil", "versions": versions, "defaultStatus": "unaffected", **fields}
    return cve_judge([product])(parse_package(package))


@pytest.mark.parametrize(
    ("version", "status", "basis", "decides"),
    [
        ("3.1", "affected", "range", ">= 3.0, < 3.2"),
        ("3.2", "not_affected", "default", ">= 3.0, < 3.2 or >= 1.0, < 2.0 or version 5.0"),
        ("1.2", "affected", "range", ">= 1.0, < 2.0"),
        ("1.5", "not_affected", "stated", ">= 1.0, < 2.0"),
        ("1.9", "affected", "range", ">= 1.0, < 2.0"),
        ("5.0", "affected", "stated", "version 5.0"),
        ("3.1b", "unknown", "unreadable", ">= 3.0, < 3.2 or >= 1.0, < 2.0 or version 5.0"),
        ("", "unknown", "no_version", ">= 3.0, < 3.2 or >= 1.0, < 2.0 or version 5.0"),
    ],
)
def test_the_first_entry_of_a_cve_that_holds_a_version_decides(
    version: str, status: str, basis: str, decides: str
) -> None:
    judged = cve(f"anvil@{version}" if version else "anvil")

    assert judged is not None
    assert (judged.status, judged.basis, judged.range) == (status, basis, decides)


@pytest.mark.parametrize(("default", "status"), [("affected", "affected"), ("unknown", "unknown")])
def test_a_version_that_a_cve_does_not_name_has_the_default_status(default: str, status: str) -> None:
    judged = cve("anvil@9", defaultStatus=default)

    assert judged is not None
    assert judged.status == status


def test_the_end_of_a_range_of_a_cve_may_be_open_or_included() -> None:
    forever = [{"version": "0", "status": "affected", "lessThanOrEqual": "*", "versionType": "semver"}]
    up_to = [{"version": "unspecified", "status": "affected", "lessThanOrEqual": "2.0", "versionType": "custom"}]

    judged = [cve("anvil@99", forever), cve("anvil@2.0", up_to), cve("anvil@2.1", up_to)]
    assert [each.status for each in judged if each is not None] == ["affected", "affected", "not_affected"]


def test_a_cve_without_an_ecosystem_may_be_about_another_package_of_that_name() -> None:
    judged, own = cve("pkg:npm/anvil@3.1.0"), cve("pkg:npm/anvil@3.1.0", collectionURL="https://registry.npmjs.org")

    assert judged is not None
    assert own is not None
    assert (judged.status, judged.basis) == ("unknown", "ecosystem")
    assert own.status == "affected"
    assert cve("pkg:pypi/anvil@3.1", collectionURL="https://registry.npmjs.org") is None
    assert cve("hammer@1") is None


def csaf(version: str, *products: Mapping[str, object]) -> Verdict:
    judged = csaf_judge([{"product": "Anvil", **product} for product in products])(parse_package(f"anvil@{version}"))
    assert judged is not None
    return judged


def test_a_version_that_fixes_one_vulnerability_of_an_advisory_is_no_fix_if_another_affects_it() -> None:
    products: tuple[Mapping[str, object], ...] = (
        {"status": "known_affected", "range": "<1.2", "vulnerability": ["CVE-1"]},
        {"status": "fixed", "version": "1.2", "vulnerability": ["CVE-1"]},
        {"status": "known_affected", "range": "<1.10", "vulnerability": ["CVE-2"]},
        {"status": "fixed", "version": "1.10", "vulnerability": ["CVE-2"]},
        {"status": "fixed", "version": "0.9", "vulnerability": ["CVE-2"]},
    )

    assert csaf("1.0", *products).fixed_in == ("1.10",)
    assert (csaf("1.2", *products).status, csaf("1.2", *products).fixed_in) == ("affected", ("1.10",))
    assert csaf("1.10", *products).is_fixed


def test_the_status_of_a_product_of_an_advisory_is_that_of_its_version() -> None:
    products: tuple[Mapping[str, object], ...] = (
        {"status": "known_affected", "range": "<1.2"},
        {"status": "fixed", "version": "V1.2"},
        {"status": "known_not_affected", "version": "0.9", "justification": "component_not_present"},
        {"status": "under_investigation", "version": "3.0"},
    )

    assert (csaf("1.1", *products).status, csaf("1.1", *products).fixed_in) == ("affected", ("V1.2",))
    assert (csaf("1.2", *products).status, csaf("1.2", *products).basis) == ("not_affected", "stated")
    assert csaf("0.9", *products).justification == "component_not_present"
    assert csaf("3.0", *products).basis == "investigation"
    assert csaf("2.0", *products).basis == "outside"


@pytest.mark.parametrize("turn", [1, -1])
def test_a_version_is_affected_by_an_advisory_if_one_of_its_vulnerabilities_affects_it(turn: int) -> None:
    products: list[Mapping[str, object]] = [
        {"status": "known_affected", "version": "1.0", "vulnerability": ["CVE-2026-8"]},
        {"status": "known_not_affected", "version": "1.0", "vulnerability": ["CVE-2026-9"]},
    ]

    assert csaf("1.0", *products[::turn]).status == "affected"
    assert csaf("1.0", *products[1:]).status == "not_affected"


def test_a_version_that_an_advisory_does_not_list_is_unknown() -> None:
    assert csaf("1.1", {"status": "known_affected", "version": "1.0"}).basis == "no_ranges"
    assert csaf("1.1", {"status": "known_affected", "range": "some"}).basis == "unreadable"


@pytest.mark.parametrize(
    ("text", "version", "holds"),
    [
        ("vers:generic/>=1.0|<2.0", "1.5", True),
        ("vers:generic/>=1.0|<2.0", "2.0", False),
        ("vers:generic/>=1.0|<2.0|>=3.0|<4.0", "3.5", True),
        ("vers:generic/>=1.0|<2.0|>=3.0|<4.0", "2.5", False),
        ("vers:generic/1.0|2.0", "2.0", True),
        ("vers:generic/1.0|2.0", "1.5", False),
        ("vers:generic/>=1.0|!=1.5", "1.5", False),
        ("vers:generic/>=1.0|!=1.5", "1.6", True),
        ("vers:all/*", "7", True),
        ("*", "7", True),
        ("All versions", "7", True),
        ("<=V2.1", "2.1", True),
        ("< 2.1", "2.1", False),
        (">=1.0 <2.0", "1.0", True),
        ("<2.0, >=1.0", "1.5", True),
        ("<2.0, >=1.0", "0.5", False),
        ("<2.0, >=1.0", "3.0", False),
        (">=1.0, <=1.0", "1.0", True),
        (">=1.0, !=1.5, <2.0", "1.5", False),
        ("1.0, 1.1", "1.1", True),
        (">=1.0|<2.0|>=3.0", "3.5", True),
        ("<1.0, >=2.0", "0.5", None),
        ("2.1 and prior", "2.1", True),
        ("V2.1 and earlier versions", "2.2", False),
        ("between 1 and 2", "1", None),
        ("<1.2", "1.2b", None),
    ],
)
def test_a_range_of_an_advisory_is_read_as_vers_or_as_comparators(text: str, version: str, holds: bool | None) -> None:
    assert is_within(text, version, NUMBERS) is holds
