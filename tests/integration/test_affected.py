"""Which versions of packages are affected, by the records in force."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from threading import get_ident

import msgspec
import pytest
from msgspec.structs import replace

import stream_car
from stream_car import DependencyFile, Engine, InvalidRequest, PackageFindings, RecordFinding
from stream_car.adapters.search.index import TantivyIndex
from stream_car.api.requests import GetAffected
from stream_car.core.documents import Document, Retraction
from stream_car.local.concurrent_service import ConcurrentService
from stream_car.lockfiles.dependencies import Dependencies
from stream_car.lockfiles.formats import read_dependencies
from tests.support.feeds import Reading, documents

LODASH, APP = "pkg:npm/lodash", "pkg:oci/shop"
UNREACHABLE = "vulnerable_code_not_in_execute_path"


def record(
    name: str, modified: str, package: str, *events: str, aliases: Sequence[str] = (), **fields: object
) -> bytes:
    """An OSV record about one package; events are written as `fixed 1.0`."""
    ranges = [{"type": "SEMVER", "events": [dict([event.split()]) for event in events]}]
    return msgspec.json.encode(
        {
            "id": name,
            "modified": f"{modified}T00:00:00Z",
            "aliases": aliases,
            "summary": f"A flaw in {package}",
            "affected": [{"package": {"ecosystem": "npm", "name": package}, "ranges": ranges}],
            **fields,
        }
    )


def cve_record(state: str = "PUBLISHED", *, day: str = "2024-01-01") -> bytes:
    """A CVE record that names no ecosystem, or its rejection."""
    versions = [{"version": "0", "status": "affected", "lessThan": "9"}]
    return msgspec.json.encode(
        {
            "cveMetadata": {"cveId": "CVE-2024-1111", "state": state, "dateUpdated": f"{day}T00:00:00Z"},
            "containers": {"cna": {"affected": [{"vendor": "x", "product": "lodash", "versions": versions}]}},
        }
    )


def vex(
    day: str, status: str, product: str, component: str = "", *, reason: str = UNREACHABLE, impact: str = ""
) -> bytes:
    parts = {"subcomponents": [{"@id": component}]} if component else {}
    statement = {
        "vulnerability": {"name": "CVE-2024-1111"},
        "products": [{"@id": product, **parts}],
        "status": status,
        "justification": reason if status == "not_affected" else "",
        "impact_statement": impact,
    }
    document = {"@context": "https://openvex.dev/ns", "@id": "https://shop/vex", "author": "Shop"}
    return msgspec.json.encode({**document, "timestamp": f"{day}T00:00:00Z", "statements": [statement]})


def exploited(cve: str, **fields: str) -> bytes:
    entry = {"cveID": cve, "vendorProject": "-", "product": "-", "vulnerabilityName": "In use", **fields}
    return msgspec.json.encode(
        {"catalogVersion": "1", "dateReleased": "2024-06-01T00:00:00Z", "count": 1, "vulnerabilities": [entry]}
    )


OPEN = record("GHSA-1", "2024-01-01", "lodash", "introduced 0", aliases=["CVE-2024-1111"])
FIXED = record("GHSA-1", "2024-02-01", "lodash", "introduced 0", "fixed 4.17.12", aliases=["CVE-2024-1111"])
LATER_OPEN = record("GHSA-1", "2024-03-01", "lodash", "introduced 0", aliases=["CVE-2024-1111"])
WITHDRAWN = record("GHSA-2", "2024-03-01", "lodash", "introduced 0", withdrawn="2024-03-01T00:00:00Z")
OTHER = record("GHSA-3", "2024-01-01", "lodash", "introduced 4.0.0", "fixed 4.5.0", aliases=["CVE-2024-3333"])


@pytest.fixture
def car(tmp_path: Path) -> Iterator[Engine]:
    with stream_car.open(tmp_path, rules="security") as engine:
        yield engine


def publish(car: Engine, *pieces: bytes, form: str = "osv") -> None:
    reading = Reading(form)
    for piece in pieces:
        documents = reading.read(piece)
        assert documents
        assert car.publish(documents).outcomes.keys() == {"accepted"}


def affected(car: Engine, package: str, **options: object) -> PackageFindings:
    [findings] = car.affected([package], **options)  # type: ignore[arg-type]
    return findings


def only(findings: PackageFindings) -> RecordFinding:
    [finding] = findings.findings
    return finding


def test_a_record_in_force_tells_which_versions_are_affected_and_what_fixes_them(car: Engine) -> None:
    publish(car, OPEN, FIXED)
    old, new = only(affected(car, "lodash@4.17.4")), only(affected(car, f"{LODASH}@4.17.12", all=True))
    assert affected(car, f"{LODASH}@4.17.12").findings == ()

    assert (old.status, old.basis, old.range, old.fixed_in) == ("affected", "range", "< 4.17.12", ("4.17.12",))
    assert (old.record, old.names, old.state_text) == ("GHSA-1", ("GHSA-1", "CVE-2024-1111"), "fixed in 4.17.12")
    assert (new.status, new.basis, new.fixed_in) == ("not_affected", "outside", ())


def test_the_chain_leads_from_the_first_edition_to_the_document_in_force(car: Engine) -> None:
    publish(car, OPEN, FIXED)
    [chain] = only(affected(car, "lodash@4.17.4")).chains

    assert chain.start == "GHSA-1@2024-01-01T00:00:00Z"
    assert [(step.id, step.outcome) for step in chain.steps] == [("GHSA-1@2024-02-01T00:00:00Z", "fixed")]


def test_a_correction_and_a_retraction_are_never_answered_from_the_cache(car: Engine) -> None:
    [document] = documents(Reading("osv").read(OPEN))
    [corrected] = documents(Reading("osv").read(FIXED))
    car.publish(document)
    before = [affected(car, f"{LODASH}@4.17.12").status for _ in range(2)]
    car.publish(replace(document, revision=2, attributes=corrected.attributes))
    after = [affected(car, f"{LODASH}@{version}").status for version in ("4.17.12", "4.17.4", "4.17.12")]
    car.publish(Retraction(id=document.id))

    assert before == ["affected", "affected"]
    assert after == ["not_affected", "affected", "not_affected"]
    assert affected(car, f"{LODASH}@4.17.4", all=True).findings == ()


def test_a_withdrawal_and_a_fix_are_never_answered_from_the_cache(car: Engine) -> None:
    answers: list[str] = []
    still_open = record("GHSA-2", "2024-01-01", "lodash", "introduced 0")
    for piece in (OPEN, still_open, FIXED, WITHDRAWN, LATER_OPEN):
        publish(car, piece)
        findings = affected(car, f"{LODASH}@4.17.12").findings
        answers.append(" ".join(finding.record for finding in findings))

    assert answers == ["GHSA-1", "GHSA-1 GHSA-2", "GHSA-2", "", "GHSA-1"]


def test_a_document_that_does_not_concern_a_version_is_read_once(car: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(car, FIXED, OTHER)
    reads: list[str] = []
    read_documents = TantivyIndex.documents

    async def count(index: TantivyIndex, ids: Sequence[str]) -> dict[str, Document]:
        reads.extend(ids)
        return await read_documents(index, ids)

    monkeypatch.setattr(TantivyIndex, "documents", count)
    answers = [affected(car, f"{LODASH}@{version}").status for version in ("5.0.0", "6.0.0", "4.17.11")]

    assert answers == ["not_affected", "not_affected", "affected"]
    assert reads.count("GHSA-3@2024-01-01T00:00:00Z") == 1


def test_a_package_that_no_record_names_is_told_apart_from_a_clean_one(car: Engine) -> None:
    publish(car, FIXED)

    assert affected(car, "left-pad@1.0.0") == PackageFindings(
        package="left-pad@1.0.0", name="left-pad", version="1.0.0", ecosystem="", status="no_record"
    )
    assert affected(car, "pkg:pypi/lodash@1").status == "no_record"
    assert affected(car, "pkg:npm/lodash@5").status == "not_affected"


def test_without_a_version_it_depends_and_the_range_says_on_which(car: Engine) -> None:
    publish(car, FIXED)
    finding = only(affected(car, "lodash"))

    assert (finding.status, finding.basis, finding.range, finding.fixed_in) == (
        *("unknown", "no_version", "< 4.17.12"),
        ("4.17.12",),
    )


def test_a_withdrawn_record_is_listed_only_on_request(car: Engine) -> None:
    publish(car, WITHDRAWN)

    assert affected(car, "lodash@4.17.4").findings == ()
    withdrawn = affected(car, "lodash@4.17.4", all=True)
    assert (withdrawn.status, only(withdrawn).outcome_text) == ("not_affected", "withdrawn 2024-03-01")


def test_a_publisher_that_takes_a_fix_back_is_believed(car: Engine) -> None:
    publish(car, FIXED, LATER_OPEN)
    finding = only(affected(car, "lodash@4.17.12"))

    assert (finding.status, finding.range, finding.fixed_in) == ("affected", "all versions", ())


def test_an_advisory_that_another_publisher_has_fixed_counts_no_more(car: Engine) -> None:
    same = record("RHSA-1", "2024-01-15", "lodash", "introduced 0", aliases=["CVE-2024-1111"])
    publish(car, same, FIXED)

    assert affected(car, "lodash@4.17.12").status == "not_affected"
    listed = {finding.record: finding for finding in affected(car, "lodash@4.17.12", all=True).findings}
    assert listed["RHSA-1"].outcome == "fixed"


def test_a_fix_that_names_no_versions_leaves_the_advisory_to_tell_them(car: Engine) -> None:
    until = ("introduced 0", "last_affected 4.17.11")
    publish(car, record("GHSA-1", "2024-01-01", "lodash", *until, aliases=["CVE-2024-1111"]))
    release: Mapping[str, object] = {
        "id": "lodash-4.17.12", "type": "release_note", "time": "2024-05-01",
        "scope": {"cve": "CVE-2024-1111", "package": "lodash"},
    }  # fmt: skip
    car.publish(release)
    old, new = affected(car, "lodash@4.17.4"), affected(car, f"{LODASH}@4.17.12")

    assert [(each.document, each.status) for each in old.findings] == [("lodash-4.17.12", "affected")]
    assert new.status == "not_affected"


def test_a_rejected_cve_takes_the_advisories_about_it_along(car: Engine) -> None:
    publish(car, OPEN)
    rejection: Mapping[str, object] = {
        "id": "rejection", "type": "cve_rejected", "time": "2024-05-01",
        "scope": {"cve": "CVE-2024-1111", "package": "lodash"},
    }  # fmt: skip
    car.publish(rejection)

    assert affected(car, "lodash@4.17.4").status == "not_affected"
    assert [each.outcome for each in affected(car, "lodash@4.17.4", all=True).findings] == ["rejected", "rejected"]


def test_known_exploitation_comes_first(car: Engine) -> None:
    publish(car, FIXED, OTHER)
    publish(car, exploited("CVE-2024-3333"), form="kev")
    first, second = affected(car, "lodash@4.4.0").findings

    assert (first.record, [report.title for report in first.exploited]) == ("GHSA-3", ["Exploited: In use"])
    assert (second.record, second.exploited) == ("GHSA-1", ())


def test_exploitation_is_known_since_the_day_of_the_entry_not_that_of_the_catalogue(car: Engine) -> None:
    publish(car, OTHER)
    publish(car, exploited("CVE-2024-3333", dateAdded="2022-03-03"), form="kev")
    [report] = only(affected(car, "lodash@4.4.0")).exploited

    assert str(report.time) == "2022-03-03 00:00:00+00:00"


@pytest.mark.parametrize("text", ["requests>=2.0", "requests~=2.0", "@", "@@", "lodash@^4.17.0", "x@", "./folder"])
def test_what_is_not_a_package_is_an_error_that_says_what_is_expected(car: Engine, text: str) -> None:
    with pytest.raises(InvalidRequest, match="NAME@VERSION"):
        car.affected([text])


def test_a_requirement_without_a_name_is_unknown_and_the_others_are_judged(car: Engine) -> None:
    publish(car, FIXED)
    text = "-e .\ngit+https://example.org/y#egg=y\nlodash==1.0"
    answer = car.affected(files=[DependencyFile(name="requirements.txt", text=text)])

    assert [(each.package, each.status) for each in answer] == [
        *(("-e .", "unknown"), ("pkg:pypi/y", "no_record"), ("pkg:pypi/lodash@1.0", "no_record"))
    ]


def test_a_statement_about_the_product_that_is_asked_about_overrules_a_record(car: Engine) -> None:
    publish(car, FIXED)
    publish(car, vex("2024-05-01", "not_affected", APP, f"{LODASH}@4.17.4"), form="openvex")
    theirs, ours = only(affected(car, f"{LODASH}@4.17.4")), only(affected(car, f"{LODASH}@4.17.4", product=APP))

    assert (theirs.status, [statement.decides for statement in theirs.statements]) == ("affected", [False])
    assert (ours.status, ours.basis, ours.justification) == ("not_affected", "statement", UNREACHABLE)
    assert ours.stated_status == "affected"
    assert affected(car, f"{LODASH}@4.17.3", product=APP).status == "affected"
    assert affected(car, f"{LODASH}@4.17.4", product="pkg:oci/other").status == "affected"


def test_a_statement_about_a_package_alone_counts_if_its_author_is_trusted(car: Engine) -> None:
    publish(car, FIXED)
    publish(car, vex("2024-05-01", "not_affected", f"{LODASH}@4.17.4"), form="openvex")

    assert affected(car, "lodash@4.17.4").status == "affected"
    assert affected(car, "lodash@4.17.4", vex_authors=["Somebody"]).status == "affected"
    assert affected(car, "lodash@4.17.4", vex_authors=["Shop"]).status == "not_affected"


def test_a_statement_that_does_not_say_why_overrules_nothing(car: Engine) -> None:
    publish(car, FIXED)
    publish(car, vex("2024-05-01", "not_affected", APP, LODASH, reason=""), form="openvex")
    bare = only(affected(car, f"{LODASH}@4.17.4", product=APP))
    publish(car, vex("2024-06-01", "not_affected", APP, LODASH, reason="", impact="Never called."), form="openvex")

    assert (bare.status, [statement.decides for statement in bare.statements]) == ("affected", [False])
    assert affected(car, f"{LODASH}@4.17.4", product=APP).status == "not_affected"


def test_a_later_statement_takes_an_earlier_one_back(car: Engine) -> None:
    publish(car, FIXED)
    publish(
        car, vex("2024-05-01", "not_affected", APP, LODASH), vex("2024-06-01", "affected", APP, LODASH), form="openvex"
    )
    finding = only(affected(car, f"{LODASH}@4.17.4", product=APP))

    assert (finding.status, [statement.status for statement in finding.statements]) == ("affected", ["affected"])


def test_the_answer_of_an_earlier_day_is_that_of_the_records_then(car: Engine) -> None:
    publish(car, OPEN, FIXED)
    then = only(affected(car, "lodash@4.17.12", as_of="2024-01-15"))

    assert (then.status, then.range) == ("affected", "all versions")
    assert affected(car, "lodash@4.17.12", as_of="2023-01-15").findings == ()


def test_a_cve_record_is_left_out_beside_one_that_names_the_ecosystem(car: Engine) -> None:
    publish(car, cve_record(), form="cve5")
    [alone] = affected(car, f"{LODASH}@4.17.4").findings
    publish(car, record("GHSA-1", "2023-02-01", "lodash", "introduced 0", "fixed 4.17.12", aliases=["CVE-2024-1111"]))

    assert (alone.status, alone.basis) == ("unknown", "ecosystem")
    assert [each.record for each in affected(car, f"{LODASH}@4.17.4").findings] == ["GHSA-1"]


def test_a_record_that_does_not_concern_a_version_clears_it_of_one_without_an_ecosystem(car: Engine) -> None:
    publish(car, cve_record(), form="cve5")
    publish(car, record("GHSA-1", "2023-02-01", "lodash", "introduced 0", "fixed 4.17.12", aliases=["CVE-2024-1111"]))
    brief, full = affected(car, f"{LODASH}@5.0.0"), affected(car, f"{LODASH}@5.0.0", all=True)

    assert (brief.status, full.status) == ("not_affected", "not_affected")
    assert (brief.findings, [each.record for each in full.findings]) == ((), ["GHSA-1"])


def test_a_withdrawn_record_clears_nothing(car: Engine) -> None:
    publish(car, cve_record(), form="cve5")
    withdrawn = {"withdrawn": "2024-03-01T00:00:00Z"}
    publish(car, record("GHSA-1", "2024-03-01", "lodash", "introduced 0", aliases=["CVE-2024-1111"], **withdrawn))

    assert [affected(car, f"{LODASH}@5.0.0", all=lists_all).status for lists_all in (False, True)] == ["unknown"] * 2


@pytest.mark.parametrize("seed", range(12))
def test_the_verdict_is_the_same_whether_all_is_listed(car: Engine, seed: int) -> None:
    choose = Random(seed)
    same = {"aliases": ["CVE-2024-1111"]}
    pieces = [
        *((piece, "osv") for piece in (OPEN, FIXED, LATER_OPEN, WITHDRAWN, OTHER)),
        (record("PYSEC-1", "2024-02-15", "lodash", "introduced 3.0.0", "fixed 5.0.0", **same), "osv"),
        (record("RHSA-1", "2024-01-15", "lodash", "introduced 0", **same), "osv"),
        (cve_record(), "cve5"),
        (cve_record("REJECTED", day="2024-02-20"), "cve5"),
        (vex("2024-05-01", "not_affected", APP, LODASH), "openvex"),
        (exploited("CVE-2024-1111"), "kev"),
    ]
    readings = {form: Reading(form) for _, form in pieces}
    for piece, form in choose.sample(pieces, choose.randint(2, len(pieces))):
        car.publish(readings[form].read(piece))
    for package in ("lodash", "lodash@1.0.0", f"{LODASH}@2.0.0", f"{LODASH}@4.17.12", f"{LODASH}@4.4.0"):
        for product in ("", APP):
            brief, full = (affected(car, package, all=lists_all, product=product) for lists_all in (False, True))
            open_ones = [each for each in full.findings if not each.outcome and each.basis != "statement"]
            shown = [each for each in brief.findings if each.basis != "statement"]
            assert brief.status == full.status, package
            assert shown == [each for each in open_ones if each.status != "not_affected"], package


def test_publishers_that_disagree_about_a_version_are_shown_with_each_other(car: Engine) -> None:
    publish(car, FIXED)
    publish(car, record("PYSEC-1", "2024-02-15", "lodash", "introduced 0", "fixed 4.18.0", aliases=["CVE-2024-1111"]))
    finding = only(affected(car, "lodash@4.17.12"))

    assert (finding.record, finding.status) == ("PYSEC-1", "affected")
    assert [(each.record, each.status, each.range) for each in finding.disputed_by] == [
        ("GHSA-1", "not_affected", "< 4.17.12")
    ]
    assert [each.disputed_by for each in affected(car, "lodash@4.17.4").findings] == [(), ()]


def test_a_fix_that_does_not_know_an_older_version_leaves_it_unknown(car: Engine) -> None:
    same = {"aliases": ["CVE-2024-1111"]}
    publish(car, record("RHSA-1", "2024-01-15", "lodash", "introduced 0", **same))
    publish(car, record("GHSA-1", "2024-02-01", "lodash", "introduced 3.0.0", "fixed 4.17.12", **same))
    older = only(affected(car, "lodash@2.0.0"))

    assert (older.record, older.status, older.basis) == ("RHSA-1", "unknown", "disputed")
    assert [(each.record, each.range) for each in older.disputed_by] == [("GHSA-1", ">= 3.0.0, < 4.17.12")]
    assert affected(car, "lodash@4.0.0").status == "affected"
    assert affected(car, "lodash@4.17.12").status == "not_affected"


def test_a_fix_of_a_package_of_the_same_name_elsewhere_fixes_nothing(car: Engine) -> None:
    publish(car, OPEN)
    elsewhere = {
        "package": {"ecosystem": "PyPI", "name": "lodash"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.0"}]}],
    }
    fix = {"id": "PYSEC-1", "modified": "2024-02-01T00:00:00Z", "aliases": ["CVE-2024-1111"], "affected": [elsewhere]}
    publish(car, msgspec.json.encode(fix))

    assert affected(car, f"{LODASH}@5.0.0").status == "affected"
    assert affected(car, "pkg:pypi/lodash@1.0").status == "not_affected"


def test_a_part_of_a_bill_without_a_purl_is_found_by_its_group_and_name(car: Engine) -> None:
    log4j = {"package": {"ecosystem": "Maven", "name": "org.apache.logging.log4j:log4j-core"}}
    ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "2.0"}, {"fixed": "2.15.0"}]}]
    advisory = {"id": "GHSA-9", "modified": "2021-12-10T00:00:00Z", "affected": [{**log4j, "ranges": ranges}]}
    publish(car, msgspec.json.encode(advisory))
    part = {"group": "org.apache.logging.log4j", "name": "log4j-core", "type": "library"}
    bill = {"bomFormat": "CycloneDX", "components": [{**part, "version": v} for v in ("2.14.1", "2.15.0")]}
    answer = car.affected(files=[DependencyFile(name="bom.json", text=msgspec.json.encode(bill).decode())])

    assert [each.status for each in answer] == ["affected", "not_affected"]


def test_a_name_that_is_not_a_package_is_an_error(car: Engine) -> None:
    for options, code in (({"packages": ["pkg:"]}, "packages"), ({"packages": ["x@1"], "product": "pkg:"}, "product")):
        with pytest.raises(InvalidRequest) as error:
            car.affected(**options)
        assert error.value.code == code


def test_the_packages_of_files_follow_those_that_are_named(car: Engine, tmp_path: Path) -> None:
    publish(car, FIXED)
    lockfile = tmp_path / "package-lock.json"
    packages = {"": {}, "node_modules/lodash": {"version": "4.17.4"}}
    lockfile.write_bytes(msgspec.json.encode({"lockfileVersion": 3, "packages": packages}))
    components = f'[{{"purl": "{LODASH}@5.0.0"}}]'
    bill = DependencyFile(name="bom.json", text=f'{{"bomFormat": "CycloneDX", "components": {components}}}')
    answer = car.affected(["left-pad@1"], files=[lockfile, bill])

    assert [(each.package, each.status) for each in answer] == [
        ("left-pad@1", "no_record"),
        (f"{LODASH}@4.17.4", "affected"),
        (f"{LODASH}@5.0.0", "not_affected"),
    ]


def test_the_product_of_a_bill_of_materials_is_the_one_whose_statements_count(car: Engine) -> None:
    publish(car, FIXED)
    publish(car, vex("2024-05-01", "not_affected", APP, LODASH), form="openvex")
    product = {"component": {"purl": APP}}
    bill = {"bomFormat": "CycloneDX", "metadata": product, "components": [{"purl": f"{LODASH}@4.17.4"}]}
    [package] = car.affected(files=[DependencyFile(name="bom.json", text=msgspec.json.encode(bill).decode())])

    assert package.status == "not_affected"


def test_a_file_that_cannot_be_found_is_an_error(car: Engine, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as error:
        car.affected(files=[tmp_path / "poetry.lock"])

    assert error.value.code == "files"


BOTTLE = record("PYSEC-9", "2024-01-01", "bottle", "introduced 0", "fixed 0.12.20", details="Requests, requests. " * 20)
REQUESTS = record("PYSEC-1", "2024-01-01", "requests", "introduced 0", "fixed 2.20.0", details="A header is sent on.")


@pytest.mark.parametrize(
    ("question", "package", "status"),
    [
        ("is requests 2.19 vulnerable?", "requests@2.19", "affected"),
        ("is requests 2.20 vulnerable?", "requests@2.20", "not_affected"),
        ("is requests vulnerable?", "requests", "unknown"),
    ],
)
def test_a_question_about_a_package_leads_to_it_and_is_answered_for_its_version(
    car: Engine, question: str, package: str, status: str
) -> None:
    publish(car, BOTTLE, REQUESTS)
    answer = car.query(question)

    assert [document.scope[0]["record"] for document in answer.results] == [("PYSEC-1",)]
    assert [(each.package, each.status) for each in answer.packages] == [(package, status)]
    for each in answer.packages[0].findings:
        assert (each.range, each.fixed_in) == ("< 2.20.0", ("2.20.0",))


def test_a_question_that_names_no_package_that_is_known_is_answered_as_before(car: Engine) -> None:
    publish(car, BOTTLE, REQUESTS)

    for question in ("is Firefox 99.0 vulnerable to requests?", "requests that bottle sends"):
        answer = car.query(question)
        assert answer.packages == ()
        assert {document.scope[0]["record"] for document in answer.results} == {("PYSEC-9",), ("PYSEC-1",)}


def test_more_records_than_one_answer_holds_are_an_error(car: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_car.queries.affected.RECORDS_TOGETHER_MAX", 2)
    publish(car, OPEN, OTHER)
    assert len(affected(car, "lodash@4.2.0").findings) == 2

    publish(car, record("GHSA-4", "2024-01-01", "lodash", "introduced 0"))
    with pytest.raises(InvalidRequest, match="More than 2 records name these packages") as raised:
        affected(car, "lodash@4.2.0")
    assert raised.value.code == "packages"


def test_a_record_of_very_many_editions_is_judged_by_the_latest(car: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_car.queries.affected.EDITIONS_MAX", 5)
    days = [f"2024-{month:02d}-{day:02d}" for month in range(1, 7) for day in range(1, 28)]
    for at, day in enumerate(days, 1):
        publish(car, record("GHSA-1", day, "lodash", "introduced 0", f"fixed {at}.0.0"))
    findings = affected(car, "lodash@100.0.0")
    finding = only(findings)

    assert (finding.status, finding.fixed_in) == ("affected", (f"{len(days)}.0.0",))
    assert finding.chains[0].start == f"GHSA-1@{days[0]}T00:00:00Z"
    assert findings.reasons == ("limit",)
    reasons = {at: affected(car, "lodash@100.0.0", as_of=f"{days[at]}T12:00:00Z").reasons for at in (0, 3, 5, 6)}
    assert reasons == {0: (), 3: (), 5: (), 6: ("limit",)}  # the first edition and the latest five are all of six


def test_a_vulnerability_with_very_many_statements_is_marked(car: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stream_car.queries.vulnerability_context.MEMBERS_TOGETHER_MAX", 1)
    publish(car, OPEN)
    publish(car, exploited("CVE-2024-1111"), form="kev")
    assert affected(car, f"{LODASH}@4.17.4").reasons == ()
    publish(car, vex("2024-05-01", "not_affected", APP, LODASH), form="openvex")

    assert affected(car, f"{LODASH}@4.17.4", product=APP).reasons == ("limit",)


async def test_files_are_read_beside_the_event_loop(car: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(car, OPEN)
    threads: list[int] = []

    def read(files: Sequence[DependencyFile]) -> Dependencies:
        threads.append(get_ident())
        return read_dependencies(files)

    monkeypatch.setattr("stream_car.api.base_service.read_dependencies", read)
    request = GetAffected(files=(DependencyFile(name="requirements.txt", text="lodash==1.0"),))
    async with ConcurrentService(car.directory) as service:
        await service.call(request)
        await service.call(GetAffected(packages=("lodash@1.0",)))

    assert threads[0] != get_ident()
    assert threads[1:] == [get_ident()]
