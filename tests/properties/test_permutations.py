"""Whatever the order of arrival, a few statements end in one state: the one that the definitions give."""

from collections.abc import Iterable, Sequence
from itertools import permutations
from random import Random

import pytest
from msgspec.structs import replace

from stream_car.core import definitions
from stream_car.core.changes import LISTED_MAX
from stream_car.core.documents import Document, Retraction, Statement
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.core.timeline import all_members
from stream_car.processing.fold import Fold
from stream_car.processing.headers import Header
from stream_car.processing.state import HEADER, PENDING
from tests.support.frontier_replay import Replay
from tests.support.memory_shard import Memory
from tests.support.streams import random_rules, random_stream, remember_the_oracle
from tests.support.walks import walk

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


def document(
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


def retraction(name: str, revision: int = 1) -> Retraction:
    return Retraction(id=name, revision=revision)


SHAPES: dict[str, Sequence[Statement]] = {
    "a chain": [
        document("a", x="1"),
        document("b", "denial", 1, x="1"),
        document("c", time=2, x="1"),
        document("d", "denial", 3, x="1"),
    ],
    "two scopes": [
        document("a", x="12"),
        document("b", "denial", 1, x="1"),
        document("c", "denial", 2, x="2"),
        retraction("b"),
        document("d", time=1, x="2"),
    ],
    "scopes of two keys": [
        document("a", x="12", y="3"),
        document("b", "denial", 1, x="1", y="3"),
        document("c", "denial", 1, x="2", y="4"),
        document("b", "denial", 1, 2, x="2", y="3"),
    ],
    "a correction of time": [
        document("a", time=5, x="1"),
        document("b", "denial", 9, x="1"),
        document("b", "denial", 1, 2, x="1"),
        document("b", "denial", 7, 3, x="1"),
        document("c", time=6, x="1"),
    ],
    "a correction of type and scope": [
        document("a", time=1, x="1"),
        document("b", "denial", 2, x="1"),
        document("b", "claim", 2, 2, x="2"),
        document("c", "denial", 3, x="2"),
        document("a", "denial", 4, 2, x="2"),
    ],
    "retractions before and after, and a return": [
        document("a", x="1"),
        document("b", "denial", 1, x="1"),
        retraction("b"),
        document("b", "denial", 2, 2, x="1"),
        retraction("b", 2),
        retraction("c", 3),
    ],
    "a revision that a retraction outlives": [
        document("a", x="1"),
        retraction("a", 2),
        document("a", x="1", revision=2),
        document("b", "denial", 1, x="1"),
        document("a", revision=3, x="2"),
    ],
    "links both ways": [
        document("a", supersedes="b"),
        document("b", superseded_by="c"),
        document("c", amends="a"),
        retraction("a"),
        document("b", revision=2),
    ],
    "a ring": [
        document("a", supersedes="b"),
        document("b", supersedes="c"),
        document("c", supersedes="a"),
        document("a", revision=2),
        document("d"),
    ],
    "a ring of link and rule": [
        document("a", time=1, x="1", supersedes="b"),
        document("b", "denial", 2, x="1"),
        document("c", "denial", 3, x="1"),
        retraction("b"),
    ],
    "a successor that is not here": [
        document("a", superseded_by="z"),
        document("b", time=1, supersedes="a"),
        retraction("b"),
        document("z", time=3),
    ],
    "editions and a link to their record": [
        document("a", time=1, record="r"),
        document("b", time=2, record="r"),
        document("c", time=3, record="r"),
        document("d", supersedes="r"),
        retraction("d"),
        retraction("c"),
    ],
    "facts of two values": [
        document("a", "fact", 1, v=1, x="1"),
        document("b", "fact", 2, v=2, x="1"),
        document("c", "fact", 3, v=2, x="1"),
        document("d", "fact", 2, v=1, x="1"),
        retraction("c"),
    ],
    "facts that lack the value, and a corrected one": [
        document("a", "fact", 1, x="1"),
        document("b", "fact", 2, v=1, x="1"),
        document("b", "fact", 2, 2, x="1"),
        document("c", "fact", 3, x="1"),
    ],
    "ties": [
        document("a", x="1"),
        document("b", "denial", x="1"),
        document("c", "denial", order=1, x="1"),
        document("d", order=1, x="1"),
        retraction("c"),
    ],
    "a scope that empties": [
        document("a", x="1"),
        retraction("a"),
        document("b", x="1"),
        document("b", x="2", revision=2),
        retraction("b", 2),
    ],
    "six of everything": [
        document("a", time=1, x="1"),
        document("b", "denial", 2, x="12"),
        document("c", "denial", 3, x="1"),
        retraction("c"),
        document("d", time=4, x="2", superseded_by="a"),
        document("a", time=5, x="12", revision=2),
    ],
}
EARLY = 1_000_000
LATE = 1 << 50


def end_of(stream: Iterable[Statement], ruleset: Ruleset, *, waits: bool) -> dict[str, object]:
    """Return the state of a fold at the end of a stream, compared with the definitions.

    Offsets, append times and counts are left out.
    """
    statements = list(stream)
    memory = Memory(Fold(ruleset, future="wait" if waits else "apply", skew=0))
    replay = Replay(memory)
    for number, statement in enumerate(statements):
        for change in memory.feed(statement, EARLY + number if waits else LATE).changes:
            replay.apply(change)
    for change in memory.feed(None, LATE).changes:
        replay.apply(change)
    corpus = definitions.current_documents(statements)
    check(memory, replay, corpus, ruleset)
    header = memory.values[HEADER]
    assert isinstance(header, Header)
    return {
        "corpus": corpus,
        "scopes": {name: members(memory, name) for name in memory.values.scopes if members(memory, name)},
        "header": (header.links, header.pending, header.documents),
        "queue": memory.values.get(PENDING) if header.pending else None,
        "frontiers": {name: frontier for name, frontier in replay.frontiers.items() if frontier},
    }


def members(memory: Memory, name: str) -> list[tuple[object, ...]]:
    scope = memory.values.scopes[name]
    if scope is None:
        return []
    return [
        (member.id, member.revision, member.type, member.precedence, member.elsewhere, member.compared)
        for member in all_members(scope, memory.values.pages)
    ]


def check(memory: Memory, replay: Replay, corpus: dict[str, Document], ruleset: Ruleset) -> None:
    scopes = {scope for document in corpus.values() for scope in ruleset.scopes(document)} | {*replay.frontiers}
    for scope in scopes:
        expected = {(name, corpus[name].revision) for name in definitions.frontier(scope, corpus, ruleset)}
        assert memory.frontier(scope) == expected == replay.frontiers.get(scope, set()), scope
    active = definitions.active(corpus, ruleset)
    above = definitions.superseders(corpus, ruleset)
    for anchor in corpus:
        result, _ = walk(anchor, memory.values, ruleset, has_links=True)
        assert result is not None
        controlling = {entry.id for entry in result.controlling}
        assert controlling == definitions.closure([anchor], above) & active, anchor


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
    stream = [later(statement, due) for statement in SHAPES[shape]]
    first = end_of(stream, RULESET, waits=True)
    for order in permutations(stream):
        assert end_of(order, RULESET, waits=True) == first, order


def later(statement: Statement, due: int) -> Statement:
    """Return a statement that takes effect after the stream has ended if its time is at least `due`."""
    if isinstance(statement, Retraction) or statement.time < due:
        return statement
    return replace(statement, time=EARLY * 2 + statement.time)


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
    """Return the first statement of each id and revision. Retractions without a revision depend on the order."""
    known: dict[tuple[str, int | None, bool], Statement] = {}
    for statement in stream:
        if statement.revision is not None:
            known.setdefault((statement.id, statement.revision, isinstance(statement, Retraction)), statement)
    return list(known.values())


@pytest.mark.parametrize("number", [LISTED_MAX, LISTED_MAX + 1, 400])
@pytest.mark.parametrize("differing", [False, True], ids=["by time", "by value"])
def test_many_members_change_as_one_run_that_replays_to_the_frontier(number: int, differing: bool) -> None:
    kind = "fact" if differing else "claim"
    crowd: list[Statement] = [
        document(f"n{n}", kind, n % 50, order=n, v=1 if differing else None, x="1") for n in range(number)
    ]
    ender = "fact" if differing else "denial"
    ending: list[Statement] = [
        document("end", ender, 100, v=9, x="1"),
        document("end", ender, 25, 2, v=9, x="1"),
        document("end", ender, 70, 3, v=1, x="1"),
        retraction("end", 3),
        document("end", ender, 80, 4, v=9, x="1"),
        document("end", ender, 80, 5, v=9, x="2"),
    ]
    memory = Memory(Fold(RULESET, future="apply"))
    replay = Replay(memory)
    corpus: dict[str, Document] = {}
    for offset, statement in enumerate([*crowd, *ending]):
        for change in memory.feed(statement).changes:
            replay.apply(change)
            named = [*change.left, *change.entered]
            assert max((sum(m.type == t for m in named) for t in ("claim", "fact")), default=0) <= LISTED_MAX + 1
        if offset >= number:
            corpus = definitions.current_documents([*crowd, *ending[: offset - number + 1]])
            expected = {(name, corpus[name].revision) for name in definitions.frontier("x=1", corpus, RULESET)}
            assert replay.frontiers["x=1"] == expected == memory.frontier("x=1")
    assert (replay.runs > 0) == (number > LISTED_MAX)
