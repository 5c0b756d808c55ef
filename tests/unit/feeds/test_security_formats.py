"""CSAF, OpenVEX, CVE records and the catalogue of exploited vulnerabilities, on documents of a few lines."""

import tracemalloc

import pytest

from stream_car.core.documents import Document, Retraction
from tests.support.feeds import Reading, documents


def csaf(version: str = "1", date: str = "2024-01-02T00:00:00Z", **document: object) -> dict[str, object]:
    """An advisory about two vulnerabilities, each in one of two products."""
    return {
        "document": {
            "category": "csaf_security_advisory",
            "title": "Two holes",
            "publisher": {"name": "Vendor", "namespace": "https://vendor.example"},
            "tracking": {"id": "VEN-2024.1", "version": version, "current_release_date": date, "status": "final"},
            **document,
        },
        "product_tree": {
            "branches": [
                {
                    "category": "product_name",
                    "name": name,
                    "branches": [
                        {
                            "category": "product_version",
                            "name": "1.0",
                            "product": {"product_id": f"P-{name}", "name": f"{name} 1.0"},
                        }
                    ],
                }
                for name in ("Pump", "Valve")
            ]
        },
        "vulnerabilities": [
            {"cve": "CVE-2024-1", "product_status": {"known_affected": ["P-Pump"]}},
            {"cve": "CVE-2024-2", "product_status": {"fixed": ["P-Valve"]}},
        ],
    }


def read(form: str, *items: object) -> list[Document]:
    reading = Reading(form)
    result = [one for item in items for one in documents(reading.read(item))]
    assert not reading.rejected
    return result


def refusal(form: str, item: object) -> str:
    reading = Reading(form)
    assert reading.read(item, "x.json") == []
    assert reading.seen == {}
    [error] = reading.rejected
    return error.code


def test_an_advisory_pairs_products_with_their_own_vulnerabilities() -> None:
    [document] = read("csaf", csaf())

    assert (document.id, document.type) == ("VEN-2024.1@1", "advisory")
    assert document.scope == (
        {"record": ("VEN-2024.1", "ven-2024_1")},
        {"vulnerability": ("CVE-2024-1",), "package": ("Pump",)},
        {"vulnerability": ("CVE-2024-2",), "package": ("Valve",)},
    )


def test_a_higher_version_is_later_whatever_its_date_and_arrival() -> None:
    second, first = read("csaf", csaf("2", "2024-01-01T00:00:00Z"), csaf("1", "2024-03-01T00:00:00Z"))

    assert first.precedence < second.precedence


@pytest.mark.parametrize(("lower", "higher"), [("9", "10"), ("1.9.0", "1.10.0"), ("1.2.3", "2"), ("1.0.0-2", "1.0.1")])
def test_versions_are_compared_as_numbers(lower: str, higher: str) -> None:
    first, second = read("csaf", csaf(lower), csaf(higher))

    assert first.precedence < second.precedence


def test_a_silent_change_under_one_version_is_later_than_what_it_changed() -> None:
    first, second, *_ = read("csaf", csaf(), csaf(date="2023-12-31T00:00:00Z", title="One hole"))

    assert second.id == "VEN-2024.1@1.seen2"
    assert first.precedence < second.precedence


def test_an_advisory_that_was_superseded_names_its_successor_by_its_file() -> None:
    references = [
        {
            "category": "external",
            "summary": "Superseding Document",
            "url": "https://vendor.example/csaf/2024/ven-2024_2.json",
        },
        {"category": "self", "summary": "this one", "url": "https://vendor.example/csaf/2024/ven-2024_1.json"},
    ]
    [document] = read("csaf", csaf("3", category="csaf_superseded", references=references))

    assert (document.type, document.superseded_by) == ("advisory_superseded", ("ven-2024_2",))


def test_an_advisory_that_was_withdrawn_says_so() -> None:
    [document] = read("csaf", csaf(category="csaf_withdrawn"))

    assert document.type == "advisory_withdrawn"


def test_pairs_beyond_what_a_document_may_join_are_left_out_and_said() -> None:
    many = csaf()
    many["vulnerabilities"] = [
        {"cve": f"CVE-2024-{n}", "product_status": {"known_affected": [f"P-{p}" for p in range(40)]}} for n in range(40)
    ]
    [document] = read("csaf", many)

    assert document.attributes["left_out"] == ["products"]
    assert document.scope[1] == {"vulnerability": ("CVE-2024-0",)}


