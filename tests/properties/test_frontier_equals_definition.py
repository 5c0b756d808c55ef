"""After any prefix of any stream the frontiers, and what the changes tell of them, equal the definition."""

from random import Random

import pytest

from stream_car.core import definitions, frontier, pages
from stream_car.core.documents import Document
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import amended_scope
from stream_car.core.stored import LOWEST
from stream_car.core.thresholds import holds, threshold_of
from stream_car.core.timeline import members_between, types
from stream_car.processing.fold import Fold
from tests.support.frontier_replay import Replay
from tests.support.memory_shard import Memory
from tests.support.streams import random_rules, random_stream, remember_the_oracle


def frontier_of(memory: Memory, name: str, ruleset: Ruleset, as_of: int | None = None) -> set[tuple[str, int]]:
    scope = memory.values.scopes.get(name)
    if scope is None:
        return set()
    found = set()
    for kind in types(scope):
        bearing = ruleset.type_rules(name, kind)
        bar = threshold_of(scope, memory.values.pages, bearing, ruleset, up_to=as_of)
        for entry in members_between(scope, memory.values.pages, kind, LOWEST, None):
            if (as_of is None or entry.time <= as_of) and holds(entry, bar, bearing):
                found.add((entry.id, entry.revision))
    return found


def check_stream(seed: int, steps: int) -> int:
    """How many runs were told, in a stream of so many statements."""
    random = Random(seed)
    ruleset = random_rules(random)
    stream = random_stream(random, steps)
    memory = Memory(Fold(ruleset, future="apply"))
    told = Replay(memory)
    corpus: dict[str, Document] = {}
    scopes: set[str] = set()
    for step, said in enumerate(stream):
        effects = memory.feed(said)
        corpus = definitions.current_documents(stream[: step + 1])
        scopes |= {s for d in corpus.values() for s in (*ruleset.scopes(d), *map(amended_scope, d.amends))}
        assert len({change.scope for change in effects.changes}) == len(effects.changes), (seed, step)
        for change in effects.changes:
            told.hear(change)
        for scope in scopes:
            expected = {(m, corpus[m].revision) for m in definitions.frontier(scope, corpus, ruleset)}
            assert told.frontiers.get(scope, set()) == expected, (seed, step, scope)
            assert frontier_of(memory, scope, ruleset) == expected, (seed, step, scope)
    for scope in scopes:
        for as_of in (2, 5, 9):
            expected = {(m, corpus[m].revision) for m in definitions.frontier(scope, corpus, ruleset, as_of)}
            assert frontier_of(memory, scope, ruleset, as_of) == expected, (seed, scope, as_of)
    return told.runs


@pytest.fixture(autouse=True)
def affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    remember_the_oracle(monkeypatch.setattr)


@pytest.mark.parametrize("block", range(20))
def test_frontiers_and_changes_equal_the_definition_after_every_step(block: int) -> None:
    assert [check_stream(seed, 50) for seed in range(block * 100, block * 100 + 100)] == [0] * 100


@pytest.mark.parametrize("block", range(5))
@pytest.mark.parametrize("small", [(2, 4, 128), (1, 2, 2)], ids=["pages", "folders"])
def test_they_do_so_when_scopes_are_kept_in_small_pages_and_folders(
    small: tuple[int, int, int], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in zip(("INLINE_MAX", "PAGE_MAX", "FOLDER_MAX"), small, strict=True):
        monkeypatch.setattr(pages, name, most)
    assert [check_stream(seed, 60) for seed in range(10_000 + block * 40, 10_000 + block * 40 + 40)] == [0] * 40


@pytest.mark.parametrize("small", [64, 2], ids=["lists", "pages"])
def test_they_do_so_when_members_are_told_as_runs(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "INLINE_MAX", small)
    monkeypatch.setattr(pages, "PAGE_MAX", small * 2)
    monkeypatch.setattr(frontier, "LISTED_MAX", 0)
    assert sum(check_stream(seed, 60) for seed in range(15_000, 15_400)) > 500


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_a_million_operations_equal_the_definition_after_every_step(block: int) -> None:
    assert sum(check_stream(seed, 50) for seed in range(100_000 + block * 1000, 101_000 + block * 1000)) == 0
