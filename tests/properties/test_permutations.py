"""Whatever the order of arrival, a few statements end in one state: the one that the definitions give."""

from collections.abc import Iterable, Sequence
from itertools import permutations
from random import Random

import pytest

from stream_car.core import definitions
from stream_car.core.changes import LISTED_MAX
from stream_car.core.documents import Document, Retraction, Statement
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.core.timeline import all_members
from stream_car.processing.fold import Fold
from stream_car.processing.headers import Header
from stream_car.processing.state import HEADER, PENDING
from tests.properties.test_frontier_equals_definition import frontier_of
from tests.properties.test_walk_equals_definition import walk
from tests.support.frontier_replay import Replay
from tests.support.memory_shard import Memory
from tests.support.streams import random_rules, random_stream, remember_the_oracle

RULESET = Ruleset(
    [
        RulePack(
            name="small",
            types=("claim", "denial", "fact"),
            rules=(
                Rule(name="denied", superseding_type="denial", superseded_type="claim", scope_keys=("x",)),
                Rule(name="denied there", superseding_type="denial", superseded_type="claim", scope_keys=("x", "y")),
                Rule(name="edited", superseding_type="claim", superseded_type="claim", scope_keys=("record",)),
                Rule(
                    name="other", superseding_type="fact", superseded_type="fact", scope_keys=("x",), differ_on=("v",)
                ),
            ),
        )
    ]
)


def said(
    name: str, kind: str = "claim", time: int = 0, revision: int = 1, v: int | None = None, order: int = 0,
    supersedes: str = "", superseded_by: str = "", amends: str = "", **scope: str,
) -> Document:  # fmt: skip
    return Document(
        id=name,
        revision=revision,
        type=kind,
        time=time,
        order=order,
        scope=({key: tuple(value) if key != "record" else (value,) for key, value in scope.items()},) if scope else (),
        supersedes=tuple(supersedes),
        superseded_by=tuple(superseded_by),
        amends=tuple(amends),
        attributes={"v": v} if v is not None else {},
    )


def gone(name: str, revision: int = 1) -> Retraction:
    return Retraction(id=name, revision=revision)


