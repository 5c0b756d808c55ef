"""The floor and the ceiling: a bare dictionary, and the definition recomputed after every document."""

from collections.abc import Sequence
from time import perf_counter

from benchmarks.speed.feed import Arrival
from benchmarks.speed.rivals import Held, Outcome
from stream_car.core import definitions
from stream_car.core.documents import Document, Statement
from stream_car.processing.fold import Fold


def dictionary(arrivals: Sequence[Arrival]) -> dict[str, Statement]:
    """Every statement put under its id."""
    kept: dict[str, Statement] = {}
    for arrival in arrivals:
        said = arrival.said
        kept[said.id] = said
    return kept


def definition(fold: Fold, arrivals: Sequence[Arrival]) -> Outcome:
    """After every document the frontiers that it may have changed, from the definition: quadratic."""
    ruleset = fold.ruleset
    told: list[Statement] = []
    corpus: dict[str, Document] = {}
    frontiers: dict[str, set[str]] = {}
    changes = 0
    begin = perf_counter()
    for arrival in arrivals:
        said = arrival.said
        told.append(said)
        before = corpus
        corpus = definitions.current_documents(told)
        present = [stood for corpus_ in (before, corpus) if (stood := corpus_.get(said.id)) is not None]
        for scope in {scope for stood in present for scope in ruleset.scopes(stood)}:
            now = definitions.frontier(scope, corpus, ruleset)
            changes += now != frontiers.get(scope, set())
            frontiers[scope] = now
    took = perf_counter() - begin
    held: Held = {(scope, name) for scope, names in frontiers.items() for name in names}
    return Outcome(took, held, changes)
