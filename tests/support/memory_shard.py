"""A shard in memory: the real fold over a plain dictionary, and the frontier that its changes tell of."""

from collections.abc import Generator

import msgspec

from stream_car.core.changes import FrontierChange
from stream_car.core.documents import Document, Statement
from stream_car.core.revisions import Input
from stream_car.errors import InvalidDocument
from stream_car.processing.effects import Effects
from stream_car.processing.fold import Fold
from stream_car.processing.state import State


class Memory:
    """Feeds statements to a fold, remembering state, documents and changes."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.values = State()
        self.offset = 0
        self.changes: list[FrontierChange] = []
        self.bodies: dict[str, Document] = {}

    def feed(self, said: Statement | None, append_time: int | None = None) -> Effects:
        """Apply one statement (`None`: a tick); keys that the fold asks for are new."""
        scopes: tuple[str, ...] = ()
        digest = b""
        given: Statement | InvalidDocument | None = said
        if isinstance(said, Document):
            digest = msgspec.json.encode(said, order="sorted")
            try:
                scopes = self.fold.scopes(said)
            except InvalidDocument as refused:
                given = refused
        at = Input(self.offset, append_time if append_time is not None else 1 << 50, digest)
        steps = self.fold.step(self.values, given, scopes, at)
        effects = self.run(steps)
        self.offset += 1
        self.changes += effects.changes
        return effects

    def run(self, steps: Generator[list[bytes], None, Effects]) -> Effects:
        """Answer every key with nothing, since all that was written is at hand."""
        while True:
            try:
                keys = next(steps)
            except StopIteration as stop:
                effects: Effects = stop.value
                return effects
            for key in keys:
                assert key not in self.values, key
                self.values[key] = None
