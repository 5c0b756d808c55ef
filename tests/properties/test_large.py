"""Very many members, scopes, links and rings: what is written stays small, and the time linear."""

from collections.abc import Iterable, Iterator
from random import Random
from time import process_time

import pytest

from benchmarks.speed.event_stream import mixed
from benchmarks.speed.shard import active_members, apply, compliance_fold
from stream_car.core import definitions
from stream_car.core.changes import Cause
from stream_car.core.documents import Document
from stream_car.core.frontier import place
from stream_car.core.revisions import Placement
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.core.stored import EditablePages, Entry, Scope
from stream_car.core.timeline import all_members, size
from stream_car.core.walk import WalkResult
from stream_car.processing.fold import Fold
from stream_car.processing.state import encode_value
from tests.support.memory_shard import Memory
from tests.support.walks import walk

WRITTEN_MAX = 64 << 10
slow = pytest.mark.slow
RULESET = Ruleset(
    [
        RulePack(
            name="large",
            types=("advisory", "patch"),
            rules=(
                Rule(name="patched", superseding_type="patch", superseded_type="advisory", scope_keys=("package",)),
                Rule(name="edited", superseding_type="advisory", superseded_type="advisory", scope_keys=("record",)),
            ),
        )
    ]
)


def times(number: int, order: str) -> Iterable[int]:
    every = list(range(number))
    if order == "shuffled":
        Random(1).shuffle(every)
    return every


def member(time: int, offset: int) -> Entry:
    named = f"GHSA-{time:09d}-abcd-2024"
    return Entry(named, 1, "advisory", 1_700_000_000_000_000 + time, 0, offset, 1_700_000_000_000_000 + offset)


def written(scope: Scope, pages: EditablePages, keys: Iterable[bytes]) -> int:
    """The bytes of a commit: the header, and the pages that were touched and are still there."""
    return sum(len(encode_value(pages.get(key)) or b"") for key in keys) + len(encode_value(scope) or b"")


@pytest.mark.parametrize("order", ["in order", "shuffled"])
@pytest.mark.parametrize("number", [100_000, pytest.param(1_000_000, marks=slow)])
def test_an_insertion_into_a_hot_scope_writes_at_most_64_kib(number: int, order: str) -> None:
    scope, pages = Scope("package=linux"), dict[bytes, list[Entry]]()
    worst = 0
    for offset, time in enumerate(times(number, order)):
        entry = member(time, offset)
        cause = Cause(id=entry.id, revision=1)
        placement = Placement(scope=scope.name, id=entry.id, entry=entry, old=None, cause=cause, offset=offset)
        _, touched = place(scope, pages, placement, RULESET)
        if not offset % 499 or offset > number - 500:
            worst = max(worst, written(scope, pages, touched))
    assert size(scope) == number
    assert sum(1 for _ in all_members(scope, pages)) == number
    assert worst <= WRITTEN_MAX


def advisory(number: int, **more: tuple[str, ...]) -> Document:
    return Document(id=f"n{number}", type="advisory", time=number, **more)  # type: ignore[arg-type]


def ring(number: int) -> Iterator[Document]:
    for n in range(number):
        yield advisory(n, supersedes=(f"n{(n + 1) % number}",))


def link_chain(number: int) -> Iterator[Document]:
    for n in range(number):
        yield advisory(n, supersedes=(f"n{n - 1}",) if n else ())


def rule_chain(number: int) -> Iterator[Document]:
    for n in range(number):
        yield Document(id=f"n{n}", type="advisory", time=n, scope=({"record": ("r",)},))


def walked(documents: Iterable[Document], anchor: str) -> tuple[WalkResult, float]:
    """Return the walk from an anchor, and the seconds that it takes."""
    memory = Memory(Fold(RULESET, future="apply"))
    for document in documents:
        memory.feed(document)
    begin = process_time()
    result, _ = walk(anchor, memory.values, RULESET, has_links=True)
    assert result is not None
    return result, process_time() - begin


@pytest.mark.parametrize("number", [3, 1000])
def test_every_member_of_a_ring_is_void_and_named(number: int) -> None:
    result, _ = walked(ring(number), f"n{number // 2}")

    assert result.controlling == []
    assert sorted(result.cycle) == sorted(f"n{n}" for n in range(number))
    assert not result.next


