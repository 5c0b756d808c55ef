"""A query worker process from start to end."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from stream_car.adapters.redis.views import RedisViews
from stream_car.adapters.search.index import TantivyIndex
from stream_car.adapters.sqlite.key_list import SqliteKeys
from stream_car.cluster.connections import Connections, Plan
from stream_car.cluster.service import ClusterService
from stream_car.cluster.shared_log import KafkaReaders
from stream_car.http.app import NO_ENDPOINTS, Endpoints
from stream_car.http.metrics import Metrics
from stream_car.http.server import run_until_signal, serve_http
from stream_car.http.tokens import Tokens
from stream_car.settings import ServerSettings
from stream_car.webhooks.in_service import ServiceWebhooks
from stream_car.webhooks.webhook_metrics import WebhookCollector

END_S = 20.0
RESTART = 75


async def run(
    plan: Plan,
    folder: Path,
    listener: socket.socket,
    settings: ServerSettings,
    *,
    tokens: Tokens | None,
    on_ready: Callable[[str, str], None],
    endpoints: Endpoints = NO_ENDPOINTS,
) -> None:
    """Serve until SIGTERM or SIGINT. The text index is in `folder`.

    `on_ready` is called with the URL and the generation as soon as requests are accepted.
    """
    async with AsyncExitStack() as opened:
        connections = await Connections.open(plan)
        opened.push_async_callback(connections.close)
        readers = await KafkaReaders.open(connections)
        opened.push_async_callback(readers.close)
        index = TantivyIndex(folder)
        opened.callback(index.close)
        keys = SqliteKeys(folder / "keys.sqlite", connections.index_owner)
        opened.callback(keys.close)
        views = RedisViews(
            intake=plan.store(connections.client, "intake"), frontier=plan.store(connections.client, "frontier")
        )
        service = ClusterService(connections, views, readers, index, keys, settings)
        await service.begin()
        await opened.enter_async_context(service)
        webhooks = await opened.enter_async_context(ServiceWebhooks(service, settings, folder, service.end_cursor))
        metrics = Metrics()
        metrics.add(WebhookCollector(webhooks.reports))
        metrics.add_gauge(
            "stream_car_index_lag", "Applied messages that the text index does not have.", lambda: service.indexer.lag
        )
        metrics.add_counter(
            "stream_car_index_repaired_total",
            "Documents in which the text index differed from the state.",
            lambda: service.indexer.repaired,
        )
        metrics.add_gauge(
            "stream_car_lost_history",
            "1 if Kafka has deleted records that the state or the text index lacks.",
            lambda: service.has_lost_history,
        )
        await run_until_signal(
            lambda stop: serve_http(
                service,
                listener,
                settings,
                tokens=tokens,
                on_ready=lambda url: on_ready(url, connections.generation),
                stop=stop,
                end_streams=service.hub.end,
                metrics=metrics,
                endpoints=endpoints,
            )
        )
        # Clients of Kafka have been seen to hang when they stop.
        asyncio.get_running_loop().call_later(END_S, os._exit, RESTART)
