"""Where the time of a publish goes: a stopwatch around the stages of an engine.

Promise: the stages follow one another and none contains another; what they leave of the total is
called the rest. The watch itself costs about a microsecond a document.
"""

from collections.abc import Callable, Coroutine
from time import perf_counter
from typing import ParamSpec, TypeVar

from benchmarks.speed.report import Figure
from stream_car.local.engine import Engine

P = ParamSpec("P")
T = TypeVar("T")


class Stages:
    """Seconds by stage. `watch` an engine, set `total`, then `forget` the engine."""

    def __init__(self) -> None:
        self.total = 0.0
        self.took: dict[str, float] = {}

    def watch(self, engine: Engine) -> None:
        """Put the stopwatch around the methods of this engine alone."""
        built = engine._built
        log, shard, store = built.log, built.shard, built.store
        _put(log, "append", self._awaited("log: append durably", log.append))
        _put(log, "fetch", self._awaited("log: read and verify", log.fetch))
        _put(shard.fold, "read", self._called("decode, scopes, digest", shard.fold.read))
        _put(shard, "_drive", self._awaited("fold", shard._drive))
        _put(store, "read", self._awaited("store: read", store.read))
        _put(shard, "_commit", self._awaited("encode and commit", shard._commit))
        _put(built, "posting", self._called("index: postings", built.posting))
        _put(built, "_feed", self._called("index: feed", built._feed))
        _put(engine, "_receipt", self._called("receipts", engine._receipt))

    def delete_up_to(self, engine: Engine) -> None:
        """Give the engine its own methods back."""
        built = engine._built
        for owner in (engine, built, built.log, built.shard, built.shard.fold, built.store):
            for name in ("append", "fetch", "_drive", "read", "_commit", "posting", "_feed", "_receipt"):
                vars(owner).pop(name, None)

    def figures(self, documents: int) -> list[Figure]:
        """Microseconds a document by stage, the rest last."""
        took = {**self.took, "the rest": self.total - sum(self.took.values())}
        return [Figure(name=f"  {name}", value=spent / documents * 1e6, unit="us/doc") for name, spent in took.items()]

    def _called(self, stage: str, work: Callable[P, T]) -> Callable[P, T]:
        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            begin = perf_counter()
            try:
                return work(*args, **kwargs)
            finally:
                self._add(stage, begin)

        return timed

    def _awaited(
        self, stage: str, work: Callable[P, Coroutine[object, object, T]]
    ) -> Callable[P, Coroutine[object, object, T]]:
        async def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            begin = perf_counter()
            try:
                return await work(*args, **kwargs)
            finally:
                self._add(stage, begin)

        return timed

    def _add(self, stage: str, begin: float) -> None:
        self.took[stage] = self.took.get(stage, 0.0) + perf_counter() - begin


def _put(owner: object, name: str, method: object) -> None:
    setattr(owner, name, method)
