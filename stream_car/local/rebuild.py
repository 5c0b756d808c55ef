"""Other rules, built beside the old ones from the log, compared with them, and switched to in one step.

Promise: until `switch` returns, everything is as it was; whatever crashes at any point, the folder is wholly of the old
generation or wholly of the new one: one small file says which, and it is replaced at once. No answer mixes two
generations. Between steps, publishing and answering continue. Cost: the log is read and folded once.
"""

from asyncio import CancelledError
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice
from types import TracebackType

from msgspec.structs import replace

from stream_car.core.walk import WalkResult
from stream_car.errors import StreamCarError
from stream_car.local.generation import Generation
from stream_car.local.projection import Projection
from stream_car.local.run_sync import run_sync
from stream_car.processing.shard import BATCH_MAX
from stream_car.queries.answers import Difference, DocumentStatus, RebuildStatus, StatusCount, Step

COMPARE_MAX = 256  # documents compared in one step
DIFFERENCES_MAX = 1000  # differences that a status lists
STOPPED = "The rebuild was stopped; nothing has changed, begin again."


class NewGeneration:
    """A generation that is being built. Leave its context without `switch`, and nothing of it remains."""

    def __init__(
        self,
        projection: Projection,
        old: Projection,
        generation: Generation,
        switch: Callable[[Generation, Projection], None],
    ) -> None:
        self.projection = projection
        self.old = old
        self.generation = generation
        self.is_switched = False
        self._switch = switch
        try:
            projection.begin()
        except BaseException:
            projection.remove()
            raise

    @property
    def applied(self) -> int:
        """How many records of the log the new generation has applied."""
        return self.projection.next_offset

    @property
    def end(self) -> int:
        """How many records the log has by now."""
        return self.projection.end

    def step(self, limit: int = BATCH_MAX) -> int:
        """Apply up to `limit` records; how many there were. 0 means that it has caught up."""
        return len(self.projection.step(limit))

    def is_prepared(self) -> bool:
        """Whether the first question after the switch need not wait for the new index; ask again after a moment."""
        return self.projection.index.prepare()

    def differences(self) -> Iterator[Difference]:
        """Every document whose status is another under the new rules, in order of id."""
        return chain.from_iterable(self.compare(COMPARE_MAX))

    def compare(self, limit: int) -> Iterator[list[Difference]]:
        """The differences among the next `limit` documents, until all have been compared."""
        names = _merge(self.old.names(), self.projection.names())
        while batch := list(islice(names, limit)):
            yield self._differences(batch)

    def _differences(self, names: Sequence[str]) -> list[Difference]:
        differences = []
        pairs = zip(names, _statuses(self.old, names), _statuses(self.projection, names), strict=True)
        for name, (before, was_by), (after, is_by) in pairs:
            if before != after:
                why = is_by if after == "superseded" else was_by if before == "superseded" else ()
                differences.append(Difference(id=name, before=before, after=after, why=why))
        return differences

    def switch(self) -> None:
        """Catch up with what was published meanwhile, and answer by the new rules from now on."""
        while self.step():
            pass
        self._switch(self.generation, self.projection)
        self.is_switched = True

    def __enter__(self) -> "NewGeneration":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the generation that no longer answers. It waits for disks; another thread may do it."""
        (self.old if self.is_switched else self.projection).remove()


class RebuildRun:
    """The rebuild of a service, in steps small enough to share a thread. One at a time."""

    def __init__(self) -> None:
        self.status = RebuildStatus()
        self._rebuild: NewGeneration | None = None
        self._batches: Iterator[list[Difference]] = iter(())
        self._counts: Counter[tuple[DocumentStatus, DocumentStatus]] = Counter()
        self._listed: list[Difference] = []

    def begin(self, rebuild: NewGeneration, *, dry_run: bool) -> None:
        """Begin with the log's first record."""
        self._rebuild = rebuild
        self._counts.clear()
        self._listed.clear()
        self.status = RebuildStatus(state="building", dry_run=dry_run, end=rebuild.end)

    def build(self, limit: int = BATCH_MAX) -> bool:
        """Apply up to `limit` records; whether there are probably more. The switch applies the last few."""
        rebuild = self._running
        count = rebuild.step(limit)
        self.status = replace(self.status, applied=rebuild.applied, end=rebuild.end)
        return count == limit

    def is_prepared(self) -> bool:
        """Whether the switch need not wait for the index."""
        return self._running.is_prepared()

    def compare(self, limit: int = COMPARE_MAX) -> bool:
        """Compare up to `limit` documents; whether there are more."""
        if self.status.state == "building":
            self._batches = self._running.compare(limit)
            self.status = replace(self.status, state="comparing")
        batch = next(self._batches, None)
        if batch is None:
            return False
        self._counts.update((difference.before, difference.after) for difference in batch)
        self._listed += batch[: DIFFERENCES_MAX - len(self._listed)]
        return True

    def switch(self) -> None:
        """Answer by the new rules from now on."""
        self._running.switch()

    def finish(self, error: BaseException | None = None) -> None:
        """Remove the generation that no longer answers, and report how it ended. Another thread may do it."""
        rebuild, self._rebuild = self._running, None
        ended = self._ended(rebuild, error)
        try:
            rebuild.close()
        finally:
            self.status = ended

    def stop(self) -> None:
        """Abandon the rebuild if one is running; nothing of it remains."""
        if self.status.is_running:
            self.finish(CancelledError())

    def _ended(self, rebuild: NewGeneration, error: BaseException | None) -> RebuildStatus:
        if error is not None:
            is_known = isinstance(error, StreamCarError | OSError)
            detail = str(error) if is_known else repr(error) if isinstance(error, Exception) else STOPPED
            return replace(self.status, state="failed", detail=detail)
        if not self.status.dry_run:
            return replace(self.status, state="switched", applied=rebuild.applied, end=rebuild.end)
        counts = (
            StatusCount(before=before, after=after, documents=count)
            for (before, after), count in self._counts.most_common()
        )
        return replace(self.status, state="compared", counts=tuple(counts), differences=tuple(self._listed))

    @property
    def _running(self) -> NewGeneration:
        assert self._rebuild is not None
        return self._rebuild


def _merge(*sources: Iterator[str]) -> Iterator[str]:
    """The names of sorted sources, each once, sorted."""
    last: str | None = None
    for name in merge(*sources):
        if name != last:
            yield name
        last = name


def _statuses(projection: Projection, names: Sequence[str]) -> list[tuple[DocumentStatus, tuple[Step, ...]]]:
    """The status of each document, and what supersedes it."""
    walks = run_sync(projection.walks(names))
    return [_status(projection, name, walk) for name, walk in zip(names, walks, strict=True)]


def _status(projection: Projection, name: str, walk: WalkResult | None) -> tuple[DocumentStatus, tuple[Step, ...]]:
    if walk is None:
        stored = projection.stored(name)
        return ("pending" if stored is not None and stored.pending is not None else "unknown"), ()
    if walk.is_active:
        return "in_force", ()
    steps = tuple(Step(id=other, rule=rule, scope=scope) for other, rule, scope in walk.superseded_by)
    return "superseded", steps or tuple(Step(id=other, rule="link", scope=f"document={name}") for other in walk.missing)
