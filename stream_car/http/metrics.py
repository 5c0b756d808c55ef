"""What the service measures of itself, for Prometheus.

Promise: outcomes and changes are those of the state itself, so they survive a restart; latencies are those of this
process.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from stream_car.queries.answers import (
    Answer,
    Audit,
    Certificate,
    Explanation,
    Frontier,
    History,
    Incomplete,
    Resolution,
    Status,
)
from stream_car.subscriptions.cursor import Cursor

BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Family = CounterMetricFamily | GaugeMetricFamily

disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations


class Metrics:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "stream_car_request_seconds",
            "Duration of requests, by operation.",
            ["operation"],
            buckets=BUCKETS_S,
            registry=self._registry,
        )
        self._stages = Histogram(
            "stream_car_stage_seconds",
            "Duration of the stages of answering and publishing.",
            ["stage"],
            buckets=BUCKETS_S,
            registry=self._registry,
        )
        self._incomplete = Counter(
            "stream_car_incomplete_answers_total",
            "Answers that may lack something, by operation and reason.",
            ["operation", "reason"],
            registry=self._registry,
        )
        self._state = _StateCollector()
        self._registry.register(self._state)

    def observe_request(self, operation: str, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(operation).observe(seconds)

    def count_incomplete(self, operation: str, answer: object) -> None:
        """Count an answer under each reason why it may lack something."""
        for reason in set(_reasons(answer)):
            self._incomplete.labels(operation, reason).inc()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure a stage."""
        begin = perf_counter()
        try:
            yield
        finally:
            self._stages.labels(name).observe(perf_counter() - begin)

    def add_gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a value that is read at every scrape."""
        self._state.readers.append(lambda: GaugeMetricFamily(name, text, value=read()))

    def add_counter(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a count that something else keeps; the name ends in `_total`."""
        self._state.readers.append(lambda: CounterMetricFamily(name, text, value=read()))

    def add(self, collector: Collector) -> None:
        """Add metrics that are read at every scrape."""
        self._registry.register(collector)

    def exposition(self, status: Status | None, *, is_ready: bool) -> bytes:
        """Return everything in the text format; without a status, what the process knows without it."""
        self._state.status, self._state.is_ready = status, is_ready
        return generate_latest(self._registry)


def _reasons(answer: object) -> Sequence[Incomplete]:
    if isinstance(answer, Answer | Audit):
        answer = answer.certificate
    if isinstance(answer, tuple):
        return [reason for part in answer for reason in _reasons(part)]
    return answer.reasons if isinstance(answer, Certificate | Resolution | Explanation | Frontier | History) else ()


class _StateCollector(Collector):
    """Metrics that are read from the state at every scrape."""

    def __init__(self) -> None:
        self.status: Status | None = None
        self.is_ready = False
        self.readers: list[Callable[[], Family]] = []

    def collect(self) -> Iterable[Family]:
        status = self.status
        yield GaugeMetricFamily("stream_car_ready", "1 if questions are answered.", value=self.is_ready)
        if status is not None:
            messages = CounterMetricFamily(
                "stream_car_messages_total", "Messages of the log, by outcome.", labels=["outcome"]
            )
            for outcome, count in status.outcomes.items():
                messages.add_metric([outcome], count)
            yield messages
            yield GaugeMetricFamily("stream_car_documents", "Documents of the corpus.", value=status.documents)
            yield GaugeMetricFamily(
                "stream_car_pending_documents", "Documents that wait for their time.", value=status.pending
            )
            yield GaugeMetricFamily(
                "stream_car_next_offset", "Messages of the log that are applied.", value=status.next_offset
            )
            yield GaugeMetricFamily(
                "stream_car_events", "Changes and rejections so far.", value=sum(Cursor.parse(status.cursor).numbers)
            )
            yield GaugeMetricFamily(
                "stream_car_quarantined_records", "Records that are set aside now.", value=status.quarantined
            )
            yield GaugeMetricFamily("stream_car_subscriptions", "Open subscriptions.", value=status.subscriptions)
            yield GaugeMetricFamily(
                "stream_car_subscription_lag", "Changes that the slowest subscriber has not received.", value=status.lag
            )
        for read in self.readers:
            yield read()
