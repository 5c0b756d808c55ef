"""What the webhooks of a service have delivered, and what waits, for Prometheus."""

from collections.abc import Iterable, Sequence
from contextlib import suppress

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from stream_car.errors import StreamCarError
from stream_car.webhooks.webhook import DeliveryReport

Family = CounterMetricFamily | GaugeMetricFamily
PREFIX = "stream_car_webhook"
LABELS = ["webhook"]


class WebhookCollector(Collector):
    """Reads reports and outboxes at every scrape. A webhook is named by its outbox, for its URL may hold a secret."""

    def __init__(self, reports: Sequence[DeliveryReport]) -> None:
        self._reports = reports

    def collect(self) -> Iterable[Family]:
        if not self._reports:
            return
        tries = CounterMetricFamily(
            f"{PREFIX}_tries_total", "Messages that were sent, by outcome.", labels=[*LABELS, "outcome"]
        )
        waiting = GaugeMetricFamily(f"{PREFIX}_waiting", "Messages that wait.", labels=LABELS)
        age = GaugeMetricFamily(f"{PREFIX}_age_seconds", "How long the oldest message has waited.", labels=LABELS)
        dead = GaugeMetricFamily(f"{PREFIX}_dead_letters", "Messages that were given up.", labels=LABELS)
        for report in self._reports:
            name = [report.name]
            for outcome in ("delivered", "retried", "dead"):
                tries.add_metric([*name, outcome], getattr(report, outcome))
            if report.outbox is not None:
                with suppress(StreamCarError):
                    waiting.add_metric(name, report.outbox.waiting())
                    age.add_metric(name, report.outbox.age_s())
                    dead.add_metric(name, report.outbox.dead_count())
        yield from (tries, waiting, age, dead)