SHAPES: dict[str, Sequence[Statement]] = {
    "a chain": [
        said("a", x="1"),
        said("b", "denial", 1, x="1"),
        said("c", time=2, x="1"),
        said("d", "denial", 3, x="1"),
    ],
    "two scopes": [
        said("a", x="12"),
        said("b", "denial", 1, x="1"),
        said("c", "denial", 2, x="2"),
        gone("b"),
        said("d", time=1, x="2"),
    ],
    "scopes of two keys": [
        said("a", x="12", y="3"),
        said("b", "denial", 1, x="1", y="3"),
        said("c", "denial", 1, x="2", y="4"),
        said("b", "denial", 1, 2, x="2", y="3"),
    ],
    "a correction of time": [
        said("a", time=5, x="1"),
        said("b", "denial", 9, x="1"),
        said("b", "denial", 1, 2, x="1"),
        said("b", "denial", 7, 3, x="1"),
        said("c", time=6, x="1"),
    ],
    "a correction of type and scope": [
        said("a", time=1, x="1"),
        said("b", "denial", 2, x="1"),
        said("b", "claim", 2, 2, x="2"),
        said("c", "denial", 3, x="2"),
        said("a", "denial", 4, 2, x="2"),
    ],
    "retractions before and after, and a return": [
        said("a", x="1"),
        said("b", "denial", 1, x="1"),
        gone("b"),
        said("b", "denial", 2, 2, x="1"),
        gone("b", 2),
        gone("c", 3),
    ],
    "a revision that a retraction outlives": [
        said("a", x="1"),
        gone("a", 2),
        said("a", x="1", revision=2),
        said("b", "denial", 1, x="1"),
        said("a", revision=3, x="2"),
    ],
    "links both ways": [
        said("a", supersedes="b"),
        said("b", superseded_by="c"),
        said("c", amends="a"),
        gone("a"),
        said("b", revision=2),
    ],
    "a ring": [
        said("a", supersedes="b"),
        said("b", supersedes="c"),
        said("c", supersedes="a"),
        said("a", revision=2),
        said("d"),
    ],
    "a ring of link and rule": [
        said("a", time=1, x="1", supersedes="b"),
        said("b", "denial", 2, x="1"),
        said("c", "denial", 3, x="1"),
        gone("b"),
    ],
    "a successor that is not here": [
        said("a", superseded_by="z"),
        said("b", time=1, supersedes="a"),
        gone("b"),
        said("z", time=3),
    ],
    "editions and a link to their record": [
        said("a", time=1, record="r"),
        said("b", time=2, record="r"),
        said("c", time=3, record="r"),
        said("d", supersedes="r"),
        gone("d"),
        gone("c"),
    ],
    "facts of two values": [
        said("a", "fact", 1, v=1, x="1"),
        said("b", "fact", 2, v=2, x="1"),
        said("c", "fact", 3, v=2, x="1"),
        said("d", "fact", 2, v=1, x="1"),
        gone("c"),
    ],
    "facts that lack the value, and a corrected one": [
        said("a", "fact", 1, x="1"),
        said("b", "fact", 2, v=1, x="1"),
        said("b", "fact", 2, 2, x="1"),
        said("c", "fact", 3, x="1"),
    ],
    "ties": [
        said("a", x="1"),
        said("b", "denial", x="1"),
        said("c", "denial", order=1, x="1"),
        said("d", order=1, x="1"),
        gone("c"),
    ],
    "a scope that empties": [said("a", x="1"), gone("a"), said("b", x="1"), said("b", x="2", revision=2), gone("b", 2)],
    "six of everything": [
        said("a", time=1, x="1"),
        said("b", "denial", 2, x="12"),
        said("c", "denial", 3, x="1"),
        gone("c"),
        said("d", time=4, x="2", superseded_by="a"),
        said("a", time=5, x="12", revision=2),
    ],
}
EARLY = 1_000_000
LATE = 1 << 50


def end_of(stream: Iterable[Statement], ruleset: Ruleset, *, waits: bool) -> dict[str, object]:
    """What a fold ends with: checked against the definitions, without offsets, append times and counts."""
    arrived = list(stream)
    memory = Memory(Fold(ruleset, future="wait" if waits else "apply", skew=0))
    told = Replay(memory)
    for at, one in enumerate(arrived):
        for change in memory.feed(one, EARLY + at if waits else LATE).changes:
            told.hear(change)
    for change in memory.feed(None, LATE).changes:
        told.hear(change)
    corpus = definitions.current_documents(arrived)
    check(memory, told, corpus, ruleset)
    header = memory.values[HEADER]
    assert isinstance(header, Header)
    return {
        "corpus": corpus,
        "scopes": {name: members(memory, name) for name in memory.values.scopes if members(memory, name)},
        "header": (header.links, header.pending, header.documents),
        "queue": memory.values.get(PENDING) if header.pending else None,
        "frontiers": {name: found for name, found in told.frontiers.items() if found},
    }


def members(memory: Memory, name: str) -> list[tuple[object, ...]]:
    scope = memory.values.scopes[name]
    if scope is None:
        return []
    every = all_members(scope, memory.values.pages)
    return [(one.id, one.revision, one.type, one.precedence, one.elsewhere, one.compared) for one in every]


def check(memory: Memory, told: Replay, corpus: dict[str, Document], ruleset: Ruleset) -> None:
    scopes = {scope for document in corpus.values() for scope in ruleset.scopes(document)} | {*told.frontiers}
    for scope in scopes:
        expected = {(name, corpus[name].revision) for name in definitions.frontier(scope, corpus, ruleset)}
        assert frontier_of(memory, scope, ruleset) == expected == told.frontiers.get(scope, set()), scope
    standing = definitions.active(corpus, ruleset)
    above = definitions.superseders(corpus, ruleset)
    for anchor in corpus:
        found, _ = walk(anchor, memory.values, ruleset, None, has_links=True)
        assert found is not None
        assert {one.id for one in found.controlling} == definitions.closure([anchor], above) & standing, anchor


