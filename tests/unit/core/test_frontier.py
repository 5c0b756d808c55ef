"""One step of a frontier at a time: what a document changes when it arrives, is corrected or is retracted."""

import pytest

from stream_car.core import definitions
from stream_car.core.changes import FrontierChange
from stream_car.core.documents import Retraction
from stream_car.core.timeline import MissingPages
from tests.support.core_shard import RULES, CoreShard, document

CVE = "cve=CVE-1"
TEA = "product=tea"


def entered(change: FrontierChange) -> list[str]:
    return [member.id for member in change.entered]


def left(change: FrontierChange) -> list[tuple[str, str, str]]:
    return [(member.id, member.why, member.rule) for member in change.left]


def test_a_later_document_voids_the_earlier_ones_of_its_scope() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure-1", time=1, cve="CVE-1"))
    shard.publish(document("disclosure-2", time=2, cve="CVE-1"))
    [change] = shard.publish(document("patch", "patch", time=3, cve="CVE-1"))

    assert entered(change) == ["patch"]
    assert left(change) == [("disclosure-1", "voided", "patched"), ("disclosure-2", "voided", "patched")]
    assert shard.frontier(CVE) == definitions.frontier(CVE, shard.corpus, RULES) == {"patch"}


def test_documents_of_other_scopes_are_not_voided() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", time=1, cve="CVE-1"))
    shard.publish(document("patch", "patch", time=2, cve="CVE-2"))

    assert shard.frontier(CVE) == definitions.frontier(CVE, shard.corpus, RULES) == {"disclosure"}


def test_a_document_that_arrives_late_is_void_from_the_start() -> None:
    shard = CoreShard()
    shard.publish(document("patch", "patch", time=2, cve="CVE-1"))

    assert shard.publish(document("disclosure", time=1, cve="CVE-1")) == []
    assert shard.frontier(CVE) == definitions.frontier(CVE, shard.corpus, RULES) == {"patch"}


def test_a_late_patch_voids_only_what_is_earlier_than_itself() -> None:
    shard = CoreShard()
    shard.publish(document("early", time=1, cve="CVE-1"))
    shard.publish(document("late", time=9, cve="CVE-1"))
    [change] = shard.publish(document("patch", "patch", time=5, cve="CVE-1"))

    assert left(change) == [("early", "voided", "patched")]
    assert shard.frontier(CVE) == definitions.frontier(CVE, shard.corpus, RULES) == {"late", "patch"}


def test_documents_of_equal_precedence_void_nothing() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", time=1, cve="CVE-1"))
    shard.publish(document("patch", "patch", time=1, cve="CVE-1"))

    assert shard.frontier(CVE) == definitions.frontier(CVE, shard.corpus, RULES) == {"disclosure", "patch"}


def test_a_correction_restores_what_the_former_revision_voided_wrongly() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", time=3, cve="CVE-1"))
    shard.publish(document("patch", "patch", time=5, cve="CVE-1"))
    [change] = shard.publish(document("patch", "patch", time=2, revision=2, cve="CVE-1"))

    assert entered(change) == ["patch", "disclosure"]
    assert left(change) == [("patch", "corrected", "")]
    assert shard.frontier(CVE) == definitions.frontier(CVE, shard.corpus, RULES) == {"patch", "disclosure"}


def test_a_correction_to_another_scope_changes_both_frontiers() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", time=1, cve="CVE-1"))
    shard.publish(document("patch", "patch", time=2, cve="CVE-1"))
    moved_from, moved_to = shard.publish(document("patch", "patch", time=2, revision=2, cve="CVE-2"))

    assert (moved_from.scope, left(moved_from), entered(moved_from)) == (CVE, [("patch", "moved", "")], ["disclosure"])
    assert (moved_to.scope, entered(moved_to)) == ("cve=CVE-2", ["patch"])


def test_a_retraction_restores_what_the_document_voided() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", time=1, cve="CVE-1"))
    shard.publish(document("patch", "patch", time=2, cve="CVE-1"))
    [change] = shard.publish(Retraction(id="patch"))

    assert (entered(change), left(change)) == (["disclosure"], [("patch", "retracted", "")])
    assert shard.frontier(CVE) == definitions.frontier(CVE, shard.corpus, RULES) == {"disclosure"}


def test_the_target_of_a_link_leaves_with_the_first_link_and_enters_with_the_end_of_the_last() -> None:
    shard = CoreShard()
    [by_link] = shard.publish(document("b", supersedes=("a",)))
    assert (by_link.scope, left(by_link)) == ("document=a", [("a", "link", "link")])

    assert shard.publish(document("c", supersedes=("a",))) == []
    assert shard.publish(Retraction(id="b")) == []
    [change] = shard.publish(Retraction(id="c"))
    assert (change.scope, entered(change)) == ("document=a", ["a"])


def test_a_document_that_amends_another_leaves_it_active() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", time=1, cve="CVE-1"))
    [change] = shard.publish(document("note", "note", time=2, cve="CVE-1"))

    assert [(member.id, member.rule) for member in change.entered] == [("note", "noted")]
    assert shard.frontier(CVE) == definitions.frontier(CVE, shard.corpus, RULES) == {"disclosure", "note"}


def test_a_rule_with_differ_on_spares_members_with_the_same_value() -> None:
    shard = CoreShard()
    shard.publish(document("monday", "price", time=1, amount=5))
    shard.publish(document("tuesday", "price", time=2, amount=5))
    assert shard.frontier(TEA) == definitions.frontier(TEA, shard.corpus, RULES) == {"monday", "tuesday"}

    [change] = shard.publish(document("friday", "price", time=3, amount=6))
    assert left(change) == [("monday", "voided", "repriced"), ("tuesday", "voided", "repriced")]
    assert shard.frontier(TEA) == definitions.frontier(TEA, shard.corpus, RULES) == {"friday"}


def test_a_change_reports_more_than_256_members_of_a_type_as_one_run() -> None:
    shard = CoreShard()
    for number in range(257):
        shard.publish(document(f"disclosure-{number}", time=number, cve="CVE-1"))
    [change] = shard.publish(document("patch", "patch", time=1000, cve="CVE-1"))

    assert (entered(change), left(change)) == (["patch"], [])
    [run] = change.left_runs
    assert (run.type, run.count, run.end) == ("disclosure", 257, (1000, 0))


def test_nothing_has_changed_when_a_page_is_missing() -> None:
    shard = CoreShard()
    for number in range(65):  # one more than a header has room for
        shard.publish(document(f"disclosure-{number}", time=number, cve="CVE-1"))
    version, pages = shard.scopes[CVE].version, dict(shard.pages)
    shard.pages.clear()

    with pytest.raises(MissingPages) as missing:
        shard.publish(document("patch", "patch", time=30, cve="CVE-1"))
    assert set(missing.value.keys) == set(pages)
    assert shard.scopes[CVE].version == version


def test_the_changes_of_a_scope_are_numbered_without_a_gap() -> None:
    shard = CoreShard()
    changes = [
        *shard.publish(document("disclosure", time=1, cve="CVE-1")),
        *shard.publish(document("patch", "patch", time=3, cve="CVE-1")),
        *shard.publish(document("late", time=2, cve="CVE-1")),  # changes nothing
        *shard.publish(Retraction(id="patch")),
    ]

    assert [(change.seq, change.offset) for change in changes] == [(1, 0), (2, 1), (3, 3)]
