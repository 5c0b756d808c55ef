"""After any prefix of any stream, the frontiers and the sum of their changes equal the definition."""

from random import Random

import pytest

from stream_car.core import definitions, frontier, pages
from stream_car.core.documents import Document
from stream_car.core.scope_names import amended_scope
from stream_car.processing.fold import Fold
from tests.support.frontier_replay import Replay
from tests.support.memory_shard import Memory
from tests.support.streams import random_rules, random_stream, remember_the_oracle


def check_stream(seed: int, steps: int) -> int:
    """Compare with the definition after every statement of a stream; return how many runs there were."""
    random = Random(seed)
    ruleset = random_rules(random)
    stream = random_stream(random, steps)
    memory = Memory(Fold(ruleset, future="apply"))
    replay = Replay(memory)
    corpus: dict[str, Document] = {}
    scopes: set[str] = set()
    for step, statement in enumerate(stream):
        effects = memory.feed(statement)
        corpus = definitions.current_documents(stream[: step + 1])
        scopes |= {s for d in corpus.values() for s in (*ruleset.scopes(d), *map(amended_scope, d.amends))}
        assert len({change.scope for change in effects.changes}) == len(effects.changes), (seed, step)
        for change in effects.changes:
            replay.apply(change)
        for scope in scopes:
            expected = {(m, corpus[m].revision) for m in definitions.frontier(scope, corpus, ruleset)}
            assert replay.frontiers.get(scope, set()) == expected, (seed, step, scope)
            assert memory.frontier(scope) == expected, (seed, step, scope)
    for scope in scopes:
        for as_of in (2, 5, 9):
            expected = {(m, corpus[m].revision) for m in definitions.frontier(scope, corpus, ruleset, as_of)}
            assert memory.frontier(scope, as_of) == expected, (seed, scope, as_of)
    return replay.runs


@pytest.fixture(autouse=True)
def affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    remember_the_oracle(monkeypatch.setattr)


@pytest.mark.parametrize("block", range(20))
def test_frontiers_and_changes_equal_the_definition_after_every_step(block: int) -> None:
    assert [check_stream(seed, 50) for seed in range(block * 100, block * 100 + 100)] == [0] * 100


@pytest.mark.parametrize("block", range(5))
@pytest.mark.parametrize("small", [(2, 4, 128), (1, 2, 2)], ids=["pages", "folders"])
def test_they_do_so_when_scopes_have_small_pages_and_folders(
    small: tuple[int, int, int], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, limit in zip(("INLINE_MAX", "PAGE_MAX", "FOLDER_MAX"), small, strict=True):
        monkeypatch.setattr(pages, name, limit)
    assert [check_stream(seed, 60) for seed in range(10_000 + block * 40, 10_000 + block * 40 + 40)] == [0] * 40


@pytest.mark.parametrize("small", [64, 2], ids=["lists", "pages"])
def test_they_do_so_when_members_change_as_runs(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "INLINE_MAX", small)
    monkeypatch.setattr(pages, "PAGE_MAX", small * 2)
    monkeypatch.setattr(frontier, "LISTED_MAX", 0)
    assert sum(check_stream(seed, 60) for seed in range(15_000, 15_400)) > 500


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_a_million_operations_equal_the_definition_after_every_step(block: int) -> None:
    assert sum(check_stream(seed, 50) for seed in range(100_000 + block * 1000, 101_000 + block * 1000)) == 0
