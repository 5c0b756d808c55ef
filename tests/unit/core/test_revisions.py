"""What becomes of one statement, given what is stored for its id."""

import msgspec
import pytest

from stream_car.core.documents import Document, Retraction, Statement
from stream_car.core.revisions import Decision, Input, decide, release
from stream_car.core.stored import StoredDocument
from stream_car.errors import InvalidDocument
from tests.support.core_shard import RULES, document


def decided(statement: Statement, stored: StoredDocument | None = None, *, is_due: bool = True) -> Decision:
    at = Input(offset=7, append_time=100, digest=msgspec.json.encode(statement, order="sorted"))
    scopes = RULES.scopes(statement) if isinstance(statement, Document) else ()
    return decide(stored, statement, at=at, ruleset=RULES, scopes=scopes, is_due=is_due)


def stored_after(*statements: Statement) -> StoredDocument:
    stored: StoredDocument | None = None
    for statement in statements:
        stored = decided(statement, stored).document
    assert stored is not None
    return stored


def moves(decision: Decision) -> list[tuple[str, str]]:
    """For each scope whether the document joins it, leaves it, or is corrected in it."""
    kinds = {(True, False): "joins", (False, True): "leaves", (True, True): "corrected"}
    return [(p.scope, kinds[p.entry is not None, p.old is not None]) for p in decision.placements]


def test_a_new_document_joins_its_scopes() -> None:
    decision = decided(document("a", cve=("CVE-1", "CVE-2")))

    assert decision.verdict == "accepted"
    assert moves(decision) == [("cve=CVE-1", "joins"), ("cve=CVE-2", "joins")]


def test_equal_content_again_is_a_duplicate() -> None:
    decision = decided(document("a", cve="CVE-1"), stored_after(document("a", cve="CVE-1")))

    assert (decision.verdict, decision.document, decision.placements) == ("duplicate", None, ())


def test_other_content_under_a_stored_revision_is_a_conflict() -> None:
    with pytest.raises(InvalidDocument) as conflict:
        decided(document("a", cve="CVE-2"), stored_after(document("a", cve="CVE-1")))

    assert conflict.value.code == "conflict"
    assert conflict.value.reason == "Revision 1 was published with other content. Send it as revision 2."


def test_a_revision_that_arrives_after_a_greater_one_is_older() -> None:
    assert decided(document("a", revision=1), stored_after(document("a", revision=2))).verdict == "older"


def test_a_correction_leaves_joins_and_stays_in_scopes() -> None:
    stored = stored_after(document("a", cve=("CVE-1", "CVE-2")))
    decision = decided(document("a", cve=("CVE-2", "CVE-3"), revision=2), stored)

    assert moves(decision) == [("cve=CVE-1", "leaves"), ("cve=CVE-2", "corrected"), ("cve=CVE-3", "joins")]
    assert [p.cause.kind for p in decision.placements] == ["moved", "corrected", "corrected"]


def test_a_retraction_leaves_all_scopes_and_outlives_its_revision() -> None:
    stored = stored_after(document("a", cve="CVE-1"))
    decision = decided(Retraction(id="a"), stored)

    assert (decision.verdict, moves(decision)) == ("retracted", [("cve=CVE-1", "leaves")])
    assert decided(document("a", cve="CVE-1"), decision.document).verdict == "older"
    assert decided(document("a", cve="CVE-1", revision=2), decision.document).verdict == "accepted"


def test_a_retraction_of_an_unknown_id_counts_only_if_it_names_a_revision() -> None:
    assert decided(Retraction(id="a")).verdict == "nothing"
    assert decided(Retraction(id="a", revision=2)).verdict == "retracted"
    assert decided(document("a", revision=2), stored_after(Retraction(id="a", revision=2))).verdict == "older"


def test_a_document_from_the_future_joins_its_scopes_when_it_is_released() -> None:
    waiting = decided(document("a", time=1000, cve="CVE-1"), is_due=False)
    assert (waiting.verdict, waiting.placements) == ("pending", ())
    assert waiting.document is not None and not waiting.document.is_present

    released, [placement] = release("a", waiting.document, offset=12)
    assert released.is_present
    assert (placement.scope, placement.offset, placement.cause.kind) == ("cve=CVE-1", 12, "released")


def test_a_document_joins_the_scopes_of_its_links_last() -> None:
    decision = decided(document("b", cve="CVE-1", supersedes=("a",), superseded_by=("c",)))

    assert moves(decision) == [("cve=CVE-1", "joins"), ("document=a", "joins"), ("document=b", "joins")]
    assert [p.is_link for p in decision.placements] == [False, True, True]
