"""Another rule set, built beside the old one from the log, compared with it, and switched to in one step.

Promise: until `switch` returns everything is as it was, and whatever crashes at any point, the folder is
wholly of the old generation or wholly of the new: one small file says which, and it is replaced at once.
Nobody is answered from two generations. Drive `step` until it returns nothing; between steps the engine
goes on publishing and answering. Cost: the log is read and folded once.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from types import TracebackType

from stream_car.core.walk import WalkResult
from stream_car.local.generation import Generation
from stream_car.local.projection import Built
from stream_car.local.run_sync import at_once
from stream_car.processing.shard import BATCH_MAX
from stream_car.queries.answers import Difference, Stands, Step

COMPARED_AT_ONCE = 256


class Rebuild:
    """A generation on its way. Leave its context without `switch` and nothing of it remains."""

    def __init__(
        self, built: Built, old: Built, generation: Generation, switch: Callable[[Generation, Built], None]
    ) -> None:
        self.built = built
        self.old = old
        self.generation = generation
        self.is_switched = False
        self._switch = switch
        try:
            built.begin()
        except BaseException:
            built.remove()
            raise

    @property
    def applied(self) -> int:
        """How many records of the log the new generation has applied."""
        return self.built.next_offset

    @property
    def end(self) -> int:
        """How many records the log has by now."""
        return self.built.end

    def step(self, most: int = BATCH_MAX) -> int:
        """Apply up to so many records; how many there were. 0 means that it has caught up."""
        return len(self.built.step(most))

    def is_prepared(self) -> bool:
        """Whether the first question after the switch need not wait for the new index; ask again after a moment."""
        return self.built.index.prepare()

    def differences(self) -> Iterator[Difference]:
        """Every document that stands otherwise under the new rules, in order of id."""
        return chain.from_iterable(self.compared(COMPARED_AT_ONCE))

    def compared(self, at_once: int) -> Iterator[list[Difference]]:
        """The differences among the next so many documents, until all have been looked at."""
        names = _merged(self.old.names(), self.built.names())
        while some := list(islice(names, at_once)):
            yield self._differences(some)

    def _differences(self, names: Sequence[str]) -> list[Difference]:
        found = []
        pairs = zip(names, _standings(self.old, names), _standings(self.built, names), strict=True)
        for name, (before, was_by), (after, is_by) in pairs:
            if before != after:
                why = is_by if after == "void" else was_by if before == "void" else ()
                found.append(Difference(id=name, before=before, after=after, why=why))
        return found

    def switch(self) -> None:
        """Catch up with what was published meanwhile, and answer by the new rules from now on."""
        while self.step():
            pass
        self._switch(self.generation, self.built)
        self.is_switched = True

    def __enter__(self) -> "Rebuild":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the generation that nobody is answered from. It waits for disks; another thread may do it."""
        (self.old if self.is_switched else self.built).remove()


def _merged(*sources: Iterator[str]) -> Iterator[str]:
    """The names of sorted sources, each once, sorted."""
    last: str | None = None
    for name in merge(*sources):
        if name != last:
            yield name
        last = name


def _standings(built: Built, names: Sequence[str]) -> list[tuple[Stands, tuple[Step, ...]]]:
    """How documents stand, and what voids them."""
    walks = at_once(built.walks(names))
    return [_standing(built, name, walk) for name, walk in zip(names, walks, strict=True)]


def _standing(built: Built, name: str, walk: WalkResult | None) -> tuple[Stands, tuple[Step, ...]]:
    if walk is None:
        held = built.held(name)
        return ("pending" if held is not None and held.pending is not None else "absent"), ()
    if walk.is_active:
        return "active", ()
    voiders = tuple(Step(id=one, rule=rule, scope=scope) for one, rule, scope in walk.superseded_by)
    return "void", voiders or tuple(Step(id=one, rule="link", scope=f"document={name}") for one in walk.missing)
