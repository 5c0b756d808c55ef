"""Where the time of a publish goes: a stopwatch around the stages of an engine.

Promise: the stages follow one another and none contains another; the remainder of the total is called "the rest". The
stopwatch itself costs about a microsecond per document.
"""

from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import ParamSpec, TypeVar

from benchmarks.speed.report import Figure
from stream_car.local import data_directory
from stream_car.local.engine import Engine
from stream_car.processing.receipts import receipts_of

P = ParamSpec("P")
T = TypeVar("T")


class Stages:
    """Seconds by stage. `watch` an engine, set `total`, then `unwatch` the engine."""

    def __init__(self) -> None:
        self.total = 0.0
        self.seconds: dict[str, float] = {}

    def watch(self, engine: Engine) -> None:
        """Put the stopwatch around the methods of this engine only."""
        projection = engine.directory.projection
        log, shard, store = projection.log, projection.shard, projection.store
        _replace(log, "append", self._timed_coroutine("log: append durably", log.append))
        _replace(log, "fetch", self._timed_coroutine("log: read and verify", log.fetch))
        fold = projection.fold
        _replace(fold, "read", self._timed("decode, scopes, digest", fold.read))
        _replace(shard, "_drive", self._timed_coroutine("fold", shard._drive))
        _replace(store, "read", self._timed_coroutine("store: read", store.read))
        _replace(shard, "_commit", self._timed_coroutine("encode and commit", shard._commit))
        _replace(projection, "_index", self._timed_coroutine("index", projection._index))
        _replace(data_directory, "receipts_of", self._timed("receipts", receipts_of))

    def unwatch(self, engine: Engine) -> None:
        """Restore the engine's own methods."""
        directory, projection = engine.directory, engine.directory.projection
        for owner in (directory, projection, projection.log, projection.shard, projection.fold, projection.store):
            for name in ("append", "fetch", "_drive", "read", "_commit", "_index"):
                vars(owner).pop(name, None)
        _replace(data_directory, "receipts_of", receipts_of)

    def figures(self, documents: int) -> list[Figure]:
        """Return microseconds per document by stage, the rest last."""
        seconds = {**self.seconds, "the rest": self.total - sum(self.seconds.values())}
        return [Figure(name=f"  {name}", value=s / documents * 1e6, unit="us/doc") for name, s in seconds.items()]

    def _timed(self, stage: str, function: Callable[P, T]) -> Callable[P, T]:
        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            begin = perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self._add(stage, begin)

        return timed

    def _timed_coroutine(
        self, stage: str, function: Callable[P, Coroutine[object, object, T]]
    ) -> Callable[P, Coroutine[object, object, T]]:
        async def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            begin = perf_counter()
            try:
                return await function(*args, **kwargs)
            finally:
                self._add(stage, begin)

        return timed

    def _add(self, stage: str, begin: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + perf_counter() - begin


def _replace(owner: object, name: str, method: object) -> None:
    setattr(owner, name, method)
