"""Walks from one anchor: which documents control it, by which path, and what must be read to know."""

from stream_car.core import definitions
from stream_car.core.documents import Retraction
from stream_car.core.revisions import document_key
from stream_car.core.timeline import scope_key
from stream_car.core.walk import Walk, WalkResult
from tests.support.core_shard import RULES, CoreShard, document, run_reads

CVE = "cve=CVE-1"


def walk(shard: CoreShard, anchor: str, *, has_links: bool = False, as_of: int | None = None) -> WalkResult:
    values: dict[bytes, object] = {}
    reads = Walk(anchor, values, RULES, has_links=has_links, as_of=as_of).run()
    result, _ = run_reads(reads, shard.stored_values(), values)
    assert result is not None
    return result


def controlling(result: WalkResult) -> set[str]:
    return {entry.id for entry in result.controlling}


def test_an_active_anchor_controls_itself() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", cve="CVE-1"))
    result = walk(shard, "disclosure")

    assert result.is_active
    assert controlling(result) == definitions.controlling("disclosure", shard.corpus, RULES) == {"disclosure"}


def test_a_chain_leads_to_its_end_with_the_rule_of_each_step() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", time=1, cve="CVE-1"))
    shard.publish(document("patch", "patch", time=2, cve="CVE-1"))
    shard.publish(document("regression", "regression", time=3, cve="CVE-1"))
    result = walk(shard, "disclosure")

    assert controlling(result) == definitions.controlling("disclosure", shard.corpus, RULES) == {"regression"}
    assert result.path("regression") == (("patch", "patched", CVE), ("regression", "reopened", CVE))
    assert result.closure == {"disclosure", "patch", "regression"}


def test_a_document_in_two_scopes_may_be_void_through_either() -> None:
    shard = CoreShard()
    shard.publish(document("both", time=1, cve=("CVE-1", "CVE-2")))
    shard.publish(document("patch-1", "patch", time=2, cve="CVE-1"))
    shard.publish(document("patch-2", "patch", time=3, cve="CVE-2"))

    expected = definitions.controlling("both", shard.corpus, RULES)
    assert controlling(walk(shard, "both")) == expected == {"patch-1", "patch-2"}


def test_a_walk_as_of_a_time_ignores_what_took_effect_later() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", time=1, cve="CVE-1"))
    shard.publish(document("patch", "patch", time=5, cve="CVE-1"))

    expected = definitions.controlling("disclosure", shard.corpus, RULES, as_of=4)
    assert controlling(walk(shard, "disclosure", as_of=4)) == expected == {"disclosure"}
    assert controlling(walk(shard, "disclosure", as_of=5)) == {"patch"}


def test_a_rule_with_differ_on_leads_only_to_other_values() -> None:
    shard = CoreShard()
    shard.publish(document("monday", "price", time=1, amount=5))
    shard.publish(document("tuesday", "price", time=2, amount=5))
    shard.publish(document("friday", "price", time=3, amount=6))
    result = walk(shard, "monday")

    assert controlling(result) == definitions.controlling("monday", shard.corpus, RULES) == {"friday"}
    assert result.closure == {"monday", "friday"}


def test_a_link_leads_to_the_document_that_names_the_anchor() -> None:
    shard = CoreShard()
    shard.publish(document("old", time=9))
    shard.publish(document("new", time=1, supersedes=("old",)))  # links ignore time
    result = walk(shard, "old", has_links=True)

    assert controlling(result) == definitions.controlling("old", shard.corpus, RULES) == {"new"}
    assert result.path("new") == (("new", "link", "document=old"),)


def test_a_successor_that_nobody_published_is_reported_as_missing() -> None:
    shard = CoreShard()
    shard.publish(document("old", superseded_by=("new",)))
    result = walk(shard, "old", has_links=True)

    assert result.missing == ("new",)
    assert controlling(result) == definitions.controlling("old", shard.corpus, RULES) == set()


def test_documents_that_void_one_another_are_reported_as_a_cycle() -> None:
    shard = CoreShard()
    shard.publish(document("a", supersedes=("b",)))
    shard.publish(document("b", supersedes=("a",)))
    result = walk(shard, "a", has_links=True)

    assert result.cycle == ("a", "b")
    assert controlling(result) == definitions.controlling("a", shard.corpus, RULES) == set()


def test_a_walk_reads_the_anchor_first_and_then_its_scopes() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", time=1, cve="CVE-1"))
    shard.publish(document("patch", "patch", time=2, cve="CVE-1"))
    values: dict[bytes, object] = {}
    reads = Walk("disclosure", values, RULES, has_links=False).run()
    _, rounds = run_reads(reads, shard.stored_values(), values)

    assert rounds == [[document_key("disclosure")], [scope_key(CVE)]]  # the scope has all that is needed of the patch


def test_a_retracted_anchor_has_no_walk() -> None:
    shard = CoreShard()
    shard.publish(document("disclosure", cve="CVE-1"))
    shard.publish(Retraction(id="disclosure"))
    values: dict[bytes, object] = {}
    reads = Walk("disclosure", values, RULES, has_links=False).run()

    assert run_reads(reads, shard.stored_values(), values)[0] is None
