"""What else could keep R1-R10 up to date: other engines given the same stream, and the definition itself.

Promise: all begin with decoded statements, and each ends with the members that hold, scope by scope,
so that a wrong rival cannot win. Where a rival's task is easier than the fold's, its module says so.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.speed.feed import Arrival
from stream_car.core.documents import Retraction
from stream_car.processing.fold import Fold

COMMIT = 100  # documents after which batching rivals must tell their changes
Held = set[tuple[str, str]]  # (scope, id)


class Row(NamedTuple):
    """A statement made ready: `rank` is `2 * revision + retracted`; no scope where none or retracted."""

    id: str
    rank: int
    scope: str
    type: str
    time: int


class Outcome(NamedTuple):
    """How long it took, what held at the end, and how many changes were told."""

    seconds: float
    held: Held
    changes: int


def rows(fold: Fold, arrivals: Sequence[Arrival]) -> Iterator[Row]:
    """The stream with its scopes, worked out as they are asked for; a document of this stream has at most one."""
    return (_row(fold, arrival) for arrival in arrivals)


def _row(fold: Fold, arrival: Arrival) -> Row:
    said = arrival.said
    if isinstance(said, Retraction):
        return Row(said.id, 2 * (said.revision or 0) + 1, "", "", 0)
    scopes = fold.scopes(said)
    return Row(said.id, 2 * said.revision, scopes[0] if scopes else "", said.type, said.time)


def rule_pairs(fold: Fold) -> list[tuple[str, str]]:
    """The rules as (superseding type, superseded type); a type of this pack has rules in one key set only."""
    return [(rule.superseding_type, rule.superseded_type) for rule in fold.ruleset.rules.values()]
