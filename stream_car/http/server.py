"""Run a service behind HTTP.

Promise: it listens on this machine alone unless there is a token. On SIGTERM or SIGINT it accepts no new requests,
finishes those that run (for `DRAIN_S` at most), and returns.
"""

import asyncio
import gc
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn
from starlette.applications import Starlette

from stream_car.api.service import Service
from stream_car.errors import InvalidRequest, StreamCarError
from stream_car.http.app import NO_ENDPOINTS, Endpoints, application
from stream_car.http.auth import LOOPBACK, is_loopback
from stream_car.http.clients import parse_proxies
from stream_car.http.connections import ConnectionLimits, HttpConnection
from stream_car.http.metrics import Metrics
from stream_car.http.probes import probes
from stream_car.http.tokens import Tokens
from stream_car.queries.fair_scheduling import SpareTime
from stream_car.settings import ServerSettings
from stream_car.version import __version__

DRAIN_S = 10
REQUESTS_MAX = 1000  # connections at a time that are not subscriptions
PROBES_MAX = 100  # connections at a time to a process that only reports
FILES = 100  # that the service itself may have open
HEAD_MAX = 64 << 10  # bytes of a request's line and headers
BACKLOG = 512  # connections that may wait to be accepted
ACCEPTED_MAX = 4  # at a time
GC_THRESHOLDS = (700, 10, 1000)  # full collections take 50 ms, so they run a hundred times less often than by default
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class _Server(uvicorn.Server):
    """A server that leaves signals to its caller, and accepts few connections at a time."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen with a long backlog; uvicorn would also accept that many connections in one go."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def listen(settings: ServerSettings, tokens: Tokens | None) -> socket.socket:
    """Return the socket to serve on.

    Raises:
        InvalidRequest: other machines can reach the address and there are no tokens (`settings`).
        StreamCarError: the address cannot be used.
    """
    if not is_loopback(settings.host) and tokens is None:
        raise InvalidRequest(
            "settings",
            f"Other machines can reach {settings.host}, so a token is required. "
            "Set $STREAM_CAR_TOKEN or --token-file, or use 127.0.0.1.",
        )
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Without the protocol, asyncio does not turn Nagle's algorithm off, and answers wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise StreamCarError(
            f"Cannot listen on {settings.host}:{settings.port} ({reason}). Choose another --port."
        ) from error
    listener.setblocking(False)  # noqa: FBT003  the socket's own name for it
    return listener


async def serve_http(
    service: Service,
    listener: socket.socket,
    settings: ServerSettings,
    *,
    tokens: Tokens | None,
    on_ready: Callable[[str], None],
    stop: asyncio.Event,
    end_streams: Callable[[], None],
    metrics: Metrics | None = None,
    spare_time: SpareTime | None = None,
    endpoints: Endpoints = NO_ENDPOINTS,
) -> None:
    """Serve until `stop` is set. `end_streams` ends the subscriptions, which would not end by themselves."""
    proxies = parse_proxies(settings.trusted_proxies)
    app = application(
        service,
        version=__version__,
        hosts=_hosts(settings),
        any_address=not is_loopback(settings.host),
        tokens=tokens,
        metrics=metrics,
        spare_time=spare_time,
        proxies=proxies,
        endpoints=endpoints,
    )
    limits = ConnectionLimits(_connections_max(settings.subscriptions_max + REQUESTS_MAX), proxies)
    await _serve(app, listener, limits, on_ready=on_ready, stop=stop, end_streams=end_streams)


async def serve_probes(
    listener: socket.socket,
    settings: ServerSettings,
    *,
    tokens: Tokens | None,
    exposition: Callable[[], bytes],
    require_ready: Callable[[], None],
    stop: asyncio.Event,
) -> None:
    """Serve the probes and metrics of a process until `stop` is set."""
    any_address = not is_loopback(settings.host)
    app = probes(exposition, require_ready, hosts=_hosts(settings), any_address=any_address, tokens=tokens)
    limits = ConnectionLimits(PROBES_MAX)
    await _serve(app, listener, limits, on_ready=lambda url: None, stop=stop, end_streams=lambda: None)


async def _serve(
    app: Starlette,
    listener: socket.socket,
    limits: ConnectionLimits,
    *,
    on_ready: Callable[[str], None],
    stop: asyncio.Event,
    end_streams: Callable[[], None],
) -> None:
    config = uvicorn.Config(
        app,
        http=partial(HttpConnection, limits=limits),  # type: ignore[arg-type]  # called like a class
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,  # who sends a request is decided in `clients`
        timeout_keep_alive=30,
        backlog=ACCEPTED_MAX,
        timeout_graceful_shutdown=DRAIN_S,
        h11_max_incomplete_event_size=HEAD_MAX,
    )
    running = _Server(config)
    ending = asyncio.create_task(_end(running, end_streams, stop))
    on_ready(url_of(listener))
    try:
        await running.serve(sockets=[listener])
    finally:
        ending.cancel()


async def run_until_signal(serving: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run `serving` with an event that SIGTERM or SIGINT sets. A second signal ends the process at once."""
    gc.collect()
    gc.freeze()  # what is loaded now stays, and need not be examined again and again
    gc.set_threshold(*GC_THRESHOLDS)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        stop.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, end)
    await serving(stop)


async def _end(running: uvicorn.Server, end_streams: Callable[[], None], stop: asyncio.Event) -> None:
    await stop.wait()
    end_streams()
    running.should_exit = True


def _connections_max(wanted: int) -> int:
    """Return how many connections there may be: as many as wanted, if the system allows that many open files."""
    _, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted + FILES if limit == resource.RLIM_INFINITY else min(wanted + FILES, limit)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, resource.getrlimit(resource.RLIMIT_NOFILE)[0]), limit))
    return max(files - FILES, 1)


def _hosts(settings: ServerSettings) -> frozenset[str]:
    """Return the accepted Host headers: the given names, this machine, and its name if others can reach it."""
    names = {*settings.host_names, settings.host}
    if not is_loopback(settings.host):
        names.add(socket.gethostname())
    return LOOPBACK | {name.lower() for name in names}


def url_of(listener: socket.socket) -> str:
    """Return the URL of a socket that `listen` returned."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
