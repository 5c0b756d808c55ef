"""A shard in memory: the real fold over a plain dictionary."""

from collections.abc import Generator

import msgspec

from stream_car.core.changes import FrontierChange
from stream_car.core.documents import Document, Statement
from stream_car.core.revisions import Input
from stream_car.core.stored import LOWEST
from stream_car.core.thresholds import no_rule_supersedes, threshold_of
from stream_car.core.timeline import members_between, types
from stream_car.errors import InvalidDocument
from stream_car.processing.effects import Effects
from stream_car.processing.fold import Fold
from stream_car.processing.state import State


class Memory:
    """Applies statements, and keeps state, documents and changes."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.values = State()
        self.offset = 0
        self.changes: list[FrontierChange] = []
        self.bodies: dict[str, Document] = {}

    def feed(self, statement: Statement | None, append_time: int | None = None) -> Effects:
        """Apply one statement, or a tick (`None`); keys that the fold reads are new."""
        scopes: tuple[str, ...] = ()
        digest = b""
        content: Statement | InvalidDocument | None = statement
        if isinstance(statement, Document):
            digest = msgspec.json.encode(statement, order="sorted")
            try:
                scopes = self.fold.scopes(statement)
            except InvalidDocument as error:
                content = error
        at = Input(self.offset, append_time if append_time is not None else 1 << 50, digest)
        steps = self.fold.step(self.values, content, scopes, at)
        effects = self.run(steps)
        self.offset += 1
        self.changes += effects.changes
        return effects

    def run(self, steps: Generator[list[bytes], None, Effects]) -> Effects:
        """Run a step of the fold; every key that it reads is new, since nothing is ever evicted."""
        while True:
            try:
                keys = next(steps)
            except StopIteration as stop:
                effects: Effects = stop.value
                return effects
            for key in keys:
                assert key not in self.values, key
                self.values[key] = None

    def frontier(self, name: str, as_of: int | None = None) -> set[tuple[str, int]]:
        """Return the members of a scope that reach their threshold, with their revisions."""
        scope = self.values.scopes.get(name)
        if scope is None:
            return set()
        ruleset, stored = self.fold.ruleset, self.values.pages
        frontier = set()
        for kind in types(scope):
            type_rules = ruleset.type_rules(name, kind)
            threshold = threshold_of(scope, stored, type_rules, ruleset, up_to=as_of)
            for entry in members_between(scope, stored, kind, LOWEST, None):
                if (as_of is None or entry.time <= as_of) and no_rule_supersedes(entry, threshold, type_rules):
                    frontier.add((entry.id, entry.revision))
        return frontier
