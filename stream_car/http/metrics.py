"""Counters and histograms in the text format of Prometheus.

Promise: exact numbers since the start of the process, in order of name. Cost: one dictionary look-up
and an addition for each observation.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter

from stream_car.api.messages import Standing

BUCKETS_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Labels = tuple[tuple[str, str], ...]


class Counter:
    """Counts what happened, by labels."""

    kind = "counter"

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self._values: dict[Labels, float] = {}

    def add(self, amount: float = 1.0, **labels: str) -> None:
        """So much more happened."""
        key = tuple(sorted(labels.items()))
        self._values[key] = self._values.get(key, 0.0) + amount

    def rows(self) -> Iterator[str]:
        """Lines of the text format."""
        for labels, value in sorted(self._values.items()):
            yield f"{self.name}{_labels(labels)} {_number(value)}"


class Gauge:
    """A value that is asked for when it is read."""

    kind = "gauge"

    def __init__(self, name: str, text: str, read: Callable[[], float]) -> None:
        self.name = name
        self.text = text
        self._read = read

    def rows(self) -> Iterator[str]:
        """Lines of the text format."""
        yield f"{self.name} {_number(self._read())}"


class Total(Gauge):
    """A count that somebody else keeps."""

    kind = "counter"


class Histogram:
    """How long things took, in seconds, by labels."""

    kind = "histogram"

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}

    def observe(self, seconds: float, **labels: str) -> None:
        """One more took so long."""
        key = tuple(sorted(labels.items()))
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = [0] * (len(BUCKETS_S) + 1)
        counts[bisect_left(BUCKETS_S, seconds)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + seconds

    def rows(self) -> Iterator[str]:
        """Lines of the text format."""
        for labels, counts in sorted(self._counts.items()):
            total = 0
            for bound, count in zip((*map(_number, BUCKETS_S), "+Inf"), counts, strict=True):
                total += count
                yield f"{self.name}_bucket{_labels((*labels, ('le', bound)))} {total}"
            yield f"{self.name}_sum{_labels(labels)} {_number(self._sums[labels])}"
            yield f"{self.name}_count{_labels(labels)} {total}"


Metric = Counter | Gauge | Histogram


def exposition(metrics: list[Metric]) -> str:
    """All metrics as Prometheus reads them."""
    found: list[str] = []
    for metric in sorted(metrics, key=lambda metric: metric.name):
        found += [f"# HELP {metric.name} {metric.text}", f"# TYPE {metric.name} {metric.kind}", *metric.rows()]
    return "\n".join(found) + "\n"


def _labels(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


class Measures:
    """The metrics of one process. What others measure they add to `others`."""

    def __init__(self) -> None:
        self.requests = Histogram("stream_car_request_seconds", "How long operations took, by name.")
        self.stages = Histogram("stream_car_stage_seconds", "How long the stages of answering and publishing took.")
        self.others: list[Metric] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A watch to hold over a stage."""
        begin = perf_counter()
        try:
            yield
        finally:
            self.stages.observe(perf_counter() - begin, stage=name)

    def exposition(self, standing: Standing) -> str:
        """Everything in the text format."""
        documents = Counter("stream_car_messages_total", "Messages of the log, by what became of them.")
        for outcome, count in standing.outcomes.items():
            documents.add(count, outcome=outcome)
        changes = sum(map(int, standing.cursor.rpartition(":")[2].split(".")))
        return exposition(
            [
                self.requests,
                self.stages,
                documents,
                Gauge("stream_car_documents", "Documents of the corpus.", lambda: standing.documents),
                Gauge("stream_car_waiting_documents", "Documents that wait for their time.", lambda: standing.waiting),
                Gauge("stream_car_next_offset", "Messages of the log that are applied.", lambda: standing.next_offset),
                Gauge("stream_car_events", "Changes and refusals told.", lambda: changes),
                Gauge("stream_car_subscriptions", "Subscriptions that are open.", lambda: standing.subscriptions),
                Gauge("stream_car_subscription_lag", "Events that the slowest subscriber lacks.", lambda: standing.lag),
                *self.others,
            ]
        )
