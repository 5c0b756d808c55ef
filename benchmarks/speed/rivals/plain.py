"""The two extremes: a plain dictionary, and the definition recomputed after every document."""

from collections.abc import Sequence
from time import perf_counter

from benchmarks.speed.event_stream import Arrival
from benchmarks.speed.rivals import Members, Outcome
from stream_car.core import definitions
from stream_car.core.documents import Document, Statement
from stream_car.processing.fold import Fold


def dictionary(arrivals: Sequence[Arrival]) -> dict[str, Statement]:
    """Store every statement under its id."""
    statements: dict[str, Statement] = {}
    for arrival in arrivals:
        statement = arrival.statement
        statements[statement.id] = statement
    return statements


def definition(fold: Fold, arrivals: Sequence[Arrival]) -> Outcome:
    """Recompute from the definition, after every document, the frontiers that it may have changed: quadratic."""
    ruleset = fold.ruleset
    statements: list[Statement] = []
    corpus: dict[str, Document] = {}
    frontiers: dict[str, set[str]] = {}
    changes = 0
    begin = perf_counter()
    for arrival in arrivals:
        name = arrival.statement.id
        statements.append(arrival.statement)
        before, corpus = corpus, definitions.current_documents(statements)
        versions = [documents[name] for documents in (before, corpus) if name in documents]
        for scope in {scope for version in versions for scope in ruleset.scopes(version)}:
            frontier = definitions.frontier(scope, corpus, ruleset)
            changes += frontier != frontiers.get(scope, set())
            frontiers[scope] = frontier
    seconds = perf_counter() - begin
    members: Members = {(scope, name) for scope, names in frontiers.items() for name in names}
    return Outcome(seconds, members, changes)
