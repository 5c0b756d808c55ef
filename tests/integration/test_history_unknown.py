"""A feed that was read as a snapshot knows nothing of the past, and answers as of the past say so."""

import json
from pathlib import Path

import pytest

import stream_car
from stream_car import Engine
from tests.support.feeds import published

SCOPE = {"vulnerability": "CVE-2020-1", "package": "jinja2"}
BEFORE, BETWEEN, AFTER = "2019-01-01", "2021-06-01", "2024-06-01"


def record(name: str, modified: str, **more: object) -> dict[str, object]:
    return {
        "id": name,
        "aliases": ["CVE-2020-1"],
        "modified": f"{modified}T00:00:00Z",
        "summary": "Sandbox escape in jinja2",
        "affected": [{"package": {"ecosystem": "PyPI", "name": "jinja2"}}],
        **more,
    }


def read_feed(car: Engine, folder: Path, *records: dict[str, object]) -> None:
    folder.mkdir(exist_ok=True)
    for number, fields in enumerate(records):
        (folder / f"{number}.json").write_text(json.dumps(fields), encoding="utf-8")
    published(car, "osv", [folder])


@pytest.fixture
def car(tmp_path: Path) -> Engine:
    engine = stream_car.open(tmp_path / "data", rules="security")
    read_feed(engine, tmp_path / "feed", record("GHSA-1", "2024-05-01", published="2020-03-01T00:00:00Z"))
    return engine


def reasons(car: Engine, as_of: str | None) -> list[tuple[str, ...]]:
    """Return the reasons of every kind of answer about the record."""
    with car:
        [resolution] = car.resolve(["GHSA-1"], as_of=as_of)
        [by_alias] = car.resolve(["CVE-2020-1"], as_of=as_of)
        frontiers = car.frontier(SCOPE, as_of=as_of)
        answer = car.query("sandbox escape in jinja2", as_of=as_of)
        audit = car.check(["GHSA-1"], as_of=as_of)
        assert audit.certificate is not None
        return [
            resolution.reasons,
            by_alias.reasons,
            car.explain("GHSA-1", as_of=as_of).reasons,
            frontiers[0].reasons,
            answer.certificate.reasons,
            audit.certificate.reasons,
            car.affected(["pkg:pypi/jinja2@2.10"], as_of=as_of)[0].reasons,
        ]


def test_an_answer_between_the_opening_of_a_record_and_its_first_edition_is_incomplete(car: Engine) -> None:
    assert all("history_unknown" in given for given in reasons(car, BETWEEN))


@pytest.mark.parametrize("as_of", [BEFORE, AFTER, None])
def test_an_answer_before_the_record_or_after_its_first_edition_is_not(car: Engine, as_of: str | None) -> None:
    assert not any("history_unknown" in given for given in reasons(car, as_of))


def test_a_document_of_another_publisher_is_in_force_then_but_the_answer_may_lack_the_record(
    car: Engine, tmp_path: Path
) -> None:
    other = record("PYSEC-1", "2020-04-01", published="2020-04-01T00:00:00Z")
    with car:
        read_feed(car, tmp_path / "other", other)
        [resolution] = car.resolve(["PYSEC-1"], as_of=BETWEEN)
        answer = car.query("sandbox escape in jinja2", as_of=BETWEEN)
        again = car.query("sandbox escape in jinja2", as_of=BETWEEN)

    assert (resolution.status, resolution.reasons) == ("in_force", ("history_unknown",))
    assert [document.id for document in answer.results] == ["PYSEC-1@2020-04-01T00:00:00Z"]
    assert (answer.certificate.complete, answer.certificate.reasons) == (False, ("history_unknown",))
    assert again == answer


def test_the_history_is_known_from_the_first_edition_on_and_for_names_alone_that_need_it(
    car: Engine, tmp_path: Path
) -> None:
    first = record("GHSA-1", "2020-03-02", published="2020-03-01T00:00:00Z", summary="At first")
    apart = {**record("GHSA-2", "2020-04-01"), "aliases": [], "published": "2020-04-01T00:00:00Z"}
    apart["affected"] = [{"package": {"ecosystem": "PyPI", "name": "other"}}]
    with car:
        read_feed(car, tmp_path / "apart", apart)
        unknown, known = car.resolve(["GHSA-1", "GHSA-2"], as_of=BETWEEN)
        read_feed(car, tmp_path / "first", first)
        [now_known] = car.resolve(["GHSA-1"], as_of=BETWEEN)

    assert (unknown.reasons, known.reasons) == (("history_unknown",), ())
    assert (now_known.status, now_known.reasons) == ("in_force", ())
