"""Stage 2 gives the active part of `cl({anchor})`, with a path that the definition accepts step by step."""

from random import Random

import pytest

from stream_car.core import definitions, pages
from stream_car.core.amendments import Amenders
from stream_car.core.documents import Document
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.walk import WalkResult
from stream_car.processing.fold import Fold
from stream_car.processing.headers import Header
from stream_car.processing.state import HEADER
from tests.support.memory_shard import Memory
from tests.support.streams import random_rules, random_stream, remember_the_oracle
from tests.support.walks import find_amenders, walk


def check_amenders(result: Amenders, name: str, corpus: dict[str, Document], ruleset: Ruleset) -> None:
    target = corpus[name]
    expected = {d.id for d in corpus.values() if definitions.amends(later=d, earlier=target, ruleset=ruleset)}
    assert result.unnamed == 0
    assert result.named.keys() == expected
    for amender in result.named.values():
        if amender.rule == "link":
            assert set(corpus[amender.id].amends) & {name, *target.records}
        else:
            rule = ruleset.rules[amender.rule]
            assert (rule.effect, rule.superseded_type) == ("amend", target.type)
            assert amender.scope in definitions.shared_scopes(corpus[amender.id], target, rule.scope_keys, ruleset)


def check_paths(result: WalkResult, corpus: dict[str, Document], ruleset: Ruleset) -> None:
    for target in (entry.id for entry in result.controlling):
        last = result.anchor
        for name, rule, _ in result.path(target):
            reason = definitions.voids(later=corpus[name], earlier=corpus[last], ruleset=ruleset)
            assert reason is not None, (last, name, rule)
            last = name
        assert last == target


def check_seed(seed: int, steps: int) -> int:
    """Compare the walk from every document of a random stream with the definition; return how many there were."""
    random = Random(seed)
    ruleset = random_rules(random)
    stream = random_stream(random, steps, links=random.choice((0.0, 0.0, 0.15, 0.4)))
    memory = Memory(Fold(ruleset, future="apply"))
    for statement in stream:
        memory.feed(statement)
    corpus = definitions.current_documents(stream)
    header = memory.values[HEADER]
    assert isinstance(header, Header)
    has_links = bool(header.links)
    checked = 0
    for as_of in (None, random.randrange(12)):
        effective = definitions.in_effect(corpus, as_of)
        above = definitions.superseders(effective, ruleset)
        active = definitions.active(corpus, ruleset, as_of)
        for anchor in corpus:
            result, _ = walk(anchor, memory.values, ruleset, as_of, has_links=has_links)
            if anchor not in effective:
                assert result is None
                continue
            assert result is not None
            closure = definitions.closure([anchor], above)
            assert {entry.id for entry in result.controlling} == closure & active, (seed, anchor, as_of)
            assert result.is_active == (anchor in active), (seed, anchor, as_of)
            assert result.closure == closure, (seed, anchor, as_of)
            assert set(result.cycle) == {member for member in closure if member in above[member]}, (seed, anchor, as_of)
            check_paths(result, corpus, ruleset)
            amenders = find_amenders(anchor, memory.values, ruleset, as_of, has_links=has_links)
            check_amenders(amenders, anchor, effective, ruleset)
            checked += 1
    return checked


@pytest.fixture(autouse=True)
def affordable(monkeypatch: pytest.MonkeyPatch) -> None:
    remember_the_oracle(monkeypatch.setattr)


@pytest.mark.parametrize("block", range(10))
def test_controlling_documents_paths_and_cycles_equal_the_definition(block: int) -> None:
    checked = sum(check_seed(seed, 50) for seed in range(block * 60, block * 60 + 60))
    assert checked > 500


@pytest.mark.parametrize("small", [(2, 4, 128), (1, 2, 2)], ids=["pages", "folders"])
def test_they_do_so_in_small_pages_and_folders(small: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in zip(("INLINE_MAX", "PAGE_MAX", "FOLDER_MAX"), small, strict=True):
        monkeypatch.setattr(pages, name, limit)
    checked = sum(check_seed(seed, 60) for seed in range(20_000, 20_150))
    assert checked > 1000


def test_an_unknown_anchor_has_no_walk() -> None:
    result, rounds = walk("nobody", {document_key("nobody"): None}, random_rules(Random(1)), has_links=False)
    assert result is None
    assert rounds == 1