def test_a_long_name_that_many_products_share_takes_no_room_for_each() -> None:
    many = csaf()
    name, ids = "x" * 200_000, [f"P{number}" for number in range(8000)]
    products = [{"category": "product_version", "name": "1", "product": {"product_id": product}} for product in ids]
    many["product_tree"] = {"branches": [{"category": "product_name", "name": name, "branches": products}]}
    remediations = [{"category": "mitigation", "details": "Unplug it."}] * 1000
    status = {"known_affected": ids}
    many["vulnerabilities"] = [{"ids": [{"text": name}], "product_status": status, "remediations": remediations}]
    tracemalloc.start()
    try:
        [document] = read("csaf", many)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert document.attributes["left_out"] == ["csaf_products", "remediations"]
    assert peak < 64 << 20


def test_another_publisher_cannot_speak_under_a_tracking_id() -> None:
    reading = Reading("csaf")
    reading.read(csaf())
    reading.read(csaf("2", publisher={"name": "Somebody", "namespace": "https://else.example"}))

    assert [error.code for error in reading.rejected] == ["publisher"]


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (csaf("latest"), "field"),
        (csaf("1.2.3.4"), "field"),
        (csaf("1.1000.0"), "range"),
        (csaf(date="soon"), "time"),
        ({"document": {}}, "field"),
    ],
)
def test_an_advisory_without_a_sound_version_and_date_is_refused(broken: object, code: str) -> None:
    assert refusal("csaf", broken) == code


# OpenVEX


def vex(*statements: dict[str, object], **fields: object) -> dict[str, object]:
    return {
        "@context": "https://openvex.dev/ns/v0.2.0",
        "@id": "vex-1",
        "author": "Vendor",
        "statements": list(statements),
        **fields,
    }


def statement(
    status: str = "not_affected", at: str | None = "2024-01-02T00:00:00Z", part: str | None = "pkg:golang/x"
) -> dict[str, object]:
    product = {"@id": "pkg:oci/app", **({"subcomponents": [{"@id": part}]} if part else {})}
    return {
        "vulnerability": {"name": "CVE-2024-1", "aliases": ["GHSA-1"]},
        "products": [product],
        "status": status,
        **({"timestamp": at} if at else {}),
    }


def test_a_statement_is_about_a_part_of_a_product() -> None:
    [document] = read("openvex", vex(statement()))

    assert document.scope == (
        {"vulnerability": ("CVE-2024-1", "GHSA-1"), "package": ("pkg:oci/app",), "component": ("pkg:golang/x",)},
    )
    assert document.attributes["status"] == "not_affected"


def test_a_statement_about_no_part_is_about_the_product() -> None:
    [document] = read("openvex", vex(statement(part=None)))

    assert document.scope[0]["component"] == ("pkg:oci/app",)


def test_a_statement_without_a_time_has_that_of_its_document() -> None:
    early, late = read("openvex", vex(statement(at=None), timestamp="2024-01-01T00:00:00Z"), vex(statement("fixed")))

    assert early.precedence < late.precedence


def test_statements_of_one_time_are_told_as_ties() -> None:
    reading = Reading("openvex")
    first, second = documents(reading.read(vex(statement(), statement("affected"))))

    assert first.precedence == second.precedence
    assert reading.ties == 1


def test_a_new_version_of_a_document_repeats_without_saying_anything_new() -> None:
    reading = Reading("openvex")
    reading.read(vex(statement(), statement(part="pkg:golang/y")))
    again = reading.read(
        vex(statement(), statement(part="pkg:golang/y"), version=2, last_updated="2024-05-01T00:00:00Z")
    )

    assert again == []
    assert reading.known == 2


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (vex(statement(at=None)), "time"),
        (
            vex(
                {"vulnerability": {"name": ""}, "products": ["p"], "status": "fixed"}, timestamp="2024-01-01T00:00:00Z"
            ),
            "field",
        ),
        (vex({"vulnerability": "CVE-1", "status": "fixed"}, timestamp="2024-01-01T00:00:00Z"), "field"),
        ({"@id": "x"}, "field"),
    ],
)
def test_a_statement_that_is_about_nothing_refuses_its_document(broken: object, code: str) -> None:
    assert refusal("openvex", broken) == code


