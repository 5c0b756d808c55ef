"""The scope ambiguity of scopes large enough to have pages, against Definition 5."""

import pytest

from stream_car.core import definitions
from stream_car.core.amendments import NAMED_MAX, Amenders, amenders
from stream_car.core.documents import Document
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.core.walk import COUNTED_MAX, Walk, WalkResult
from stream_car.local.run_sync import run_sync
from stream_car.queries.assembly import scope_ambiguity
from tests.support.core_shard import RULES, CoreShard, document, run_reads


def walk(shard: CoreShard, anchor: str, as_of: int | None = None, named_max: int = COUNTED_MAX) -> WalkResult:
    values: dict[bytes, object] = {}
    steps = Walk(anchor, values, RULES, has_links=False, as_of=as_of, named_max=named_max).run()
    result, _ = run_reads(steps, shard.stored_values(), values)
    assert result is not None
    return result


def ambiguity_by_definition(shard: CoreShard, *anchors: str, as_of: int | None = None) -> float:
    corpus = {name: each for name, each in shard.corpus.items() if as_of is None or each.time <= as_of}
    closure = definitions.closure(anchors, definitions.superseders(corpus, RULES))
    scopes = {scope for name in anchors for scope in RULES.scopes(corpus[name])}
    around = {name for name, each in corpus.items() if not scopes.isdisjoint(RULES.scopes(each))}
    return len(around | closure) / len(closure)


@pytest.fixture(scope="module")
def shard() -> CoreShard:
    """CVE-1 and CVE-2 are large, CVE-3 is small; `both` is in the two large ones."""
    shard = CoreShard()
    for number in range(100):
        shard.publish(document(f"d{number}", time=number, cve="CVE-1"))
        shard.publish(document(f"p{number}", "patch", time=number, cve="CVE-2"))
    shard.publish(document("both", time=40, cve=("CVE-1", "CVE-2")))
    shard.publish(document("patch", "patch", time=50, cve="CVE-1"))
    shard.publish(document("end", "regression", time=90, cve="CVE-2"))
    shard.publish(document("small", time=1, cve="CVE-3"))
    shard.publish(document("fix", "patch", time=2, cve=("CVE-3", "CVE-2")))
    return shard


@pytest.mark.parametrize("as_of", [None, 45, 60, 95])
@pytest.mark.parametrize("named_max", [COUNTED_MAX, 10])
@pytest.mark.parametrize(
    "anchors",
    [("d1",), ("d99",), ("both",), ("d1", "d2", "d30"), ("d1", "both", "p5", "p30"), ("small",), ("p1", "p2")],
)
def test_the_ambiguity_of_large_scopes_is_that_of_the_definition(
    shard: CoreShard, anchors: tuple[str, ...], as_of: int | None, named_max: int
) -> None:
    anchors = tuple(name for name in anchors if as_of is None or shard.corpus[name].time <= as_of)
    if not anchors:
        return
    walks = [walk(shard, anchor, as_of, named_max) for anchor in anchors]
    rests: list[int] = []

    async def rest() -> None:
        rests.append(1)

    ambiguity = run_sync(scope_ambiguity(walks, rest))

    assert ambiguity == pytest.approx(ambiguity_by_definition(shard, *anchors, as_of=as_of))
    assert len(rests) >= len(walks)  # other work runs between them


def test_amenders_too_many_to_name_are_counted_once_for_all_rules() -> None:
    rules = tuple(
        Rule(name=name, effect="amend", superseding_type="note", superseded_type="disclosure", scope_keys=("cve",))
        for name in ("noted", "explained")
    )
    ruleset = Ruleset([RulePack(name="notes", types=("disclosure", "note"), rules=rules)])
    shard = CoreShard(ruleset)
    shard.publish(document("d", cve="CVE-1"))
    for number in range(NAMED_MAX + 1):
        shard.publish(note(f"n{number}"))
    values: dict[bytes, object] = {}
    result, _ = run_reads(amenders("d", values, ruleset, has_links=False), shard.stored_values(), values)

    assert result == Amenders({}, NAMED_MAX + 1)


def note(name: str) -> Document:
    return document(name, "note", time=1, cve="CVE-1")
