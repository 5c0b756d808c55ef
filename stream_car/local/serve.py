"""One folder behind HTTP, in one process: what `stream-car up` runs."""

import asyncio
import socket
from collections.abc import Callable

from stream_car.http.metrics import Measures
from stream_car.http.server import served, signalled
from stream_car.local.engine import Engine
from stream_car.local.gauges import metrics_of
from stream_car.local.service import EmbeddedService
from stream_car.settings import ServerSettings


async def serve(
    engine: Engine,
    listener: socket.socket,
    settings: ServerSettings,
    *,
    token: str | None = None,
    ready: Callable[[str], None] = lambda url: None,
    stop: asyncio.Event | None = None,
) -> None:
    """Serve until `stop` is set; `ready` hears the address when requests are taken."""
    stop = stop if stop is not None else asyncio.Event()
    measures = Measures()
    async with EmbeddedService(
        engine,
        timed=measures.stage,
        subscriptions_max=settings.subscriptions_max,
        heartbeat_s=settings.heartbeat_s,
        changes_kept=settings.changes_kept,
    ) as service:
        measures.others += metrics_of(service)
        end = service.subscriptions.end
        await served(
            service,
            listener,
            settings,
            token=token,
            ready=ready,
            stop=stop,
            end=end,
            measures=measures,
            spare=service.lane.spare,
        )


async def until_signalled(
    engine: Engine,
    listener: socket.socket,
    settings: ServerSettings,
    *,
    token: str | None = None,
    ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends the process at once."""
    await signalled(lambda stop: serve(engine, listener, settings, token=token, ready=ready, stop=stop))
