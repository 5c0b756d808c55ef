"""A worker process from start to end.

Promise: on SIGTERM it finishes the running batches, leaves the group and ends with code 0 within `END_S`. A shard that
needs a person's decision stops alone, with its reason; when none is left, the process ends with `HALTED`. If a shard
has made no progress for `STALL_S` although there is something to do, or the group has not readmitted the process for
that long, or no shard can report its progress any more, it ends with `RESTART`: a new process cures clients that hang.
"""

import asyncio
import gc
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer

from stream_car.adapters.kafka.errors import translate_errors
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.topics import session_min_s
from stream_car.cluster.cancel import cancel
from stream_car.cluster.connections import Connections, Hops, Plan
from stream_car.cluster.consumer_group import App, Partition
from stream_car.cluster.shard_runner import Report, ShardRunner, WorkerEvent
from stream_car.cluster.worker_metrics import WorkerMetrics
from stream_car.errors import UnsafeSettings
from stream_car.http.server import serve_probes, url_of
from stream_car.http.tokens import Tokens
from stream_car.ports import Hop, ShardId
from stream_car.settings import ServerSettings

DONE, HALTED, RESTART = 0, 3, 75
SIGNALS = (signal.SIGTERM, signal.SIGINT)
DRAIN_S = 8.0  # for running batches, when the group takes the partitions back
END_S = 20.0
LAST_SCRAPE_S = 2.0
STALL_S = 60.0
WATCH_S = 1.0
SESSION_S = 2.5
COLLECT_AT = 50_000  # objects that are new since the last collection
UNKNOWN_SESSION_S = 6.0  # what brokers require unless they are configured otherwise


class ShardHost:
    """Implements `consumer_group.GroupMember`: the shards that run in this process."""

    def __init__(self, connections: Connections, hops: Hops, report: Report) -> None:
        self.connections = connections
        self.runners: dict[ShardId, ShardRunner] = {}
        self.assigned_at = time.monotonic()  # when the group last gave or took shards
        self.is_member = False
        every: tuple[Hop, ...] = ("intake", "frontier")
        self.topics: dict[str, Hop] = {connections.topic(hop): hop for hop in every if hops in (hop, "all")}
        self._report = report

    def begin(self, consumer: AIOKafkaConsumer, assigned: Iterable[Partition]) -> None:
        """Start a shard for each partition."""
        reader = Reader(consumer, in_group=True)
        places = sorted(ShardId(self.topics[partition.topic], partition.partition) for partition in assigned)
        self.runners = {place: self.connections.run_shard(place, reader, self._report) for place in places}
        self.is_member, self.assigned_at = True, time.monotonic()
        self._report(WorkerEvent(event="assigned", shards=tuple(f"{place.hop} {place.shard}" for place in places)))

    async def drain(self) -> None:
        """Finish running batches and end all shards."""
        runners, self.runners = self.runners, {}
        self.is_member, self.assigned_at = False, time.monotonic()
        await asyncio.gather(*(runner.end(DRAIN_S) for runner in runners.values()))

    def exit_code(self) -> int | None:
        """Return the code to end with, or `None` while the process is of use."""
        now = time.monotonic()
        if not self.is_member:
            return RESTART if now - self.assigned_at > STALL_S else None
        working = [runner for runner in self.runners.values() if runner.halted is None]
        if self.runners and not working:
            return HALTED
        if (failure := self.connections.watermarks.failure) is not None:
            reason = f"No shard here reports its progress any more. {type(failure).__name__}: {failure}"
            self._report(WorkerEvent(event="trouble", reason=reason))
            return RESTART
        return RESTART if any(now - runner.succeeded_at > STALL_S for runner in working) else None


async def run(
    plan: Plan,
    hops: Hops,
    report: Report,
    listener: socket.socket,
    settings: ServerSettings,
    *,
    tokens: Tokens | None,
    session_s: float | None = None,
) -> int:
    """Work until a signal, or until `ShardHost.exit_code` gives a reason to end, and return the exit code.

    After `session_s` seconds of silence the group gives the shards of a worker to the others. The default is
    `SESSION_S`, or what the brokers require. Probes and metrics are served on `listener` until the worker has ended.

    Raises:
        UnsafeSettings: the brokers do not accept `session_s`.
    """
    session_s = await _session_s(plan, session_s)
    connections = await Connections.open(plan)
    _collect_rarely()

    def observe(event: WorkerEvent) -> None:
        metrics.observe(event)
        report(event)

    host = ShardHost(connections, hops, observe)
    metrics = WorkerMetrics(connections, host)
    app = App(f"{plan.name}.workers", plan.kafka, list(host.topics), host, session_s)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.set)
    report(WorkerEvent(event="started", reason=connections.generation, url=url_of(listener)))
    async with _observable(metrics, listener, settings, tokens):
        try:
            with translate_errors(f"Kafka at {plan.kafka.address}"):
                code = await _work(app, host, stop)
        finally:
            loop.call_later(END_S, os._exit, RESTART)  # clients of Kafka have been seen to hang when they stop
            has_halted = any(runner.halted for runner in host.runners.values())
            await app.stop()
            await connections.close()
    report(WorkerEvent(event="stopped"))
    return HALTED if has_halted and code == DONE else code


def _collect_rarely() -> None:
    """Make the collector skip what lives as long as the process, and wait for more than a batch leaves behind.

    With its default thresholds it takes a tenth of a worker's time. Values of documents have no cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AT, 10, 100)


async def _session_s(plan: Plan, wanted: float | None) -> float:
    least = await asyncio.to_thread(session_min_s, plan.kafka)
    if wanted is None:
        return max(SESSION_S, UNKNOWN_SESSION_S if least is None else least)
    if least is not None and wanted < least:
        problem = f"The brokers of Kafka accept no session timeout of less than {least:g} s (it is {wanted:g} s)"
        raise UnsafeSettings((f"{problem}: use a longer --session-timeout, or lower group.min.session.timeout.ms",))
    return wanted


@asynccontextmanager
async def _observable(
    metrics: WorkerMetrics, listener: socket.socket, settings: ServerSettings, tokens: Tokens | None
) -> AsyncIterator[None]:
    """Serve probes and metrics within."""
    ended = asyncio.Event()
    serving = asyncio.create_task(
        serve_probes(
            listener,
            settings,
            tokens=tokens,
            exposition=metrics.exposition,
            require_ready=metrics.require_ready,
            stop=ended,
        )
    )
    measuring = asyncio.create_task(metrics.run())
    try:
        yield
    finally:
        ended.set()
        await asyncio.wait([serving], timeout=LAST_SCRAPE_S)
        await cancel(serving, measuring)


async def _work(app: App, host: ShardHost, stop: asyncio.Event) -> int:
    """Run until a signal, an exit code of the host, or the end of Faust."""
    starting = asyncio.create_task(app.start())
    stopping = asyncio.create_task(stop.wait())
    try:
        while not stop.is_set():
            await asyncio.wait([stopping], timeout=WATCH_S)
            if starting.done():
                starting.result()
            if app.crash_reason is not None:
                raise app.crash_reason
            code = host.exit_code()
            if code is not None and not stop.is_set():
                return code
        return DONE
    finally:
        for task in (starting, stopping):
            task.cancel()
