"""A worker with a stopwatch: `python -m benchmarks.speed.servers.staged worker all ...`, as `stream-car` is called.

Promise: stages are the processor's time of their own steps, without the time in which they wait and without
the stages within them, so that they add up; what they leave of the process is called the rest. At the end
seconds by stage are written to the file that `STAGES` names. The watch costs a microsecond or two a record.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from time import process_time, thread_time
from typing import ParamSpec, TypeVar

import msgspec
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.producer.sender import Sender as Sending

from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.redis.store import RedisStore
from stream_car.cli import main
from stream_car.cluster.shard_runner import Hosted
from stream_car.processing import shard
from stream_car.processing.outbox import IntakeOutbox, WatermarkEmitter
from stream_car.processing.two_hop import FrontierFold, IntakeFold

P = ParamSpec("P")
T = TypeVar("T")


class Watch:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.took: dict[str, float] = {}
        self._inner: list[float] = []  # for each stage that runs, what the stages within it took

    def begin(self) -> float:
        self._inner.append(0.0)
        return thread_time()

    def end(self, stage: str, begin: float) -> None:
        took = thread_time() - begin
        self.took[stage] = self.took.get(stage, 0.0) + took - self._inner.pop()
        if self._inner:
            self._inner[-1] += took

    def called(self, stage: str, work: Callable[P, T]) -> Callable[P, T]:
        """The same function, watched."""

        def watched(*args: P.args, **kwargs: P.kwargs) -> T:
            begin = self.begin()
            try:
                return work(*args, **kwargs)
            finally:
                self.end(stage, begin)

        return watched

    def awaited(self, stage: str, work: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        """The same coroutine function, watched step by step."""

        async def watched(*args: P.args, **kwargs: P.kwargs) -> T:
            return await _Stepped(work(*args, **kwargs), self, stage)

        return watched


class _Stepped(Awaitable[T]):
    def __init__(self, work: Awaitable[T], watch: Watch, stage: str) -> None:
        self._work, self._watch, self._stage = work, watch, stage

    def __await__(self) -> Generator[object, object, T]:
        steps = self._work.__await__()
        thrown: BaseException | None = None
        while True:
            begin = self._watch.begin()
            try:
                waited = steps.send(None) if thrown is None else steps.throw(thrown)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                self._watch.end(self._stage, begin)
            thrown = None
            try:
                yield waited
            except BaseException as error:
                thrown = error


def watch_all(watch: Watch) -> None:
    """Put the watch around the stages of a worker."""
    waiting: list[tuple[type, str, str]] = [
        (KafkaLog, "fetch", "records made of what came"),
        (Reader, "get", "asking Kafka's client for records"),
        (Fetcher, "_fetch_requests_routine", "Kafka's client: reading"),
        (Fetcher, "_proc_fetch_request", "Kafka's client: reading"),
        (Sender, "send", "batches for Kafka made"),
        (Sending, "_sender_routine", "Kafka's client: writing"),
        (Sending, "_send_produce_req", "Kafka's client: writing"),
        (RedisStore, "read", "Redis: reading"),
        (RedisStore, "commit", "Redis: committing"),
        (RedisStore, "trim", "Redis: trimming"),
        (shard.Shard, "_drive", "fold"),
        (shard.Shard, "_commit", "state and events encoded"),
        (IntakeOutbox, "publish", "events sorted by partition"),
        (WatermarkEmitter, "mark", "marks"),
        (Hosted, "_step", "values decoded, and the shard's own steps"),
    ]
    for owner, name, stage in waiting:
        setattr(owner, name, watch.awaited(stage, getattr(owner, name)))
    connection = watch.awaited("Kafka's client: connections", AIOKafkaConnection._read)
    AIOKafkaConnection._read = staticmethod(connection)
    calling: list[tuple[type, str, str]] = [
        (IntakeFold, "read", "documents decoded"),
        (FrontierFold, "read", "placements decoded"),
        (IntakeFold, "emit", "state and events encoded"),
        (FrontierFold, "emit", "state and events encoded"),
    ]
    for owner, name, stage in calling:
        setattr(owner, name, watch.called(stage, getattr(owner, name)))
    shard.digest_of = watch.called("state and events encoded", shard.digest_of)


if __name__ == "__main__":
    stopwatch = Watch()
    watch_all(stopwatch)
    begun = process_time()
    try:
        main()
    finally:
        told = {**stopwatch.took, "total": process_time() - begun}
        Path(os.environ["STAGES"]).write_bytes(msgspec.json.encode(told))
        sys.stdout.flush()
