"""Names that people have lead to documents: what a feed calls a vulnerability, a package with a version, a purl."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

import stream_car
from stream_car import Engine
from stream_car.queries.names import EDITIONS_MAX
from tests.support.feeds import Reading


def advisory(name: str, modified: str, *aliases: str, package: str = "openssl", **fields: object) -> bytes:
    return msgspec.json.encode(
        {
            "id": name,
            "modified": modified,
            "aliases": aliases,
            "summary": f"{name}, {modified}",
            "affected": [{"package": {"ecosystem": "crates.io", "name": package}}],
            **fields,
        }
    )


FEED = (
    advisory("RUSTSEC-2023-1", "2023-01-01T00:00:00Z", "CVE-2023-53159"),
    advisory("RUSTSEC-2023-1", "2023-02-01T00:00:00Z", "CVE-2023-53159", "GHSA-1"),
    advisory("PYSEC-2022-1", "2023-01-01T00:00:00Z", "CVE-2022-1", package="aiohttp", withdrawn="2022-08-14T00:00:00Z"),
    advisory("PYSEC-2023-7", "2023-03-01T00:00:00Z", "CVE-2023-53159", package="pyopenssl"),
)
RELEASE: Mapping[str, object] = {
    "id": "hyper-1.0", "type": "release_note", "time": "2024-01-01", "scope": {"cve": "CVE-2024-9", "package": "Hyper"},
}  # fmt: skip


@pytest.fixture
def car(tmp_path: Path) -> Iterator[Engine]:
    reading = Reading("osv")
    with stream_car.open(tmp_path, rules="security") as engine:
        for record in FEED:
            assert engine.publish(reading.read(record)).outcomes.keys() <= {"accepted"}
        engine.publish(RELEASE)
        yield engine


RUST, PYTHON = "RUSTSEC-2023-1@2023-02-01T00:00:00Z", "PYSEC-2023-7@2023-03-01T00:00:00Z"
WITHDRAWN = "PYSEC-2022-1@2023-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("name", "documents"),
    [
        ("CVE-2023-53159", [PYTHON, RUST]),
        ("cve-2023-53159", [PYTHON, RUST]),
        ("GHSA-1", [RUST]),
        ("openssl@0.10.40", [RUST]),
        ("pkg:cargo/OpenSSL@0.10.40", [RUST]),
        ("CVE-2022-1", [WITHDRAWN]),  # though no scope of an advisory holds its withdrawal
        ("pkg:pypi/aiohttp", [WITHDRAWN]),
        ("hyper", ["hyper-1.0"]),
        ("CVE-2024-9", ["hyper-1.0"]),
    ],
)
def test_a_name_finds_the_latest_editions_of_what_has_it(car: Engine, name: str, documents: list[str]) -> None:
    [resolution] = car.resolve([name])
    [lookup] = car.get([name])

    status = "superseded" if documents == [WITHDRAWN] else "in_force"
    assert (resolution.via, resolution.status) == ("alias", status)
    assert sorted(group.anchor.id for group in resolution.groups) == sorted(documents)
    assert (lookup.via, [published.document.id for published in lookup.documents]) == ("alias", documents)
    assert car.explain(name).status == status
    assert car.check([name]).unknown == ()


@pytest.mark.parametrize(
    ("as_of", "documents"),
    [
        ("2023-01-15", ["RUSTSEC-2023-1@2023-01-01T00:00:00Z"]),
        ("2023-02-15", [RUST]),
        ("2023-03-15", [PYTHON, RUST]),
    ],
)
def test_a_name_as_of_a_time_finds_the_editions_that_were_the_latest_then(
    car: Engine, as_of: str, documents: list[str]
) -> None:
    name = "CVE-2023-53159"
    [resolution] = car.resolve([name], as_of=as_of)
    explanation, audit = car.explain(name, as_of=as_of), car.check([name], as_of=as_of)

    assert resolution.status == "in_force"
    assert sorted(group.anchor.id for group in resolution.groups) == documents
    assert explanation.document is not None and explanation.document.id == documents[0]
    assert audit.holds


def test_a_name_before_its_first_edition_waits(car: Engine) -> None:
    assert [resolution.status for resolution in car.resolve(["GHSA-1"], as_of="2022-06-01")] == ["pending"]


def test_a_record_of_very_many_editions_is_found_as_of_the_first(car: Engine) -> None:
    edition = {"type": "advisory", "scope": {"record": "GO-1", "vulnerability": "CVE-2020-7", "package": "tea"}}
    days = [f"2020-{1 + n // 28:02}-{1 + n % 28:02}" for n in range(EDITIONS_MAX + 2)]
    car.publish([dict(edition, id=f"GO-1@{day}", time=day) for day in days])

    resolutions = car.resolve(["GO-1", "CVE-2020-7"], as_of=days[0])
    assert [[group.anchor.id for group in each.groups] for each in resolutions] == [[f"GO-1@{days[0]}"]] * 2


def test_of_several_records_the_one_that_is_open_is_explained_and_the_others_are_named(car: Engine) -> None:
    reading = Reading("osv")
    withdrawn, days = "2023-05-01T00:00:00Z", ("2023-04-01T00:00:00Z", "2023-06-01T00:00:00Z")
    car.publish(reading.read(advisory("GHSA-7", withdrawn, "CVE-2023-7", package="pot", withdrawn=withdrawn)))
    car.publish(reading.read(advisory("PYSEC-7", days[0], "CVE-2023-7", package="cup")))
    fixed = {"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "2.0"}]}]}
    affected = [{"package": {"ecosystem": "crates.io", "name": "tea"}, **fixed}]
    car.publish(reading.read(advisory("RUSTSEC-7", days[1], "CVE-2023-7", affected=affected)))
    explanation = car.explain("CVE-2023-7")

    assert (explanation.status, explanation.state) == ("in_force", "open")
    assert explanation.document is not None and explanation.document.id == f"PYSEC-7@{days[0]}"
    assert explanation.others == ("GHSA-7", "RUSTSEC-7")
    assert car.explain("PYSEC-7").others == ()


@pytest.mark.parametrize("name", ["GHSA-77", "ghsa-77", "GHSA-77#2", "ghsa-77#2"])
def test_a_withdrawn_record_has_ended_by_each_of_its_names_although_another_record_has_them(
    car: Engine, name: str
) -> None:
    reading = Reading("osv")
    car.publish(reading.read(advisory("PYSEC-77", "2024-01-01T00:00:00Z", "GHSA-77", "CVE-2024-77")))
    withdrawn = {"withdrawn": "2024-02-01T00:00:00Z"}
    car.publish(reading.read(advisory("GHSA-77", "2024-02-01T00:00:00Z", "CVE-2024-77", **withdrawn)))
    [resolution] = car.resolve([name])
    audit = car.check([name])

    assert (resolution.via, resolution.status, resolution.state) == ("record", "superseded", "withdrawn")
    assert (audit.holds, [each.name for each in audit.ended]) == (False, [name])
    assert car.check(["CVE-2024-77"]).holds  # a name of both records, one of which is in force


def test_an_id_comes_before_an_alias(car: Engine) -> None:
    car.publish(dict(RELEASE, id="CVE-2022-1", scope={"cve": "CVE-2030-1", "package": "other"}))
    [resolution] = car.resolve(["CVE-2022-1"])

    assert (resolution.via, resolution.groups[0].anchor.id) == ("id", "CVE-2022-1")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("CVE-2023-5315", ("CVE-2023-53159",)),
        ("cve-2023-53195", ("CVE-2023-53159",)),
        ("RUSTSEC-2023-11", ("RUSTSEC-2023-1",)),
        ("opensll@3.0", ("openssl",)),
        ("pkg:cargo/opnssl@3.0", ("openssl",)),
        ("CVE-2024-0", ("CVE-2024-9",)),
        ("nothing-of-the-kind", ()),
        ("x", ()),
    ],
)
def test_a_name_that_nothing_has_leads_to_the_nearest_known_ones(
    car: Engine, typed: str, meant: tuple[str, ...]
) -> None:
    [resolution], [lookup] = car.resolve([typed]), car.get([typed])

    assert (resolution.status, resolution.similar) == ("unknown", meant)
    assert (lookup.similar, car.explain(typed).similar) == (meant, meant)
    assert car.check([typed]).similar == ({typed: meant} if meant else {})
    assert car.resolve(["CVE-2023-53159"])[0].similar == ()


def test_what_has_no_document_any_more_is_unknown_and_not_suggested(car: Engine) -> None:
    [before] = car.resolve(["hypr"])
    car.retract("hyper-1.0")
    [after] = car.resolve(["hypr"])

    assert [resolution.status for resolution in car.resolve(["hyper", "CVE-2024-9", "curl"])] == ["unknown"] * 3
    assert (before.similar, after.similar) == (("hyper",), ())


def test_a_retracted_record_that_is_its_own_alias_is_unknown(car: Engine) -> None:
    own = {"record": "CVE-2024-1", "vulnerability": "CVE-2024-1"}
    car.publish({"id": "flaw", "type": "advisory", "time": "2024-01-01", "scope": own})
    assert car.check(["cve-2024-1"]).holds
    car.retract("flaw")
    audit = car.check(["cve-2024-1"])

    assert (audit.holds, audit.unknown) == (False, ("cve-2024-1",))
    assert car.explain("cve-2024-1").status == "unknown"
    assert car.resolve(["cve-2024-1"])[0].status == "unknown"


def test_a_name_of_very_many_says_that_there_are_more(car: Engine) -> None:
    car.publish([dict(RELEASE, id=f"hyper-{n}") for n in range(EDITIONS_MAX)])
    [resolution] = car.resolve(["hyper@1.0"])

    assert resolution.reasons == ("limit",)
    assert len(resolution.groups) == EDITIONS_MAX


def test_names_are_found_after_the_directory_was_opened_again(car: Engine, tmp_path: Path) -> None:
    car.close()

    with stream_car.open(tmp_path) as again:
        assert again.resolve(["GHSA-1"])[0].status == "in_force"