# CVE records


def cve(state: str, updated: str = "2024-01-02T00:00:00.5", **cna: object) -> dict[str, object]:
    return {
        "dataType": "CVE_RECORD",
        "cveMetadata": {"cveId": "CVE-2024-1", "state": state, "dateUpdated": updated, "assignerShortName": "vendor"},
        "containers": {"cna": cna},
    }


def test_a_cve_record_is_disclosed_rejected_and_disclosed_again_in_the_order_in_which_it_came() -> None:
    affected = [{"vendor": "v", "product": "Pump"}, {"vendor": "v", "product": "n/a"}]
    editions = read(
        "cve5",
        cve(
            "PUBLISHED",
            affected=affected,
            descriptions=[{"lang": "de", "value": "Loch"}, {"lang": "en", "value": "A hole. More."}],
        ),
        cve("REJECTED", "2024-02-01T00:00:00Z", rejectedReasons=[{"lang": "en", "value": "No hole."}]),
        cve("PUBLISHED", affected=affected),
    )

    assert [one.type for one in editions] == ["cve_disclosed", "cve_rejected", "cve_disclosed"]
    assert [one.id for one in editions] == ["CVE-2024-1@1", "CVE-2024-1@2", "CVE-2024-1@3"]
    assert editions[0].precedence < editions[1].precedence < editions[2].precedence
    assert editions[0].scope[1] == {"vulnerability": ("CVE-2024-1",), "package": ("Pump",)}
    assert editions[0].title == "CVE-2024-1: A hole"
    assert editions[1].text == "No hole."


def test_more_products_than_a_document_may_have_are_left_out_and_listed() -> None:
    [document] = read("cve5", cve("PUBLISHED", affected=[{"product": f"p{n}"} for n in range(1001)]))

    assert document.attributes["left_out"] == ["products"]
    assert document.scope[1] == {"vulnerability": ("CVE-2024-1",)}


def test_a_rejected_record_names_what_replaces_it() -> None:
    [document] = read("cve5", cve("REJECTED", replacedBy=["CVE-2024-2"]))

    assert document.superseded_by == ("CVE-2024-2",)


@pytest.mark.parametrize(
    "broken", [cve("RESERVED"), {"cveMetadata": {"cveId": "X-1", "state": "PUBLISHED"}, "containers": {"cna": {}}}]
)
def test_a_record_in_no_known_state_is_refused(broken: object) -> None:
    assert refusal("cve5", broken) == "field"


# The catalogue


def catalogue(released: str, **entries: str) -> dict[str, object]:
    listed = [
        {"cveID": f"CVE-2024-{number[1:]}", "product": "Pump", "notes": notes} for number, notes in entries.items()
    ]
    return {"dateReleased": released, "count": len(listed), "vulnerabilities": listed}


def test_a_snapshot_tells_what_came_what_changed_and_what_is_gone() -> None:
    reading = Reading("kev")
    first = reading.read(catalogue("2024-01-01T00:00:00Z", n1001="a", n1002="a", n1003="a"))
    second = reading.read(catalogue("2024-01-02T00:00:00Z", n1001="a", n1002="b", n1004="a"))

    assert [one.id for one in first] == [f"KEV:CVE-2024-{n}@2024-01-01T00:00:00Z" for n in (1001, 1002, 1003)]
    assert [one.id for one in documents(second)] == [f"KEV:CVE-2024-{n}@2024-01-02T00:00:00Z" for n in (1002, 1004)]
    assert [one for one in second if isinstance(one, Retraction)] == [
        Retraction(id="KEV:CVE-2024-1003@2024-01-01T00:00:00Z", revision=1)
    ]


def test_an_entry_that_is_gone_takes_all_its_editions_along_and_may_come_back() -> None:
    reading = Reading("kev")
    for day, notes in enumerate("ab", 1):
        reading.read(catalogue(f"2024-01-0{day}T00:00:00Z", n1001=notes))
    gone = reading.read(catalogue("2024-01-03T00:00:00Z"))
    back = reading.read(catalogue("2024-01-04T00:00:00Z", n1001="b"))

    assert len(gone) == 2
    assert [one.id for one in back] == ["KEV:CVE-2024-1001@2024-01-04T00:00:00Z"]


