"""Publications that are strict, what becomes of rejected documents, and what was probably meant."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import httpx
import msgspec
import pytest
from click.testing import CliRunner

from stream_car import Client, DocumentsRejected, Engine, InvalidRequest
from stream_car.cli import main
from stream_car.core.rules import Ruleset
from stream_car.queries.answers import Published
from tests.support import engines
from tests.support.either_service import served
from tests.support.engines import RULESET

GOOD = {"id": "good", "type": "claim", "time": "2020-01-01", "scope": {"topic": "tea"}}
MISSPELT = {"id": "misspelt", "type": "claim", "time": "2020-01-01", "scope": {"topci": "tea"}}
UNSCOPED = {"id": "unscoped", "type": "claim", "time": "2020-01-01", "topic": "tea"}
UNKNOWN = {"id": "unknown", "type": "clam", "time": "2020-01-01", "scope": {"topic": "tea"}}
EXTRA = {"id": "extra", "type": "claim", "time": "2020-01-01", "scope": {"topic": "tea", "flavour": "mint"}}
ADVISORY = {"id": "a", "type": "advisory", "time": "2020-01-01", "scope": {"package": "foo", "cve": "CVE-1"}}


@contextmanager
def library() -> Iterator[Engine]:
    with engines.engine(ruleset=RULESET) as car:
        yield car


@contextmanager
def client() -> Iterator[Client]:
    with served(ruleset=RULESET) as calls:
        yield calls


BACK_ENDS = pytest.mark.parametrize("back_end", [library, client])
BackEnd = Callable[[], AbstractContextManager[Engine | Client]]


@BACK_ENDS
def test_a_strict_publication_keeps_nothing_if_one_document_would_do_nothing(back_end: BackEnd) -> None:
    with back_end() as car:
        for bad in (MISSPELT, UNSCOPED, UNKNOWN, EXTRA, {"id": "timeless", "type": "claim"}, b"{"):
            with pytest.raises(DocumentsRejected) as raised:
                car.publish([GOOD, bad], strict=True)
            assert raised.value.code == "strict"
            assert len(raised.value.problems) == 1
        assert car.status().next_offset == 0

        assert car.publish([GOOD], strict=True).outcomes == {"accepted": 1}


@BACK_ENDS
def test_a_strict_publication_says_for_each_document_what_was_probably_meant(back_end: BackEnd) -> None:
    with back_end() as car, pytest.raises(DocumentsRejected) as raised:
        car.publish([MISSPELT, UNSCOPED, UNKNOWN, EXTRA], strict=True)

    misspelt, unscoped, unknown, extra = raised.value.problems
    assert misspelt.startswith("Document 'misspelt': It joins no scope")
    assert "Did you mean 'topic'?" in misspelt
    assert "It has the attribute 'topic'. Did you mean 'scope.topic'?" in unscoped
    assert "declares the type 'clam'. Did you mean 'claim'?" in unknown
    assert extra == "Document 'extra': No rule uses the scope key 'flavour'."


def test_a_document_that_only_links_need_not_join_a_scope() -> None:
    with library() as car:
        linking = {"id": "link", "type": "note", "time": "2020-01-01", "supersedes": ["good"]}
        assert car.publish([linking], strict=True).outcomes == {"accepted": 1}
        assert car.publish({"id": "link", "retracted": True}, strict=True).outcomes == {"retracted": 1}


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", msgspec.json.encode([GOOD, MISSPELT])),
        ("application/x-ndjson", msgspec.json.encode(GOOD) + b"\n\n" + msgspec.json.encode(MISSPELT)),
        ("application/json", msgspec.json.encode(MISSPELT)),
    ],
)
def test_a_strict_body_over_http_is_stored_whole_or_not_at_all(kind: str, body: bytes) -> None:
    with client() as car:
        url = f"{car.url}/v1/documents"
        response = httpx.post(url, params={"strict": "true"}, content=body, headers={"content-type": kind})
        problem = response.json()
        assert (response.status_code, problem["code"]) == (422, "strict")
        assert ["misspelt" in text for text in problem["problems"]] == [True]
        assert car.status().next_offset == 0

        good = httpx.post(url, params={"strict": "true"}, json=[GOOD], headers={"content-type": "application/json"})
        assert good.json()["outcomes"] == {"accepted": 1}
        assert httpx.post(url, params={"strct": "true"}, json=GOOD).json()["code"] == "field"


def test_rejected_documents_are_logged_unless_the_caller_says_otherwise(caplog: pytest.LogCaptureFixture) -> None:
    with library() as car, caplog.at_level(logging.WARNING, "stream_car"):
        car.publish([GOOD])
        assert caplog.messages == []
        published: Published = car.publish([UNKNOWN, GOOD, b"{"])
        [message] = caplog.messages
        assert message.startswith(
            "2 of 3 documents were rejected; the others are stored. The first: Document 'unknown'"
        )
        assert published.outcomes == {"duplicate": 1, "rejected": 2}

        car.publish([UNKNOWN], on_rejected="ignore")
        assert len(caplog.messages) == 1


@BACK_ENDS
def test_rejected_documents_raise_if_the_caller_wants_it_and_the_others_are_stored(back_end: BackEnd) -> None:
    with back_end() as car:
        with pytest.raises(DocumentsRejected, match="1 of 2 documents was rejected; the others are stored") as raised:
            car.publish([UNKNOWN, GOOD], on_rejected="raise")
        assert (raised.value.code, len(raised.value.problems)) == ("rejected", 1)
        assert car.resolve(["good"])[0].status == "in_force"
        with pytest.raises(InvalidRequest) as invalid:
            car.publish([GOOD], on_rejected="shout")  # type: ignore[arg-type]  # a program may
        assert invalid.value.code == "on_rejected"


def test_receipts_name_scope_keys_that_no_rule_uses_and_what_was_probably_meant() -> None:
    ruleset: Ruleset = RULESET
    with engines.engine(ruleset=ruleset) as car:
        receipts = car.publish([MISSPELT, UNSCOPED, EXTRA, GOOD]).receipts

    assert [[(key.key, key.meant) for key in receipt.unknown_keys] for receipt in receipts] == [
        [("topci", "topic")],
        [],
        [("flavour", "")],
        [],
    ]
    assert [(typo.attribute, typo.field) for typo in receipts[1].likely_typos] == [("topic", "scope.topic")]


def test_the_command_line_publishes_strictly_all_or_nothing(tmp_path: Path) -> None:
    data = tmp_path / "data"
    run = CliRunner(env={"STREAM_CAR_DATA": str(data)}).invoke
    misspelt = {**ADVISORY, "id": "b", "scope": {"pakage": "f", "cve": "CVE-1"}}
    texts = [msgspec.json.encode(document).decode() for document in (ADVISORY, misspelt)]

    failed = run(main, ["publish", "--strict", "-"], input="\n".join(texts))
    assert failed.exit_code == 1
    assert "Nothing was published, because 1 document is not as `strict` requires." in failed.stderr
    assert "Did you mean 'package'?" in failed.stderr
    assert '"next_offset":0' in run(main, ["status", "--json"]).stdout

    assert run(main, ["publish", "--strict", "-"], input=texts[0]).exit_code == 0
    loose = run(main, ["publish", "-"], input=texts[1])
    assert "1 document has the scope key `pakage`, which no rule uses. Did you mean `package`?" in loose.output


def test_a_strict_feed_with_a_piece_that_cannot_be_read_publishes_nothing(tmp_path: Path) -> None:
    run = CliRunner(env={"STREAM_CAR_DATA": str(tmp_path / "data")}).invoke
    feed = tmp_path / "feed.jsonl"
    record = {"id": "OSV-1", "modified": "2024-01-01T00:00:00Z", "affected": [{"package": {"name": "foo"}}]}
    feed.write_bytes(msgspec.json.encode(record) + b"\n{}\n")

    failed = run(main, ["publish", "--strict", "--format", "osv", str(feed)])
    assert failed.exit_code == 1
    assert "Nothing was published: 1 piece of the feed cannot be read." in failed.stderr

    feed.write_bytes(msgspec.json.encode(record))
    assert run(main, ["publish", "--strict", "--format", "osv", str(feed)]).exit_code == 0