@pytest.fixture(autouse=True)
def affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    remember_the_oracle(monkeypatch.setattr)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_order_of_a_small_stream_ends_in_the_same_state(shape: str) -> None:
    stream = SHAPES[shape]
    first = end_of(stream, RULESET, waits=False)
    for order in permutations(stream):
        assert end_of(order, RULESET, waits=False) == first, order


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("due", [1, 3])
def test_it_does_so_when_some_documents_wait_for_their_time(shape: str, due: int) -> None:
    stream = [later(one, due) for one in SHAPES[shape]]
    first = end_of(stream, RULESET, waits=True)
    for order in permutations(stream):
        assert end_of(order, RULESET, waits=True) == first, order


def later(one: Statement, due: int) -> Statement:
    """The same; from `due` on it takes effect when the stream is over."""
    if isinstance(one, Retraction) or one.time < due:
        return one
    return said_at(one, EARLY * 2 + one.time)


def said_at(one: Document, time: int) -> Document:
    return Document(**{name: getattr(one, name) for name in one.__struct_fields__ if name != "time"}, time=time)


@pytest.mark.parametrize("block", range(5))
def test_every_order_of_random_small_streams_ends_in_the_same_state(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        random = Random(seed)
        ruleset = random_rules(random)
        stream = without_conflicts(random_stream(random, 40, links=0.3))[: random.choice((4, 5))]
        first = end_of(stream, ruleset, waits=False)
        for order in permutations(stream):
            assert end_of(order, ruleset, waits=False) == first, (seed, order)


def without_conflicts(stream: Iterable[Statement]) -> list[Statement]:
    """One statement for each id and revision, and only retractions that name a revision: the rest depends on order."""
    known: dict[tuple[str, int | None, bool], Statement] = {}
    for one in stream:
        if one.revision is not None:
            known.setdefault((one.id, one.revision, isinstance(one, Retraction)), one)
    return list(known.values())


@pytest.mark.parametrize("number", [LISTED_MAX, LISTED_MAX + 1, 400])
@pytest.mark.parametrize("differing", [False, True], ids=["by time", "by value"])
def test_many_members_are_told_as_one_run_that_replays_to_the_frontier(number: int, differing: bool) -> None:
    kind = "fact" if differing else "claim"
    crowd: list[Statement] = [
        said(f"n{n}", kind, n % 50, order=n, v=1 if differing else None, x="1") for n in range(number)
    ]
    ender = "fact" if differing else "denial"
    ending: list[Statement] = [
        said("end", ender, 100, v=9, x="1"),
        said("end", ender, 25, 2, v=9, x="1"),
        said("end", ender, 70, 3, v=1, x="1"),
        gone("end", 3),
        said("end", ender, 80, 4, v=9, x="1"),
        said("end", ender, 80, 5, v=9, x="2"),
    ]
    memory = Memory(Fold(RULESET, future="apply"))
    told = Replay(memory)
    corpus: dict[str, Document] = {}
    for at, one in enumerate([*crowd, *ending]):
        for change in memory.feed(one).changes:
            told.hear(change)
            named = [*change.left, *change.entered]
            assert max((sum(m.type == t for m in named) for t in ("claim", "fact")), default=0) <= LISTED_MAX + 1
        if at >= number:
            corpus = definitions.current_documents([*crowd, *ending[: at - number + 1]])
            expected = {(name, corpus[name].revision) for name in definitions.frontier("x=1", corpus, RULESET)}
            assert told.frontiers["x=1"] == expected == frontier_of(memory, "x=1", RULESET)
    assert (told.runs > 0) == (number > LISTED_MAX)