def test_a_snapshot_older_than_the_last_one_changes_nothing() -> None:
    reading = Reading("kev")
    reading.read(catalogue("2024-01-02T00:00:00Z", n1001="a"))
    before = dict(reading.seen)

    assert reading.read(catalogue("2024-01-01T00:00:00Z")) == []
    assert [error.code for error in reading.rejected] == ["older"]
    assert reading.seen == before


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        ({**catalogue("2024-01-02T00:00:00Z", n1001="a"), "count": 2}, "count"),
        ({"dateReleased": "2024-01-02T00:00:00Z", "vulnerabilities": [{"cveID": "CVE-2024-1001"}] * 2}, "duplicate"),
        ({"dateReleased": "2024-01-02T00:00:00Z", "vulnerabilities": [{"cveID": "CVE-1"}]}, "field"),
        ({"dateReleased": "0001-01-01T00:00:00Z", "vulnerabilities": []}, "time"),
    ],
)
def test_a_catalogue_that_contradicts_itself_is_refused_whole(broken: object, code: str) -> None:
    assert refusal("kev", broken) == code


# What is material


def _entry(**fields: object) -> dict[str, object]:
    entry = {"cveID": "CVE-2024-1001", "product": "Pump", "requiredAction": "Update.", **fields}
    return {"dateReleased": "2024-01-01T00:00:00Z", "vulnerabilities": [entry]}


def _with_fix(details: str, category: str = "vendor_fix") -> dict[str, object]:
    advisory = csaf()
    advisory["vulnerabilities"] = [{"cve": "CVE-2024-1", "remediations": [{"category": category, "details": details}]}]
    return advisory


MATERIAL = [
    ("csaf", csaf(), csaf(category="csaf_withdrawn")),
    ("csaf", csaf(), csaf() | {"vulnerabilities": [{"cve": "CVE-2024-1"}]}),
    ("csaf", _with_fix("Update to 2.0."), _with_fix("Update to 2.1.")),
    ("cve5", cve("PUBLISHED", affected=[]), cve("REJECTED")),
    ("cve5", cve("PUBLISHED", affected=[{"product": "p"}]), cve("PUBLISHED", affected=[{"product": "q"}])),
    (
        "cve5",
        cve("PUBLISHED", affected=[{"product": "p", "versions": [{"version": "1.0", "status": "affected"}]}]),
        cve("PUBLISHED", affected=[{"product": "p", "versions": [{"version": "1.1", "status": "affected"}]}]),
    ),
    ("kev", _entry(), _entry(dueDate="2024-02-01")),
    ("kev", _entry(), _entry(knownRansomwareCampaignUse="Known")),
]
EDITORIAL = [
    ("csaf", csaf(), csaf("2", "2024-01-03T00:00:00Z", title="Two holes, in other words")),
    ("csaf", csaf(), csaf(notes=[{"category": "summary", "text": "Two holes."}])),
    ("csaf", _with_fix("Unplug it.", "mitigation"), _with_fix("Pull the plug.", "mitigation")),
    ("cve5", cve("PUBLISHED"), cve("PUBLISHED", descriptions=[{"lang": "en", "value": "A hole."}])),
    ("cve5", cve("PUBLISHED"), cve("PUBLISHED", metrics=[{"cvssV3_1": {"baseScore": 9.8}}])),
    ("kev", _entry(), _entry(notes="https://example.org", vulnerabilityName="Pump overflow")),
]


@pytest.mark.parametrize(("form", "earlier", "later"), MATERIAL)
def test_a_change_that_matters_changes_the_attribute(form: str, earlier: object, later: object) -> None:
    assert read(form, earlier)[0].attributes["material"] != read(form, later)[0].attributes["material"]


@pytest.mark.parametrize(("form", "earlier", "later"), EDITORIAL)
def test_a_change_of_words_or_scores_does_not(form: str, earlier: object, later: object) -> None:
    assert read(form, earlier)[0].attributes["material"] == read(form, later)[0].attributes["material"]
