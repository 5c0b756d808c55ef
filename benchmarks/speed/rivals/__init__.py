"""Other engines that keep R1-R10 up to date on the same stream, and the definition itself.

Promise: all begin with decoded statements, and each returns the active members of every scope, so that a wrong rival
cannot win. If a rival's task is easier than the fold's, its module says so.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.speed.event_stream import Arrival
from stream_car.core.documents import Retraction
from stream_car.processing.fold import Fold

COMMIT = 100  # documents after which batching rivals must report their changes
Members = set[tuple[str, str]]  # (scope, id)


class Row(NamedTuple):
    """A prepared statement. `rank` is `2 * revision + retracted`; a retraction has no scope."""

    id: str
    rank: int
    scope: str
    type: str
    time: int


class Outcome(NamedTuple):
    """The time it took, the active members at the end, and the number of reported changes."""

    seconds: float
    members: Members
    changes: int


def rows(fold: Fold, arrivals: Sequence[Arrival]) -> Iterator[Row]:
    """Yield the stream with its scopes, computed lazily; a document of this stream has at most one."""
    return (_row(fold, arrival) for arrival in arrivals)


def _row(fold: Fold, arrival: Arrival) -> Row:
    statement = arrival.statement
    if isinstance(statement, Retraction):
        return Row(statement.id, 2 * (statement.revision or 0) + 1, "", "", 0)
    scopes = fold.scopes(statement)
    return Row(statement.id, 2 * statement.revision, scopes[0] if scopes else "", statement.type, statement.time)


def rule_pairs(fold: Fold) -> list[tuple[str, str]]:
    """Return the rules as (superseding type, superseded type). A type of this pack has rules for one key set only."""
    return [(rule.superseding_type, rule.superseded_type) for rule in fold.ruleset.rules.values()]
