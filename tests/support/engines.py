"""A small rule pack, documents of its types, a clock that stands still, and engines over them."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

from stream_car.codec.times import from_micros
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
    """Implements `ports.Clock`. It moves only when a test sets `time`."""

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
    """Return an engine with the small rule pack, whose time stands still."""
    return Engine(path, ruleset=ruleset, clock=clock or StoppedClock(), future=future, ranking=ranking, encoder=encoder)


def built_folder(path: Path) -> Path:
    """Return the folder of what a data directory built first."""
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
    """Return a document that takes effect on day `at`, see `day`. Keywords that remain are its scope."""
    return Document(
        id=name,
        type=kind,
        time=day(at),
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
    """Return the time of a day in microseconds; day 1000 is `NOW`."""
    return NOW - 1000 * DAY + at * DAY


def on_day(at: int) -> datetime:
    """Return the same time as a `datetime`."""
    return from_micros(day(at))
