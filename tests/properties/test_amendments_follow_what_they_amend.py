"""A document ends an amendment that follows exactly if it is later and would void what the amendment can amend."""

from collections.abc import Sequence
from itertools import product
from random import Random

import pytest
from msgspec.structs import replace

from stream_car.core import definitions
from stream_car.core.documents import Document
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.rule_packs.weaknesses import outlived
from tests.support.streams import TYPES

KEY_SETS = (("x",), ("x", "y"), ("record",))


def _rules(random: Random) -> list[Rule]:
    """Return rules of which none says that a type amends one that it would have to void, too."""
    rules: dict[tuple[str, str, tuple[str, ...]], Rule] = {}
    for _ in range(random.randint(4, 9)):
        new, old, keys = random.choice(TYPES), random.choice(TYPES), random.choice(KEY_SETS)
        rules[new, old, keys] = Rule(
            name=f"{new}-{old}-{keys}", superseding_type=new, superseded_type=old, scope_keys=keys
        )
    for _ in range(random.randint(1, 3)):
        new, old, keys = random.choice("ef"), random.choice((*TYPES, "e")), random.choice(KEY_SETS)
        follows = random.random() < 0.8
        rules[new, old, keys] = Rule(
            name=f"{new}-{old}-{keys}",
            superseding_type=new,
            superseded_type=old,
            scope_keys=keys,
            effect="amend",
            follows=follows,
        )
    return list(rules.values())


def _document(random: Random, number: int) -> Document:
    maps = [
        {
            "x": tuple(random.sample("12", random.choice((1, 2)))),
            "y": (random.choice("12"),),
            "record": (random.choice("12"),),
        }
        for _ in range(random.choice((1, 1, 2)))
    ]
    kind = random.choice((*TYPES, "e", "f"))
    return Document(id=f"n{number}", type=kind, time=random.randrange(6), scope=tuple(maps))


def _ends(later: Document, amendment: Document, rules: list[Rule], stated: Ruleset) -> bool:
    """Return whether `later` voids something that the amendment can amend, or ends it in turn."""
    if later.precedence <= amendment.precedence:
        return False
    for rule in rules:
        if rule.follows and rule.superseding_type == amendment.type:
            scope = tuple({key: part[key] for key in rule.scope_keys if key in part} for part in amendment.scope)
            base = replace(amendment, id="base", type=rule.superseded_type, scope=scope)
            if definitions.voids(later=later, earlier=base, ruleset=stated):
                return True
            if rule.superseded_type != amendment.type and _ends(later, base, rules, stated):
                return True
    return False


@pytest.mark.parametrize("block", range(4))
def test_an_amendment_ends_exactly_with_what_it_can_amend(block: int) -> None:
    ended = 0
    for seed in range(60):
        random = Random(f"{block}/{seed}")
        rules = _rules(random)
        types = (*TYPES, "e", "f")
        all_rules = Ruleset([RulePack(name="all", types=types, rules=tuple(rules))])
        stated = Ruleset([RulePack(name="all", types=types, rules=tuple(replace(r, follows=None) for r in rules))])
        documents = [_document(random, number) for number in range(12)]
        for later in documents:
            for earlier in documents:
                direct = definitions.voids(later=later, earlier=earlier, ruleset=stated) is not None
                by_its_base = later is not earlier and _ends(later, earlier, rules, stated)
                voids = definitions.voids(later=later, earlier=earlier, ruleset=all_rules) is not None
                assert voids == (direct or by_its_base), (rules, later, earlier)
                ended += by_its_base and not direct

    assert ended > 50


VALUES = ((), ("1",), ("2",))


def _with_values(kind: str, day: int, values: Sequence[tuple[str, ...]]) -> Document:
    scope = {key: value for key, value in zip(("x", "y", "record"), values, strict=True) if value}
    return Document(id=f"{kind}{day}", type=kind, time=day, scope=(scope,))


def _may_outlive(amendment: Rule, ending: Rule, ruleset: Ruleset) -> bool:
    """Return whether there are a base, an amendment and a later document that ends by this rule only the base."""
    base = _with_values(amendment.superseded_type, 1, [("1",)] * 3)
    for own in product(VALUES, repeat=3):
        amending = _with_values(amendment.superseding_type, 2, own)
        if not definitions.shared_scopes(amending, base, amendment.scope_keys, ruleset):
            continue
        for others in product(VALUES, repeat=3):
            later = _with_values(ending.superseding_type, 3, others)
            ends_base = definitions.shared_scopes(later, base, ending.scope_keys, ruleset)
            if ends_base and definitions.voids(later=later, earlier=amending, ruleset=ruleset) is None:
                return True
    return False


def test_the_rules_that_an_amendment_outlives_are_exactly_those_that_are_warned_of() -> None:
    warned = 0
    for seed in range(40):
        ruleset = Ruleset([RulePack(name="all", types=(*TYPES, "e", "f"), rules=tuple(_rules(Random(seed))))])
        voiding = [rule for rule in ruleset.rules.values() if rule.effect == "supersede"]
        meant = {(rule.superseding_type, rule.superseded_type, rule.scope_keys) for rule in voiding}
        for amendment in (rule for rule in ruleset.rules.values() if rule.effect == "amend"):
            for ending in (rule for rule in voiding if rule.superseded_type == amendment.superseded_type):
                if (ending.superseding_type, amendment.superseding_type, ending.scope_keys) in meant:
                    continue
                is_warned = ending in outlived(amendment, voiding)
                assert is_warned == _may_outlive(amendment, ending, ruleset), (seed, amendment, ending)
                warned += is_warned

    assert warned > 20