@pytest.mark.parametrize("number", [10_000, pytest.param(100_000, marks=slow)])
def test_a_long_chain_of_links_leads_to_its_end(number: int) -> None:
    result, _ = walked(link_chain(number), "n0")

    assert [entry.id for entry in result.controlling] == [f"n{number - 1}"]
    assert len(result.path(f"n{number - 1}")) == number - 1
    assert (result.cycle, result.next) == ((), ())


@pytest.mark.parametrize("number", [10_000, pytest.param(100_000, marks=slow)])
def test_a_long_chain_in_one_scope_leads_to_its_end_in_one_step(number: int) -> None:
    result, _ = walked(rule_chain(number), "n0")

    assert [entry.id for entry in result.controlling] == [f"n{number - 1}"]
    assert result.path(f"n{number - 1}") == ((f"n{number - 1}", "edited", "record=r"),)


def patched(number: int) -> Iterator[Document]:
    """Yield an advisory, and this number of later patches, all of them in force."""
    scope = ({"package": ("linux",)},)
    yield Document(id="flaw", type="advisory", time=0, scope=scope)
    for n in range(number):
        yield Document(id=f"n{n}", type="patch", time=n + 1, scope=scope)


@pytest.mark.parametrize("number", [1_500, 10_000])
@pytest.mark.parametrize("as_of", [None, 1_200])
def test_of_very_many_controlling_documents_the_latest_are_named_and_all_are_counted(
    number: int, as_of: int | None
) -> None:
    memory = Memory(Fold(RULESET, future="apply"))
    for document in patched(number):
        memory.feed(document)

    result, _ = walk("flaw", memory.values, RULESET, as_of, has_links=False)

    assert result is not None
    count = number if as_of is None else as_of
    assert len(result.controlling) + result.controlling_more == count
    assert [entry.time for entry in result.controlling[:1000]] == list(range(count, count - 1000, -1))
    assert len(result.controlling) < 2_100


@slow
@pytest.mark.parametrize("shape", [ring, link_chain])
def test_the_time_of_a_walk_along_links_is_linear(shape: object) -> None:
    assert callable(shape)
    small, large = (min(walked(shape(number), "n0")[1] for _ in range(3)) for number in (2_000, 20_000))

    assert large <= 20 * small


def scattered(first: int, number: int, scopes: int) -> Iterator[Document]:
    for n in range(first, first + number):
        kind = "patch" if n % 3 == 2 else "advisory"
        yield Document(id=f"d{n}", type=kind, time=n, scope=({"package": (f"p{n % scopes}",)},))


def p99_of_applying(scopes: int) -> float:
    """Microseconds, when so many scopes are there already: the best of a few hundred documents at a time."""
    memory = Memory(Fold(RULESET, future="apply"))
    for document in scattered(0, scopes, scopes):
        memory.feed(document)
    result = []
    for block in range(10):
        took = []
        for document in scattered(scopes + block * 1000, 1000, scopes):
            begin = process_time()
            memory.feed(document)
            took.append(process_time() - begin)
        result.append(sorted(took)[989] * 1e6)
    return min(result)


@slow
@pytest.mark.parametrize("scopes", [100_000, 1_000_000])
def test_very_many_scopes_are_applied_as_fast_as_few(scopes: int) -> None:
    assert p99_of_applying(scopes) <= 2 * p99_of_applying(1000)


@slow
def test_a_stream_of_a_million_ends_with_the_frontiers_of_the_definition() -> None:
    fold, arrivals = compliance_fold(), mixed(1_000_000)
    memory = Memory(fold)
    apply(fold, memory.values, arrivals)
    by_scope: dict[str, dict[str, Document]] = {}
    for document in definitions.current_documents(arrival.statement for arrival in arrivals).values():
        for scope in fold.ruleset.scopes(document):
            by_scope.setdefault(scope, {})[document.id] = document
    small = {scope: corpus for scope, corpus in by_scope.items() if len(corpus) <= 200}
    assert len(small) > 100_000
    assert len(by_scope) - len(small) <= 1  # policies are for everyone
    expected = {
        (scope, name) for scope, corpus in small.items() for name in definitions.frontier(scope, corpus, fold.ruleset)
    }
    assert {(scope, name) for scope, name in active_members(fold, memory.values) if scope in small} == expected
