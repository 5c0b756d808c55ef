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
from stream_car.cluster.connections import Plan, Works
from stream_car.cluster.service import ServersService
from stream_car.cluster.shared_log import Reading
from stream_car.http.server import served, signalled
from stream_car.settings import ServerSettings

END_S = 20.0
AGAIN = 75


async def run(
    plan: Plan,
    folder: Path,
    listener: socket.socket,
    settings: ServerSettings,
    *,
    token: str | None,
    ready: Callable[[str, str], None],
) -> None:
    """Serve until SIGTERM or SIGINT; the index lies in `folder` for as long."""
    async with AsyncExitStack() as opened:
        works = await Works.open(plan)
        opened.push_async_callback(works.close)
        reading = await Reading.open(works)
        opened.push_async_callback(reading.close)
        index = TantivyIndex(folder)
        opened.callback(index.close)
        keys = SqliteKeys(folder / "keys.sqlite", f"{plan.kafka.address} {plan.prefix} {plan.name} {works.generation}")
        opened.callback(keys.close)
        views = RedisViews(intake=plan.store(works.client, "intake"), frontier=plan.store(works.client, "frontier"))
        service = ServersService(works, views, reading, index, keys, settings)
        await service.begin()
        await opened.enter_async_context(service)
        await signalled(
            lambda stop: served(
                service,
                listener,
                settings,
                token=token,
                ready=lambda url: ready(url, works.generation),
                stop=stop,
                end=service.end,
            )
        )
        # Clients of Kafka have been seen to hang in their stop.
        asyncio.get_running_loop().call_later(END_S, os._exit, AGAIN)
