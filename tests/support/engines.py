"""A small domain, documents of it, a clock that stands still, and engines over them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from stream_car.core.documents import Document
from stream_car.core.rule_pack import Rule, RulePack
from stream_car.core.rules import Ruleset
from stream_car.local.engine import Engine
from stream_car.ports import Encoder
from stream_car.ranking.settings import SETTINGS, Settings

DAY = 86_400_000_000
NOW = 20_000 * DAY
TYPES = ("claim", "denial", "doubt", "note", "fact")


def rule(name: str, new: str, old: str, *keys: str, effect: Literal["supersede", "amend"] = "supersede") -> Rule:
    on = ("value",) if name == "other-value" else ()
    return Rule(name=name, superseding_type=new, superseded_type=old, scope_keys=keys, effect=effect, differ_on=on)


RULESET = Ruleset(
    [
        RulePack(
            name="talk",
            types=TYPES,
            rules=(
                rule("denial-voids-claim", "denial", "claim", "topic"),
                rule("doubt-voids-denial", "doubt", "denial", "topic"),
                rule("local-denial", "denial", "claim", "place", "topic"),
                rule("later-edition", "claim", "claim", "record"),
                rule("note-amends-claim", "note", "claim", "topic", effect="amend"),
                rule("other-value", "fact", "fact", "subject"),
            ),
        )
    ]
)
OTHER_RULESET = Ruleset([RulePack(name="talk", types=TYPES, rules=(rule("no-doubt", "denial", "claim", "topic"),))])


class StoppedClock:
    """Implements `ports.Clock`; it moves when it is told to."""

    def __init__(self, now: int = NOW) -> None:
        self.time = now

    def now(self) -> int:
        return self.time


def engine(
    path: Path | None = None,
    *,
    clock: StoppedClock | None = None,
    ruleset: Ruleset | None = RULESET,
    future: Literal["wait", "apply"] | None = None,
    ranking: Settings = SETTINGS,
    encoder: Encoder | None = None,
) -> Engine:
    """An engine with the small domain, whose time stands still."""
    return Engine(path, ruleset=ruleset, clock=clock or StoppedClock(), future=future, ranking=ranking, encoder=encoder)


def built(path: Path) -> Path:
    """Where a folder keeps what its first generation built."""
    return path / "built" / "1"


def document(
    name: str,
    kind: str = "claim",
    at: int = 0,
    *,
    order: int = 0,
    revision: int = 1,
    text: str = "",
    supersedes: tuple[str, ...] = (),
    superseded_by: tuple[str, ...] = (),
    amends: tuple[str, ...] = (),
    attributes: Mapping[str, object] | None = None,
    **scope: str,
) -> Document:
    """A document that took effect `at` days after the beginning of `NOW`'s year or so; scope by keyword."""
    return Document(
        id=name,
        type=kind,
        time=NOW - 1000 * DAY + at * DAY,
        order=order,
        revision=revision,
        scope=({key: (value,) for key, value in scope.items()},) if scope else (),
        supersedes=supersedes,
        superseded_by=superseded_by,
        amends=amends,
        attributes=attributes or {},
        title=name,
        text=text or f"{name} is about {' '.join(scope.values())}",
    )


def day(at: int) -> int:
    """When a document of that day takes effect."""
    return NOW - 1000 * DAY + at * DAY
