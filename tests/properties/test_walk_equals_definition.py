"""Stage 2 gives the active part of `cl({anchor})`, with a path that the definition accepts step by step."""

from collections.abc import Mapping
from random import Random

import pytest

from stream_car.core import definitions, pages
from stream_car.core.amendments import Amenders, amenders
from stream_car.core.documents import Document
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.walk import Walk, WalkResult
from stream_car.processing.fold import Fold
from stream_car.processing.headers import Header
from stream_car.processing.state import HEADER, Value
from tests.support.memory_shard import Memory
from tests.support.streams import random_rules, random_stream, remember_the_oracle


def walk(
    anchor: str, values: Mapping[bytes, Value], ruleset: Ruleset, as_of: int | None, *, has_links: bool
) -> tuple[WalkResult | None, int]:
    mine: dict[bytes, object] = {}
    steps = Walk(anchor, mine, ruleset, has_links=has_links, as_of=as_of).run()
    rounds = 0
    while True:
        try:
            keys = next(steps)
        except StopIteration as stop:
            found: WalkResult | None = stop.value
            return found, rounds
        assert keys
        assert not any(key in mine for key in keys)
        mine.update((key, values.get(key)) for key in keys)
        rounds += 1


def amending(
    name: str, values: Mapping[bytes, Value], ruleset: Ruleset, as_of: int | None, *, has_links: bool
) -> Amenders:
    mine: dict[bytes, object] = {}
    steps = amenders(name, mine, ruleset, has_links=has_links, as_of=as_of)
    while True:
        try:
            keys = next(steps)
        except StopIteration as stop:
            found: Amenders = stop.value
            return found
        assert keys
        assert not any(key in mine for key in keys)
        mine.update((key, values.get(key)) for key in keys)


def check_amenders(found: Amenders, name: str, here: dict[str, Document], ruleset: Ruleset) -> None:
    target = here[name]
    amending = {one.id for one in here.values() if definitions.amends(later=one, earlier=target, ruleset=ruleset)}
    assert found.unnamed == 0
    assert found.named.keys() == amending
    for one in found.named.values():
        if one.rule == "link":
            assert set(here[one.id].amends) & {name, *target.records}
        else:
            rule = ruleset.rules[one.rule]
            assert (rule.effect, rule.superseded_type) == ("amend", target.type)
            assert one.scope in definitions.shared_scopes(here[one.id], target, rule.scope_keys, ruleset)


def check_paths(found: WalkResult, corpus: dict[str, Document], ruleset: Ruleset) -> None:
    for target in (entry.id for entry in found.controlling):
        at = found.anchor
        for name, rule, _ in found.path(target):
            reason = definitions.voids(later=corpus[name], earlier=corpus[at], ruleset=ruleset)
            assert reason is not None, (at, name, rule)
            at = name
        assert at == target


def check_seed(seed: int, steps: int) -> int:
    random = Random(seed)
    ruleset = random_rules(random)
    stream = random_stream(random, steps, links=random.choice((0.0, 0.0, 0.15, 0.4)))
    memory = Memory(Fold(ruleset, future="apply"))
    for said in stream:
        memory.feed(said)
    corpus = definitions.current_documents(stream)
    header = memory.values[HEADER]
    assert isinstance(header, Header)
    checked = 0
    for as_of in (None, random.randrange(12)):
        here = definitions.in_effect(corpus, as_of)
        above = definitions.superseders(here, ruleset)
        standing = definitions.active(corpus, ruleset, as_of)
        for anchor in corpus:
            found, _ = walk(anchor, memory.values, ruleset, as_of, has_links=bool(header.links))
            if anchor not in here:
                assert found is None
                continue
            assert found is not None
            expected = definitions.closure([anchor], above) & standing
            assert {entry.id for entry in found.controlling} == expected, (seed, anchor, as_of)
            assert found.is_active == (anchor in standing), (seed, anchor, as_of)
            assert found.closure == definitions.closure([anchor], above), (seed, anchor, as_of)
            looped = {m for m in definitions.closure([anchor], above) if m in above[m]}
            assert set(found.cycle) == looped, (seed, anchor, as_of)
            check_paths(found, corpus, ruleset)
            direct = amending(anchor, memory.values, ruleset, as_of, has_links=bool(header.links))
            check_amenders(direct, anchor, here, ruleset)
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
    for name, most in zip(("INLINE_MAX", "PAGE_MAX", "FOLDER_MAX"), small, strict=True):
        monkeypatch.setattr(pages, name, most)
    checked = sum(check_seed(seed, 60) for seed in range(20_000, 20_150))
    assert checked > 1000


def test_an_anchor_that_is_not_there_has_no_walk() -> None:
    found, rounds = walk("nobody", {document_key("nobody"): None}, random_rules(Random(1)), None, has_links=False)
    assert found is None
    assert rounds == 1
