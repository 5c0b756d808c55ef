"""A small rule pack for tests, and variations of it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from stream_car.core.rule_pack import RulePack
from stream_car.errors import InvalidRules
from stream_car.rule_packs import load

GOOD = """
name = "news"
[types]
claim = "Something is claimed."
denial = "It is not so."
[keys.topic]
fold = "lower"
[[rules]]
name = "denial-voids-claim"
superseding = "denial"
superseded = "claim"
scope = ["topic"]
"""
POLICIES = """
name = "policies"

[types]
policy = "What holds in the company."
policy_amended = "A change of a policy."

[keys.policy]

[[rules]]
name = "policy-replaces-policy"
superseding = "policy"
superseded = "policy"
scope = ["policy"]

[[rules]]
name = "amended-amends-policy"
superseding = "policy_amended"
superseded = "policy"
scope = ["policy"]
effect = "amend"
"""
POLICIES_THAT_FOLLOW = POLICIES + "follows = true\n"


def written(tmp_path: Path, text: str, name: str = "news.toml") -> Path:
    """Write a rule pack, and return its path."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def wrong(*packs: str | Path) -> tuple[str, ...]:
    """Return the problems with which these packs are rejected."""
    with pytest.raises(InvalidRules) as caught:
        load(packs)
    return caught.value.problems


def without_words(pack: RulePack) -> RulePack:
    """Return a pack as releases before outcomes and states stored it."""
    rules = tuple(replace(rule, outcome="", material=()) for rule in pack.rules)
    return replace(pack, rules=rules, states={}, ending_states=())


def rule(name: str, superseding: str = "denial", superseded: str = "claim", more: str = "") -> str:
    """Return a rule as a pack spells it."""
    return (
        f'[[rules]]\nname = "{name}"\nsuperseding = "{superseding}"\nsuperseded = "{superseded}"\n'
        f'scope = ["topic"]\n{more}\n'
    )
