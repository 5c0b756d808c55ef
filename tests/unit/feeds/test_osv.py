"""OSV: fixes, withdrawals and editions, told apart by what the record says."""

from random import Random

import pytest

from stream_car.core.documents import Document
from tests.support.feeds import Reading, documents


def record(
    modified: str | None = "2024-01-02T00:00:00Z", *, fixed: dict[str, str | None] | None = None, **fields: object
) -> dict[str, object]:
    """A record about packages, each with the version that fixes it, or none."""
    packages = fixed if fixed is not None else {"lodash": None}
    return {
        "id": "GHSA-1",
        "aliases": ["CVE-2024-1"],
        "modified": modified,
        "summary": "Prototype pollution",
        "affected": [
            {
                "package": {"ecosystem": "npm", "name": name},
                "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, *([{"fixed": by}] if by else [])]}],
            }
            for name, by in packages.items()
        ],
        **fields,
    }


def read(*records: object) -> list[Document]:
    reading = Reading("osv")
    result = [one for item in records for one in documents(reading.read(item))]
    assert not reading.rejected
    return result


def test_a_record_without_a_fix_is_an_advisory_about_its_packages_and_all_its_names() -> None:
    [document] = read(record())

    assert (document.id, document.type) == ("GHSA-1@2024-01-02T00:00:00Z", "advisory")
    assert document.scope == (
        {"record": ("GHSA-1",)},
        {"vulnerability": ("GHSA-1", "CVE-2024-1"), "package": ("lodash",)},
    )


def test_a_fix_of_one_package_says_nothing_about_another() -> None:
    open_part, fixed_part = read(record(fixed={"lodash": "4.17.21", "lodash-es": None}))

    assert (open_part.type, open_part.scope[1]["package"]) == ("advisory", ("lodash-es",))
    assert (fixed_part.type, fixed_part.scope[1]["package"]) == ("patch_released", ("lodash",))
    assert fixed_part.id == f"{open_part.id}/fixed"
    assert fixed_part.precedence == open_part.precedence
    assert fixed_part.attributes["fixed"] == {"lodash": ["4.17.21"]}


COMMIT = "c45d7c49ad75133f0f8f6b4f9f1f2d4a6b1b2c3d"
FIXED_BY_COMMIT = {"type": "GIT", "repo": "https://example.org/x", "events": [{"introduced": "0"}, {"fixed": COMMIT}]}
FIXED_IN_VERSION = {"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": "4.17.21"}]}


@pytest.mark.parametrize(
    ("ranges", "title", "state_text", "fixed"),
    [
        ([FIXED_BY_COMMIT, FIXED_IN_VERSION], "(fixed in 4.17.21)", "fixed in 4.17.21", {"lodash": ["4.17.21"]}),
        ([FIXED_BY_COMMIT], "(fixed in commit c45d7c49ad75)", "fixed in commit c45d7c49ad75", {}),
    ],
)
def test_a_commit_that_fixes_a_package_is_not_a_version(
    ranges: list[object], title: str, state_text: str, fixed: dict[str, list[str]]
) -> None:
    [document] = read(record(affected=[{"package": {"ecosystem": "npm", "name": "lodash"}, "ranges": ranges}]))

    assert (document.type, document.title) == ("patch_released", f"Prototype pollution {title}")
    assert (document.attributes["state_text"], document.attributes["fixed"]) == (state_text, fixed)
    assert COMMIT not in document.text


def test_a_withdrawal_is_a_document_of_its_own() -> None:
    [document] = read(record(fixed={"lodash": "4.17.21"}, withdrawn="2024-02-01T00:00:00Z"))

    assert document.type == "advisory_withdrawn"


def test_a_placeholder_is_no_date() -> None:
    first, second = read(
        record("0001-01-01T00:00:00Z", published="2023-05-05T00:00:00Z"),
        record("0001-01-01T00:00:00Z", published="2023-05-05T00:00:00Z", fixed={"lodash": "4.17.21"}),
    )

    assert (first.id, second.id) == ("GHSA-1@1", "GHSA-1@2")
    assert first.precedence < second.precedence


def test_a_silent_change_under_one_date_is_an_edition_all_the_same() -> None:
    first, second = read(record(), record(summary="Prototype pollution in lodash"))

    assert second.id == "GHSA-1@2024-01-02T00:00:00Z.2"
    assert first.precedence < second.precedence


def test_the_same_said_again_is_known_whatever_the_order_of_its_fields() -> None:
    reading = Reading("osv")
    reading.read(record())

    assert reading.read(dict(reversed(record().items()))) == []
    assert reading.known == 1


def test_the_order_of_arrival_does_not_matter_where_the_dates_tell_it() -> None:
    lines = [record(f"2024-01-{day:02}T00:00:00Z", details=str(day)) for day in range(1, 20)]
    shuffled = list(lines)
    Random(1).shuffle(shuffled)

    assert {one.id: one for one in read(*lines)} == {one.id: one for one in read(*shuffled)}


def test_a_history_line_is_dated_by_its_commit() -> None:
    [document] = read({"commit_time": "2024-03-01T12:00:00+02:00", "record": record("0001-01-01T00:00:00Z")})

    assert document.id == "GHSA-1@2024-03-01T10:00:00Z"


def test_packages_of_a_distribution_carry_its_release() -> None:
    debian = {"package": {"ecosystem": "Debian:12", "name": "curl"}, "ranges": []}
    [document] = read(record(affected=[debian]))

    assert document.scope[1]["package"] == ("Debian:12/curl",)


