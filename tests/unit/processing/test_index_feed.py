"""What the text index receives of applied records: of each id the current revision, of scopes every one."""

import pytest

from stream_car.core.documents import Retraction, Statement
from stream_car.core.revisions import Input
from stream_car.core.rule_pack import Key, RulePack
from stream_car.core.rules import Ruleset
from stream_car.core.stored import Entry, StoredDocument
from stream_car.ports import Record
from stream_car.processing.effects import DecodedRecord, Effects, Outcome
from stream_car.processing.index_feed import IndexBatch
from stream_car.processing.shard import AppliedRecord
from tests.support.engines import TYPES, document

TEA = ("topic=tea",)
RULESET = Ruleset(
    [
        RulePack(
            name="talk",
            types=TYPES,
            anchor_types=("claim", "denial"),
            keys={"topic": Key(fold="lower", by_name=True), "theme": Key(rename="topic"), "place": Key()},
        )
    ]
)


def decoded(statement: Statement | None, *scopes: str, offset: int = 0) -> DecodedRecord:
    return DecodedRecord(statement, scopes, Input(offset, append_time=0, digest=b""))


def applied(
    statement: Statement | None, outcome: Outcome, *scopes: str, offset: int = 0
) -> AppliedRecord[DecodedRecord, Effects]:
    record = Record(offset=offset, append_time=0, value=None)
    return AppliedRecord(record, decoded(statement, *scopes, offset=offset), Effects(outcome, [], []))


def batch() -> IndexBatch:
    return IndexBatch(RULESET)


@pytest.mark.parametrize("outcome", ["accepted", "pending"])
def test_an_accepted_document_is_indexed_with_its_scopes(outcome: Outcome) -> None:
    feed = batch()
    feed.add_applied([applied(document("claim"), outcome, *TEA, offset=7)])
    [entry] = feed.documents

    assert (entry.document.id, entry.scopes) == ("claim", TEA)
    assert (feed.scopes, feed.removed) == ({*TEA}, [])


@pytest.mark.parametrize("outcome", ["duplicate", "older", "nothing", "rejected", "control", "rerouted"])
def test_a_record_that_changed_nothing_is_not_indexed(outcome: Outcome) -> None:
    feed = batch()
    feed.add_applied([applied(document("claim"), outcome, *TEA)])

    assert (feed.documents, feed.removed, feed.scopes) == ([], [], set())


def test_only_types_that_questions_can_mean_are_anchors() -> None:
    feed = batch()
    feed.add_applied([applied(document(kind, kind), "accepted") for kind in ("claim", "note")])

    assert {entry.document.id: entry.anchor for entry in feed.documents} == {"claim": True, "note": False}


def test_the_last_of_several_statements_about_an_id_counts() -> None:
    feed = batch()
    records = [
        applied(document("a"), "accepted", "topic=a"),
        applied(document("a", revision=2), "accepted", "topic=a2"),
        applied(document("b"), "accepted", "topic=b"),
        applied(Retraction(id="b"), "retracted"),
        applied(document("b", revision=3), "accepted", "topic=b3"),
        applied(Retraction(id="a"), "retracted"),
    ]
    feed.add_applied(records)

    assert [(entry.document.id, entry.document.revision) for entry in feed.documents] == [("b", 3)]
    assert feed.removed == ["a"]
    assert feed.scopes == {"topic=a", "topic=a2", "topic=b", "topic=b3"}


def test_a_tick_changes_nothing() -> None:
    feed = batch()
    feed.add_applied([applied(None, "control")])
    feed.add_stored(decoded(None), None)

    assert (feed.documents, feed.removed, feed.scopes) == ([], [], set())


def stored(offset: int, *scopes: str) -> StoredDocument:
    entry = Entry("name", 1, "claim", time=0, order=0, offset=offset, append_time=0)
    return StoredDocument(entry, retracted=False, digest=b"", scopes=scopes)


def test_a_record_that_was_applied_earlier_is_indexed_if_it_is_still_the_current_one() -> None:
    feed = batch()
    feed.add_stored(decoded(document("current"), *TEA, offset=5), stored(5, "topic=tea", "place=home"))
    feed.add_stored(decoded(document("corrected"), "topic=rain", offset=6), stored(9, "topic=snow"))
    feed.add_stored(decoded(document("rejected"), "topic=moon", offset=7), None)
    feed.add_stored(decoded(Retraction(id="gone"), offset=8), stored(8))
    [entry] = feed.documents

    assert (entry.document.id, entry.scopes) == ("current", ("topic=tea", "place=home"))
    assert feed.removed == ["gone"]
    assert feed.scopes == {"topic=tea", "place=home", "topic=rain", "topic=moon"}


def test_the_values_of_keys_by_which_people_ask_are_aliases_of_the_record_or_else_of_the_document() -> None:
    feed = batch()
    claim = document("claim, 1", topic="Tea", theme="MILK", place="home", colour="green")
    edition = document("edition", topic="Tea", record="R-1")
    feed.add_applied([applied(each, "accepted", *TEA) for each in (claim, edition)])
    alone, recorded = feed.documents

    assert sorted(alone.aliases) == [("milk", 'document="claim, 1"'), ("tea", 'document="claim, 1"')]
    assert recorded.aliases == (("tea", "record=R-1"),)
    assert RULESET.aliases_spelt("Tea") == ("tea",)
