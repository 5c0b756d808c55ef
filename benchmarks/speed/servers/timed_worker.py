"""A worker with a stopwatch: `python -m benchmarks.speed.servers.timed_worker worker all ...`, as with `stream-car`.

Promise: a stage is the processor time of its own steps, without waiting and without nested stages, so that stages add
up; the remainder of the process is called "the rest". At the end, seconds by stage are written to the file in the
variable `STAGES`. The stopwatch costs one or two microseconds per record.
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
from aiokafka.producer.sender import Sender as ProducerSender

from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.redis.store import RedisStore
from stream_car.cli import main
from stream_car.cluster.shard_runner import ShardRunner
from stream_car.processing import shard
from stream_car.processing.outbox import IntakeOutbox
from stream_car.processing.two_hop import FrontierFold, IntakeFold

P = ParamSpec("P")
T = TypeVar("T")


class Stopwatch:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._nested: list[float] = []  # for each running stage, the seconds of the stages nested in it

    def begin(self) -> float:
        self._nested.append(0.0)
        return thread_time()

    def end(self, stage: str, begin: float) -> None:
        seconds = thread_time() - begin
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds - self._nested.pop()
        if self._nested:
            self._nested[-1] += seconds

    def timed(self, stage: str, function: Callable[P, T]) -> Callable[P, T]:
        """Return the same function, timed."""

        def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            begin = self.begin()
            try:
                return function(*args, **kwargs)
            finally:
                self.end(stage, begin)

        return timed

    def timed_coroutine(self, stage: str, function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        """Return the same coroutine function, timed step by step."""

        async def timed(*args: P.args, **kwargs: P.kwargs) -> T:
            return await _TimedAwaitable(function(*args, **kwargs), self, stage)

        return timed


class _TimedAwaitable(Awaitable[T]):
    def __init__(self, awaitable: Awaitable[T], stopwatch: Stopwatch, stage: str) -> None:
        self._awaitable, self._stopwatch, self._stage = awaitable, stopwatch, stage

    def __await__(self) -> Generator[object, object, T]:
        steps = self._awaitable.__await__()
        thrown: BaseException | None = None
        while True:
            begin = self._stopwatch.begin()
            try:
                yielded = steps.send(None) if thrown is None else steps.throw(thrown)
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                self._stopwatch.end(self._stage, begin)
            thrown = None
            try:
                yield yielded
            except BaseException as error:
                thrown = error


def time_stages(stopwatch: Stopwatch) -> None:
    """Put the stopwatch around the stages of a worker."""
    coroutines: list[tuple[type, str, str]] = [
        (KafkaLog, "fetch", "records decoded"),
        (Reader, "get", "requesting records from Kafka's client"),
        (Fetcher, "_fetch_requests_routine", "Kafka's client: reading"),
        (Fetcher, "_proc_fetch_request", "Kafka's client: reading"),
        (Sender, "send", "batches for Kafka built"),
        (ProducerSender, "_sender_routine", "Kafka's client: writing"),
        (ProducerSender, "_send_produce_req", "Kafka's client: writing"),
        (RedisStore, "read", "Redis: reading"),
        (RedisStore, "commit", "Redis: committing"),
        (RedisStore, "trim", "Redis: trimming"),
        (shard.Shard, "_drive", "fold"),
        (shard.Shard, "_commit", "state and events encoded"),
        (IntakeOutbox, "publish", "events sorted by partition"),
        (IntakeOutbox, "emit_watermarks", "watermarks"),
        (ShardRunner, "_step", "values decoded, and the shard's own steps"),
    ]
    for owner, name, stage in coroutines:
        setattr(owner, name, stopwatch.timed_coroutine(stage, getattr(owner, name)))
    connection = stopwatch.timed_coroutine("Kafka's client: connections", AIOKafkaConnection._read)
    AIOKafkaConnection._read = staticmethod(connection)
    functions: list[tuple[type, str, str]] = [
        (IntakeFold, "read", "documents decoded"),
        (FrontierFold, "read", "placements decoded"),
        (IntakeFold, "emit", "state and events encoded"),
        (FrontierFold, "emit", "state and events encoded"),
    ]
    for owner, name, stage in functions:
        setattr(owner, name, stopwatch.timed(stage, getattr(owner, name)))
    shard.digest_of = stopwatch.timed("state and events encoded", shard.digest_of)


if __name__ == "__main__":
    worker_stopwatch = Stopwatch()
    time_stages(worker_stopwatch)
    begin_time = process_time()
    try:
        main()
    finally:
        by_stage = {**worker_stopwatch.seconds, "total": process_time() - begin_time}
        Path(os.environ["STAGES"]).write_bytes(msgspec.json.encode(by_stage))
        sys.stdout.flush()
