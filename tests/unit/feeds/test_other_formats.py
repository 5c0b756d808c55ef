"""openFDA, standards and facts, on samples of a few lines."""

import pytest

import stream_car
from stream_car.codec.times import EARLIEST
from stream_car.core.documents import Document
from tests.support.feeds import Reading, documents

CODES = {
    "brand_name": ["PRESSALIN"],
    "generic_name": ["PRESSALOL"],
    "product_ndc": ["12345-678"],
    "package_ndc": ["12345-678-90"],
    "application_number": ["NDA012345"],
    "manufacturer_name": ["Example Pharma"],
}


def label(version: str = "1", **fields: object) -> dict[str, object]:
    return {
        "set_id": "0000-label",
        "id": f"0000-{version}",
        "version": version,
        "effective_time": "20240131",
        "openfda": CODES,
        "indications_and_usage": ["For high blood pressure."],
        **fields,
    }


def recall(**fields: object) -> dict[str, object]:
    return {
        "recall_number": "D-0001-2024",
        "status": "Ongoing",
        "classification": "Class II",
        "product_description": "Pressalol tablets, 10 mg, 30 count, NDC 12345-678-30",
        "reason_for_recall": "Failed dissolution",
        "recall_initiation_date": "20240301",
        "report_date": "20240320",
        "openfda": CODES,
        **fields,
    }


def read(form: str, *items: object, name: str = "-") -> list[Document]:
    reading = Reading(form)
    result = [one for item in items for one in documents(reading.read(item, name))]
    assert not reading.rejected
    return result


def refusals(form: str, item: object, name: str = "-") -> list[str]:
    reading = Reading(form)
    reading.read(item, name)
    return [error.code for error in reading.rejected]


def test_a_label_is_found_by_its_codes_its_application_and_its_names() -> None:
    [document] = read("openfda", label())

    assert (document.id, document.type) == ("0000-label@1", "drug_label")
    assert document.scope[1] == {
        "drug": ("PRESSALIN", "PRESSALOL"),
        "ndc": ("12345-678", "12345-678-90"),
        "application": ("NDA012345",),
    }


def test_labels_count_by_version_even_where_their_date_stays() -> None:
    ninth, tenth = read("openfda", label("9"), label("10"))

    assert ninth.precedence < tenth.precedence


@pytest.mark.parametrize(
    ("fields", "scope"),
    [
        ({}, {"ndc": ("12345-678-30",)}),
        ({"product_description": "A; NDC: 12345-678-30 and 12345-678-60"}, {"ndc": ("12345-678-30", "12345-678-60")}),
        ({"product_description": "Pressalol tablets"}, {"ndc": ("12345-678-90",)}),
        ({"product_description": "X", "openfda": {"application_number": ["NDA1"]}}, {"application": ("NDA1",)}),
        ({"product_description": "Pressalol tablets, 10 mg", "openfda": {}}, {"drug": ("Pressalol tablets",)}),
    ],
)
def test_a_recall_speaks_about_no_more_than_it_must(fields: dict[str, object], scope: dict[str, object]) -> None:
    [document] = read("openfda", recall(**fields))

    assert document.scope[1] == scope


def test_the_end_of_a_recall_is_a_later_edition_of_it() -> None:
    begun, ended = read("openfda", recall(), recall(status="Terminated", termination_date="20250101"))

    assert (begun.id, ended.id) == ("D-0001-2024@2024-03-20", "D-0001-2024@2025-01-01")
    assert begun.time == ended.time
    assert begun.precedence < ended.precedence


def test_the_answer_of_the_api_is_a_list_of_results() -> None:
    assert len(read("openfda", {"meta": {}, "results": [label(), recall()]}, name="answer.json")) == 2


def test_an_edition_of_a_label_or_a_recall_that_changes_only_its_wording_is_revised() -> None:
    warned = label("3", boxed_warning=["Do not use with alcohol."])
    reworded = recall(report_date="20240501", reason_for_recall="It does not dissolve")
    ended = recall(status="Terminated", termination_date="20250101")
    editions = read("openfda", label("1"), label("2", references=["A study"]), warned, recall(), reworded, ended)

    with stream_car.open(rules="medical") as car:
        for edition in editions:
            car.publish(edition, on_rejected="raise")
        outcomes = {
            member.id: member.outcome
            for record in ("0000-label", "D-0001-2024")
            for scope in car.history({"record": record})
            for member in scope.members
        }

    assert [outcomes[edition.id] for edition in editions] == ["revised", "updated", "", "revised", "updated", ""]


@pytest.mark.parametrize("broken", [{}, label(version="two"), label(effective_time="2024"), recall(report_date="?")])
def test_a_record_without_what_decides_is_refused(broken: object) -> None:
    assert refusals("openfda", broken)[0] in ("field", "time")


# Standards