def test_one_name_in_two_ecosystems_is_two_packages() -> None:
    fixed = {"ranges": [{"events": [{"fixed": "2.0"}]}], "package": {"ecosystem": "PyPI", "name": "protobuf"}}
    unfixed = {"package": {"ecosystem": "npm", "name": "protobuf"}}
    open_part, fixed_part = read(record(affected=[fixed, unfixed]))

    assert open_part.scope[1]["package"] == ("npm/protobuf",)
    assert fixed_part.scope[1]["package"] == ("PyPI/protobuf",)


def test_what_is_not_read_is_kept() -> None:
    [document] = read(record(credits=[{"name": "somebody"}]))

    assert document.attributes["credits"] == [{"name": "somebody"}]


def test_attributes_that_are_too_large_are_named_and_left_out() -> None:
    [document] = read(record(database_specific={"x": "y" * 300_000}, credits=[{"name": "somebody"}]))

    assert document.attributes["left_out"] == ["database_specific"]
    assert "credits" in document.attributes


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        (b'{"id": "GHSA-1", "modified": "2024-01-0', "syntax"),
        (b'{"modified": "2024-01-02T00:00:00Z"}', "field"),
        (b'{"id": 5}', "field"),
        (b'{"id": " "}', "field"),
        (b'{"id": "GHSA-x"}', "field"),
        (b'{"id": "GHSA-x", "modified": "", "affected": []}', "field"),
        (b'{"id": "GHSA-1", "id": "GHSA-2"}', "duplicate_key"),
        (b'{"id": "GHSA-1", "modified": "yesterday"}', "time"),
        (b'{"id": "GHSA-1", "affected": "all"}', "field"),
        (b'{"record": {"id": "GHSA-1"}}', "time"),
        (b'{"id": "GHSA-\xff"}', "encoding"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_code(broken: bytes, code: str) -> None:
    reading = Reading("osv")

    assert reading.read(broken, "advisory.json") == []
    assert [error.code for error in reading.rejected] == [code]
    assert reading.seen == {}


def test_a_record_without_a_date_is_rejected_with_what_is_missing() -> None:
    reading = Reading("osv")
    reading.read(b'{"id": "GHSA-x"}', "advisory.json")

    assert [error.reason for error in reading.rejected] == [
        "The record has no date. OSV requires `modified`, such as 2024-01-31T00:00:00Z."
    ]


def test_a_record_about_no_package_says_so() -> None:
    [document] = read({"id": "GHSA-x", "modified": "2024-01-02T00:00:00Z"})

    assert document.text == "GHSA-x. The record names no package."


def test_a_broken_line_costs_that_line() -> None:
    reading = Reading("osv")
    statements = reading.read(
        b'{"id": "A", "modified": "2024-01-02T00:00:00Z"}\n{"id": "B", \n'
        b'{"id": "C", "published": "2023-01-01T00:00:00Z"}\n',
        "history.jsonl",
    )

    assert [one.id for one in statements] == ["A@2024-01-02T00:00:00Z", "C@1"]
    assert len(reading.rejected) == 1


def test_the_answer_of_the_query_service_is_a_list_of_records() -> None:
    reading = Reading("osv")

    assert len(reading.read({"vulns": [record(), record(id="GHSA-2")]}, "answer.json")) == 2


@pytest.mark.parametrize(
    "changed",
    [
        record(fixed={"lodash": "4.17.21"}),
        record(fixed={"lodash": None, "lodash-es": None}),
        record(aliases=["CVE-2024-1", "CVE-2024-2"]),
        record(withdrawn="2024-02-01T00:00:00Z"),
        record(affected=[{"package": {"ecosystem": "npm", "name": "lodash"}, "versions": ["1.0.0"]}]),
    ],
)
def test_what_decides_who_is_affected_is_material(changed: dict[str, object]) -> None:
    assert read(changed)[0].attributes["material"] != read(record())[0].attributes["material"]


@pytest.mark.parametrize(
    "changed",
    [
        record("2024-03-01T00:00:00Z"),
        record(summary="Prototype pollution in lodash"),
        record(details="A longer text."),
        record(references=[{"type": "WEB", "url": "https://example.org"}]),
        record(severity=[{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N"}]),
        record(database_specific={"cwe_ids": ["CWE-1321"]}),
    ],
)
def test_texts_scores_and_references_are_not_material(changed: dict[str, object]) -> None:
    assert read(changed)[0].attributes["material"] == read(record())[0].attributes["material"]


def test_a_new_version_in_a_range_is_not_material_but_in_a_bare_list_it_is() -> None:
    def affected(kind: str, *versions: str) -> object:
        package = {"ecosystem": "PyPI", "name": "jinja2"}
        ranges = [{"type": kind, "events": [{"introduced": "0"}]}]
        return [{"package": package, "ranges": ranges, "versions": versions}]

    def material(kind: str, *versions: str) -> object:
        return read(record(affected=affected(kind, *versions)))[0].attributes["material"]

    assert material("ECOSYSTEM", "2.10") == material("ECOSYSTEM", "2.10", "2.10.1")
    assert material("GIT", "2.10") != material("GIT", "2.10", "2.10.1")


def test_a_withdrawal_says_since_when_and_a_fix_says_in_which_versions() -> None:
    [withdrawn] = read(record(withdrawn="2023-08-14T10:00:00+02:00"))
    [fixed] = read(record(fixed={"lodash": "4.17.21"}))
    [many] = read(record(fixed={f"package-{number}": f"{number}.0" for number in range(5)}))

    assert withdrawn.attributes["state_since"] == "2023-08-14T08:00:00Z"
    assert fixed.attributes["state_text"] == "fixed in 4.17.21"
    text = "fixed in package-0 0.0; package-1 1.0; package-2 2.0 and 2 more packages"
    assert many.attributes["state_text"] == text
