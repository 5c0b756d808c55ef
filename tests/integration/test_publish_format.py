"""A publisher's own format is published as it is, in the library, through a client and over HTTP."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

import stream_car
from stream_car import Client, DocumentsRejected, Engine, InvalidRequest, rule_packs
from tests.support import engines
from tests.support.either_service import served

RULES = rule_packs.load(["security"])


def record(modified: str, *, fixed: str = "", name: str = "OSV-1") -> dict[str, object]:
    events = [{"introduced": "0"}, *([{"fixed": fixed}] if fixed else [])]
    package = {"package": {"name": "foo", "ecosystem": "PyPI"}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}
    return {"id": name, "modified": modified, "summary": "RCE in foo", "affected": [package]}


OPEN, FIXED = record("2024-01-01T00:00:00Z"), record("2024-02-01T00:00:00Z", fixed="2.0.0")


@contextmanager
def library() -> Iterator[Engine]:
    with engines.engine(ruleset=RULES) as car:
        yield car


@contextmanager
def client() -> Iterator[Client]:
    with served(ruleset=RULES) as calls:
        yield calls


BACK_ENDS = pytest.mark.parametrize("back_end", [library, client])
BackEnd = Callable[[], AbstractContextManager[Engine | Client]]


@BACK_ENDS
def test_a_feed_is_published_as_it_is_and_again_it_brings_nothing_new(back_end: BackEnd) -> None:
    with back_end() as car:
        first = car.publish([OPEN, FIXED], format="osv")
        again = car.publish(msgspec.json.encode([OPEN, FIXED]), format="osv")
        [resolution] = car.resolve(["OSV-1"])

    assert (first.outcomes, first.converted and first.converted.records) == ({"accepted": 2}, 2)
    assert (again.outcomes, again.converted and again.converted.known) == ({}, 2)
    assert resolution.state_text == "fixed in 2.0.0"


@BACK_ENDS
def test_an_unreadable_piece_is_named_and_does_not_stop_the_others(
    back_end: BackEnd, caplog: pytest.LogCaptureFixture
) -> None:
    with back_end() as car:
        published = car.publish(msgspec.json.encode([{"id": "no-date"}, OPEN]), format="osv")
        assert published.outcomes == {"accepted": 1}
        assert published.converted is not None
        assert [piece.where for piece in published.converted.unreadable] == ["item 1"]
        assert "item 1" in caplog.text

        with pytest.raises(DocumentsRejected, match="Nothing was published"):
            car.publish(msgspec.json.encode([{"id": "no-date"}, FIXED]), format="osv", strict=True)
        assert car.resolve(["OSV-1"])[0].state == "open"
        assert car.publish([FIXED], format="osv", strict=True).outcomes == {"accepted": 1}


@BACK_ENDS
def test_a_format_that_does_not_exist_is_an_error_that_names_the_likely_one(back_end: BackEnd) -> None:
    with back_end() as car, pytest.raises(InvalidRequest, match="Did you mean 'osv'") as raised:
        car.publish([OPEN], format="osvv")
    assert raised.value.code == "format"


def test_a_body_in_a_publishers_format_is_accepted_over_http() -> None:
    with client() as car:
        assert isinstance(car, Client)
        url = f"{car.url}/v1/documents"
        response = httpx.post(url, params={"format": "osv"}, json=OPEN)
        assert response.status_code == 200
        assert response.json()["converted"] == {"format": "osv", "records": 1, "known": 0, "unreadable": []}
        assert response.json()["outcomes"] == {"accepted": 1}
        assert httpx.post(url, params={"format": "none"}, json=OPEN).json()["code"] == "format"
        too_large = httpx.post(url, params={"format": "osv"}, content=b" " * ((8 << 20) + 1))
        assert too_large.status_code == 413


def test_what_a_feed_has_seen_survives_the_process(tmp_path: Path) -> None:

    for expected in ({"accepted": 1}, {}):
        with stream_car.open(tmp_path, rules=["security"]) as car:
            assert car.publish(OPEN, format="osv").outcomes == expected
