"""What the embedded engine can be asked about itself: its cache, its index, its files, and what waits.

Promise: read when `/metrics` is read, in well under a millisecond; counts of the cache begin anew with other rules.
"""

from collections.abc import Callable
from pathlib import Path

from stream_car.http.metrics import Gauge, Metric, Total
from stream_car.local.service import EmbeddedService
from stream_car.queries.cache import AnswerCache


def metrics_of(service: EmbeddedService) -> list[Metric]:
    """The metrics of a service over an engine."""
    engine, lane, publisher = service.engine, service.lane, service.publisher

    def cached(read: Callable[[AnswerCache], int]) -> Callable[[], float]:
        return lambda: read(engine.cache) if engine.cache is not None else 0

    return [
        Total("stream_car_cache_hits_total", "Answers that were remembered.", cached(lambda cache: cache.hits)),
        Total("stream_car_cache_misses_total", "Answers that were worked out.", cached(lambda cache: cache.misses)),
        Gauge("stream_car_cache_answers", "Answers that are remembered.", cached(len)),
        Gauge("stream_car_cache_bytes", "About how much memory they take.", cached(lambda cache: cache.size)),
        Gauge("stream_car_index_bytes", "What the text index takes on disk.", lambda: _size(engine.built_in / "index")),
        Gauge("stream_car_index_lag", "Messages applied that the index on disk lacks.", lambda: engine.index_lag),
        Gauge("stream_car_state_bytes", "What the state takes on disk.", lambda: _size(engine.built_in, "state.*")),
        Gauge("stream_car_log_bytes", "What the log takes on disk.", lambda: _size(engine.path, "documents.*")),
        Gauge("stream_car_log_lag", "Messages kept that are not applied yet.", lambda: engine.lag),
        Gauge("stream_car_publish_bytes", "Bytes that wait to be kept.", lambda: publisher.waiting_bytes),
        Gauge("stream_car_long_questions", "Long questions that wait.", lambda: lane.waiting),
    ]


def _size(folder: Path, pattern: str = "**/*") -> int:
    """The bytes of the files there; one that is gone by now has none."""
    total = 0
    for file in folder.glob(pattern):
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            continue
    return total
