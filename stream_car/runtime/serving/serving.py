"""A query worker process from start to end."""

import socket
from collections.abc import Callable
from pathlib import Path

from stream_car.adapters.embedded.index import TantivyIndex
from stream_car.adapters.redis.views import RedisViews
from stream_car.runtime.server import served, signalled
from stream_car.runtime.serving.service import ServersService
from stream_car.runtime.settings import ServerSettings
from stream_car.runtime.worker.wiring import Plan, Works


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
    works = await Works.open(plan)
    index = TantivyIndex(folder)
    try:
        views = RedisViews(intake=plan.store(works.client, "intake"), frontier=plan.store(works.client, "frontier"))
        async with ServersService(works, index, views) as service:
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
    finally:
        index.close()
        await works.close()
