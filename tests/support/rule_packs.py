"""A small rule pack for tests, and variations of it."""

from pathlib import Path

import pytest

from stream_car.errors import InvalidRules
from stream_car.rule_packs import load

GOOD = """
name = "news"
[types]
claim = "Something is said."
denial = "It is not so."
[keys.topic]
fold = "lower"
[[rules]]
name = "denial-voids-claim"
superseding = "denial"
superseded = "claim"
scope = ["topic"]
"""


def written(tmp_path: Path, text: str, name: str = "news.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def wrong(*packs: str | Path) -> tuple[str, ...]:
    with pytest.raises(InvalidRules) as caught:
        load(packs)
    return caught.value.problems


def rule(name: str, superseding: str = "denial", superseded: str = "claim", more: str = "") -> str:
    return (
        f'[[rules]]\nname = "{name}"\nsuperseding = "{superseding}"\nsuperseded = "{superseded}"\n'
        f'scope = ["topic"]\n{more}\n'
    )
