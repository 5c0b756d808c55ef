"""What a worker reports to the outside: whether it is ready, and metrics of each of its shards for Prometheus.

Promise: it answers from memory, so it answers while Kafka or Redis is away. What the topics hold is measured every
`SAMPLE_S`; until it can be measured again, the last measurement counts, and its age is a metric. A shard that another
worker has taken is left to that worker.
Cost: that of `BacklogReader`, every `SAMPLE_S`.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from typing import Protocol, get_args

from aiokafka import TopicPartition
from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from stream_car.adapters.kafka.backlog import Backlog, BacklogReader
from stream_car.cluster.connections import Connections
from stream_car.cluster.shard_runner import ShardRunner, ShardState, WorkerEvent
from stream_car.errors import StreamCarError, Unavailable
from stream_car.http.metrics import Family
from stream_car.ports import Hop, ShardId

SAMPLE_S = 2.0
SHARD = ["hop", "partition"]


class HostOfShards(Protocol):
    """What runs the shards of this process."""

    runners: dict[ShardId, ShardRunner]
    is_member: bool


class MeasuredShard(Protocol):
    """What a worker knows of a shard, as in `ShardRunner`."""

    position: int | None
    began_at: int
    claims: int


class Progress(Struct, frozen=True):
    """What was measured of a shard last. A rebuild ends at the record that was the last one when it began."""

    runner: MeasuredShard
    claims: int
    backlog: Backlog
    rebuild_to: int = 0

    @property
    def position(self) -> int:
        """The first record that is not applied."""
        return self.runner.position or 0

    @property
    def lag(self) -> int:
        """The number of records that are not applied."""
        return max(self.backlog.end - self.position, 0)

    @property
    def lag_s(self) -> float:
        """The age of the oldest record that is not applied; 0 if all are."""
        oldest_ms = self.backlog.oldest_ms
        return max(time.time() - oldest_ms / 1000, 0.0) if self.lag and oldest_ms is not None else 0.0

    @property
    def rebuilt(self) -> float:
        """The part of a rebuild that is done; 1 if there is none."""
        first = self.backlog.first
        return (self.position - first) / (self.rebuild_to - first) if self.position < self.rebuild_to else 1.0


def measured(runner: MeasuredShard, backlog: Backlog, before: Progress | None) -> Progress:
    """Return the progress of a shard. One that was claimed without state is being rebuilt."""
    is_same = before is not None and before.runner is runner
    rebuild_to = before.rebuild_to if before is not None and is_same else 0
    if not (before is not None and is_same and before.claims == runner.claims) and runner.began_at <= backlog.first:
        rebuild_to = backlog.end
    return Progress(runner, runner.claims, backlog, rebuild_to)


class WorkerMetrics(Collector):
    """Probes and metrics of one worker. `run` it beside the shards, and give it every event of the worker."""

    def __init__(self, connections: Connections, host: HostOfShards) -> None:
        self._connections = connections
        self._host = host
        self._progress: dict[ShardId, Progress] = {}
        self._sampled_at = time.monotonic()
        self._registry = CollectorRegistry()
        self._assignments = self._counter(
            "stream_car_assignments_total", "Times that the group has assigned shards to this worker.", []
        )
        self._claims = self._counter(
            "stream_car_shard_claims_total", "Times that this worker has claimed the shard.", SHARD
        )
        self._take_overs = self._counter(
            "stream_car_shard_take_overs_total",
            "Times that another worker has claimed a shard which this worker had.",
            SHARD,
        )
        self._halts = self._counter(
            "stream_car_shard_halts_total", "Times that the shard has halted, by code.", [*SHARD, "code"]
        )
        self._registry.register(self)

    def _counter(self, name: str, text: str, labels: list[str]) -> Counter:
        return Counter(name, text, labels, registry=self._registry)

    def observe(self, event: WorkerEvent) -> None:
        """Count an event."""
        if event.event == "assigned":
            self._assignments.inc()
            for hop, shard in self._host.runners:  # so that the first increase is one
                self._claims.labels(hop, shard)
                self._take_overs.labels(hop, shard)
        elif event.event == "claimed":
            self._claims.labels(event.hop, event.shard).inc()
        elif event.event == "taken":
            self._take_overs.labels(event.hop, event.shard).inc()
        elif event.event == "halted":
            self._halts.labels(event.hop, event.shard, event.code).inc()

    def require_ready(self) -> None:
        """Raise `Unavailable` unless the group has admitted this worker and all its shards work."""
        if not self._host.is_member:
            raise Unavailable("The worker waits for the consumer group.", "joining")
        for place, runner in sorted(self._host.runners.items()):
            if runner.state != "working":
                raise Unavailable(f"Shard {place.shard} of the {place.hop} hop: {runner.state}.", runner.state)

    def exposition(self) -> bytes:
        """Return everything in the text format."""
        return generate_latest(self._registry)

    async def run(self) -> None:
        """Measure again and again, until cancelled."""
        while True:
            try:
                reader = await BacklogReader.open(self._connections.plan.kafka)
                try:
                    while True:
                        await self._sample(reader)
                        await asyncio.sleep(SAMPLE_S)
                finally:
                    await reader.close()
            except StreamCarError:
                await asyncio.sleep(SAMPLE_S)

    async def _sample(self, reader: BacklogReader) -> None:
        runners = {place: runner for place, runner in self._host.runners.items() if runner.position is not None}
        sources = {place: TopicPartition(self._connections.topic(place.hop), place.shard) for place in runners}
        backlogs = await reader.measure({sources[place]: runner.position or 0 for place, runner in runners.items()})
        self._progress = {
            place: measured(runner, backlogs[sources[place]], self._progress.get(place))
            for place, runner in runners.items()
        }
        self._sampled_at = time.monotonic()

    def collect(self) -> Iterable[Family]:
        """Yield what is read at every scrape."""
        partitions = self._connections.partitions
        counts: dict[Hop, int] = {"intake": partitions.intakes, "frontier": partitions.frontiers}
        yield _gauge(
            "stream_car_ready", "1 if the group has admitted the worker and all its shards work.", self._is_ready()
        )
        yield _gauge(
            "stream_car_measurement_age_seconds",
            "Time since Kafka was last measured.",
            time.monotonic() - self._sampled_at,
        )
        family = GaugeMetricFamily("stream_car_partitions", "Partitions that must have a worker.", labels=["hop"])
        for hop, count in counts.items():  # also of a hop that this worker does not run: nobody else may
            family.add_metric([hop], count)
        yield family
        yield from self._shards()

    def _is_ready(self) -> bool:
        try:
            self.require_ready()
        except Unavailable:
            return False
        return True

    def _shards(self) -> Iterator[Family]:
        states = GaugeMetricFamily("stream_car_shard_state", "1 for the state of the shard.", labels=[*SHARD, "state"])
        stalled = _shard_gauge(
            "stream_car_shard_stalled_seconds", "Time since the last step that did not fail; 0.1 s or 1 s at rest."
        )
        quarantined = _shard_gauge("stream_car_shard_quarantined_records", "Records that are set aside.")
        position = _shard_gauge("stream_car_shard_next_offset", "The first record that is not applied.")
        lag = _shard_gauge("stream_car_shard_lag_records", "Records that are not applied.")
        lag_s = _shard_gauge(
            "stream_car_shard_lag_seconds", "Age of the oldest record that is not applied; 0 if all are."
        )
        rebuilt = _shard_gauge(
            "stream_car_shard_rebuilt_ratio", "The part of a rebuild that is done; 1 if there is none."
        )
        for place, runner in self._host.runners.items():
            labels = [place.hop, str(place.shard)]
            for state in get_args(ShardState):
                states.add_metric([*labels, state], runner.state == state)
            quarantined.add_metric(labels, runner.shard.quarantined)
            stalled.add_metric(labels, time.monotonic() - runner.succeeded_at)
            progress = self._progress.get(place)
            if progress is not None and runner.state != "taken":
                position.add_metric(labels, progress.position)
                lag.add_metric(labels, progress.lag)
                lag_s.add_metric(labels, progress.lag_s)
                rebuilt.add_metric(labels, progress.rebuilt)
        yield from (states, stalled, quarantined, position, lag, lag_s, rebuilt)


def _gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, value=value)


def _shard_gauge(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, text, labels=SHARD)
