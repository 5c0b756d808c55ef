"""What the service measures of itself.

Promise: outcomes and changes are those of the state itself, so they survive a restart; latencies are
those of this process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from stream_car.api.messages import Standing
from stream_car.http.metrics import Counter, Gauge, Histogram, Metric, exposition


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
