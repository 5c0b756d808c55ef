"""Serve one data directory over HTTP, in one process: what `stream-car serve` runs."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from stream_car.http.app import NO_ENDPOINTS, Endpoints
from stream_car.http.metrics import Metrics
from stream_car.http.server import run_until_signal, serve_http
from stream_car.http.tokens import Tokens
from stream_car.local.concurrent_service import ConcurrentService
from stream_car.local.data_directory import DataDirectory
from stream_car.queries.cache import AnswerCache
from stream_car.settings import ServerSettings
from stream_car.webhooks.in_service import ServiceWebhooks
from stream_car.webhooks.webhook_metrics import WebhookCollector


async def serve(
    directory: DataDirectory,
    listener: socket.socket,
    settings: ServerSettings,
    *,
    tokens: Tokens | None = None,
    on_ready: Callable[[str], None] = lambda url: None,
    stop: asyncio.Event | None = None,
    endpoints: Endpoints = NO_ENDPOINTS,
) -> None:
    """Serve until `stop` is set, or without it until SIGTERM or SIGINT.

    `on_ready` is called with the URL as soon as requests are accepted. A second signal ends the process at once.
    """
    if stop is None:
        await run_until_signal(
            lambda stop: serve(
                directory, listener, settings, tokens=tokens, on_ready=on_ready, stop=stop, endpoints=endpoints
            )
        )
        return
    metrics = Metrics()
    async with AsyncExitStack() as running:
        service = await running.enter_async_context(
            ConcurrentService(
                directory,
                timer=metrics.stage,
                subscriptions_max=settings.subscriptions_max,
                heartbeat_s=settings.heartbeat_s,
                changes_kept=settings.changes_kept,
            )
        )
        webhooks = await running.enter_async_context(
            ServiceWebhooks(service, settings, directory.path, service.hub.cursor)
        )
        metrics.add(WebhookCollector(webhooks.reports))
        _add_metrics(metrics, service)
        await serve_http(
            service,
            listener,
            settings,
            tokens=tokens,
            on_ready=on_ready,
            stop=stop,
            end_streams=service.hub.end,
            metrics=metrics,
            spare_time=service.spare_time,
            endpoints=endpoints,
        )


def _add_metrics(metrics: Metrics, service: ConcurrentService) -> None:
    """Add the metrics of the cache, the index, the files and the queues. Another rule set begins a new cache."""
    directory, commit, long_queries = service.directory, service.group_commit, service.long_queries

    def cached(read: Callable[[AnswerCache], int]) -> Callable[[], float]:
        return lambda: read(directory.cache) if directory.cache is not None else 0

    def built() -> Path:
        return directory.projection.folder

    metrics.add_counter("stream_car_cache_hits_total", "Answers from the cache.", cached(lambda cache: cache.hits))
    metrics.add_counter("stream_car_cache_misses_total", "Answers computed.", cached(lambda cache: cache.misses))
    metrics.add_gauge("stream_car_cache_answers", "Answers in the cache.", cached(len))
    metrics.add_gauge("stream_car_cache_bytes", "Approximate memory of the cache.", cached(lambda cache: cache.size))
    metrics.add_gauge("stream_car_index_bytes", "Size of the text index on disk.", lambda: _size(built() / "index"))
    metrics.add_gauge(
        "stream_car_index_lag", "Applied messages that are not in the index on disk.", lambda: directory.index_lag
    )
    metrics.add_gauge("stream_car_state_bytes", "Size of the state on disk.", lambda: _size(built(), "state.*"))
    metrics.add_gauge(
        "stream_car_clock_lead_seconds",
        "How far the last message is ahead of the clock.",
        lambda: directory.clock_lead / 1_000_000,
    )
    metrics.add_gauge("stream_car_log_bytes", "Size of the log on disk.", lambda: _size(directory.path, "documents.*"))
    metrics.add_gauge("stream_car_log_lag", "Stored messages that are not applied yet.", lambda: directory.lag)
    metrics.add_gauge("stream_car_publish_bytes", "Bytes that wait to be stored.", lambda: commit.waiting_bytes)
    metrics.add_gauge("stream_car_long_questions", "Long questions that run.", lambda: long_queries.running)


def _size(folder: Path, pattern: str = "**/*") -> int:
    """Return the size of the files in bytes; a file that was deleted meanwhile has none."""
    total = 0
    for file in folder.glob(pattern):
        try:
            total += file.stat().st_size
        except FileNotFoundError:
            continue
    return total