INDEX = """<?xml version="1.0" encoding="UTF-8"?>
<rfc-index xmlns="https://www.rfc-editor.org/rfc-index">
  <bcp-entry><doc-id>BCP0001</doc-id></bcp-entry>
  <rfc-entry>
    <doc-id>RFC1001</doc-id><title>The First Way</title>
    <author><name>A. Author</name></author>
    <date><month>March</month><year>1990</year></date>
    <abstract><p>How it was   done.</p></abstract>
    <obsoleted-by><doc-id>RFC1002</doc-id></obsoleted-by>
    <current-status>PROPOSED STANDARD</current-status>
  </rfc-entry>
  <rfc-entry>
    <doc-id>RFC1002</doc-id><title>The Second Way</title>
    <date><day>17</day><month>April</month><year>1991</year></date>
    <obsoletes><doc-id>RFC1001</doc-id></obsoletes>
    <updates><doc-id>RFC0900</doc-id></updates>
  </rfc-entry>
</rfc-index>
"""


def test_the_index_links_standards_from_both_sides() -> None:
    first, second = read("standards", INDEX, name="rfc-index.xml")

    assert (first.id, first.superseded_by, first.text) == ("RFC1001", ("RFC1002",), "The First Way\n\nHow it was done.")
    assert (second.supersedes, second.amends) == (("RFC1001",), ("RFC0900",))
    assert first.attributes["authors"] == ["A. Author"]


def test_a_changed_entry_is_a_correction_of_the_same_document() -> None:
    reading = Reading("standards")
    reading.read(INDEX, "rfc-index.xml")
    [document] = documents(reading.read(INDEX.replace("PROPOSED STANDARD", "HISTORIC"), "rfc-index.xml"))

    assert (document.id, document.revision) == ("RFC1001", 2)


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (INDEX[:-20], "syntax"),
        (INDEX.replace("<rfc-index", '<!DOCTYPE x [<!ENTITY a "aaaa">]><rfc-index'), "entity"),
        (INDEX.replace("<title>", "<b>" * 30 + "<title>"), "depth"),
        ("<rfc-index/>", "field"),
    ],
)
def test_a_broken_index_says_nothing(broken: str, code: str) -> None:
    reading = Reading("standards")

    assert reading.read(broken, "rfc-index.xml") == []
    assert [error.code for error in reading.rejected] == [code]


PEP = """PEP: 17
Title: A Way to
  Do Things
Status: Rejected
Created: 05-Jun-2001
Superseded-By: 18, 19

Abstract
"""


def test_the_headers_of_a_pep_name_its_successors() -> None:
    [document] = read("standards", PEP, name="pep-0017.rst")

    assert (document.id, document.title) == ("PEP-17", "PEP 17: A Way to Do Things")
    assert document.superseded_by == ("PEP-18", "PEP-19")
    assert document.attributes["status"] == "Rejected"


def test_peps_are_read_from_tables_too() -> None:
    row = {"number": 18, "title": "Another", "created": "06-Jun-2001", "superseded_by": None, "replaces": "17"}

    assert read("standards", row) == read("standards", {"18": row}, name="peps.json")


@pytest.mark.parametrize("broken", ["Title: none\n\n", PEP.replace("05-Jun-2001", "once"), PEP.replace("17", "x")])
def test_a_text_that_is_no_pep_is_refused(broken: str) -> None:
    assert len(refusals("standards", broken, "pep.rst")) == 1


# Facts

TABLE = """subject,relation,object,time
Ada,lives in,Paris,2020-01-01
Ada,lives in,"Rome, Italy",2021-01-01T00:00:00Z
Ada,likes,tea,
Ada,likes,coffee,
"""


def test_facts_count_by_their_time_and_without_one_in_the_order_of_their_lines() -> None:
    paris, rome, tea, coffee = read("facts", TABLE, name="facts.csv")

    assert paris.precedence < rome.precedence
    assert rome.attributes["value"] == "Rome, Italy"
    assert (tea.time, tea.order, coffee.order) == (EARLIEST, 1, 2)


def test_a_table_and_json_say_the_same() -> None:
    row = {"subject": "Ada", "predicate": "lives in", "value": "Paris", "date": "2020-01-01"}

    assert read("facts", row) == read("facts", TABLE, name="facts.csv")[:1]
    assert read("facts", [row]) == read("facts", row)


def test_the_same_fact_again_is_known() -> None:
    reading = Reading("facts")
    reading.read(TABLE)

    assert documents(reading.read(TABLE.splitlines(keepends=True)[0] + "Ada,likes,coffee,\n")) == []


def test_two_values_at_one_time_are_told_as_a_tie() -> None:
    reading = Reading("facts")
    first, second = documents(reading.read("subject,relation,object,time\na,b,c,2020-01-01\na,b,d,2020-01-01\n"))

    assert first.precedence == second.precedence
    assert reading.ties == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("a,b,c", "field"),
        ('a,b,"c,2020-01-01', "syntax"),
        ("a,,c,", "field"),
        ("a,b,c,once", "time"),
        ("a,b,,", "field"),
    ],
)
def test_a_broken_row_costs_that_row(line: str, code: str) -> None:
    reading = Reading("facts")

    assert len(reading.read(f"subject,relation,object,time\n{line}\nx,y,z,\n")) == 1
    assert [error.code for error in reading.rejected] == [code]


def test_a_last_row_that_may_be_cut_off_is_refused() -> None:
    assert refusals("facts", TABLE[:-3], "facts.csv") == ["truncated"]


def test_a_table_without_the_columns_is_refused_once() -> None:
    assert refusals("facts", "a,b,c\n1,2,3\n4,5,6\n", "facts.csv") == ["field"]
