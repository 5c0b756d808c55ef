"""Any service behind HTTP, in one process.

Promise: it binds to this machine alone unless there is a token; on SIGTERM or SIGINT it takes no new
requests, finishes those it has (for `DRAIN_S` at most), and returns.
"""

import asyncio
import gc
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import uvicorn

from stream_car.api.service import Service
from stream_car.errors import InvalidRequest, StreamCarError
from stream_car.http import application
from stream_car.http.auth import LOOPBACK, is_loopback
from stream_car.http.metrics import Measures
from stream_car.http.slow_clients import Connection
from stream_car.queries.fair_scheduling import SpareTime
from stream_car.settings import ServerSettings
from stream_car.version import __version__

DRAIN_S = 10
OTHERS_MAX = 1000  # connections at a time that are no subscriptions
FILES = 100  # that the engine itself may have open
HEAD_MAX = 64 << 10  # bytes of a request's line and headers
BACKLOG = 512  # connections that may wait to be let in
LET_IN = 4  # at once
COLLECTED = (700, 10, 1000)  # the first two as always; all of memory a hundred times less often: that takes 50 ms
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class _Server(uvicorn.Server):
    """A server whose signals the caller handles, and that lets few in at a time."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen. As many as may wait outside would also be let in together, before anybody else's turn."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(BACKLOG)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


def bound(settings: ServerSettings, token: str | None) -> socket.socket:
    """The socket to listen on. Raises `InvalidRequest` where others could reach it and there is no token."""
    if not is_loopback(settings.host) and token is None:
        raise InvalidRequest(
            "settings",
            f"{settings.host} can be reached from other machines, so a token is needed: "
            "set $STREAM_CAR_TOKEN or token_file, or stay on 127.0.0.1",
        )
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # Named by its protocol, or asyncio would not turn Nagle's algorithm off, and answers would wait 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, settings.port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise StreamCarError(
            f"{settings.host}:{settings.port} cannot be listened on ({reason}); choose another --port"
        ) from error
    listener.setblocking(False)  # noqa: FBT003  the socket's own name for it
    return listener


async def served(
    service: Service,
    listener: socket.socket,
    settings: ServerSettings,
    *,
    token: str | None,
    ready: Callable[[str], None],
    stop: asyncio.Event,
    end: Callable[[], None],
    measures: Measures | None = None,
    spare: SpareTime | None = None,
) -> None:
    """Serve any service until `stop` is set; `end` lets those go who listen for long."""
    app = application(service, version=__version__, measures=measures, hosts=_hosts(settings), token=token, spare=spare)
    config = uvicorn.Config(
        app,
        http=Connection,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=30,
        backlog=LET_IN,
        limit_concurrency=_room(settings.subscriptions_max + OTHERS_MAX),
        timeout_graceful_shutdown=DRAIN_S,
        h11_max_incomplete_event_size=HEAD_MAX,
    )
    running = _Server(config)
    ending = asyncio.create_task(_end(running, end, stop))
    ready(_url(listener))
    try:
        await running.serve(sockets=[listener])
    finally:
        ending.cancel()


async def signalled(serving: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Hand on an event that SIGTERM or SIGINT sets; a second one ends the process at once."""
    gc.collect()
    gc.freeze()  # what is there by now stays; to look through everything again and again keeps all waiting
    gc.set_threshold(*COLLECTED)
    loop, stop = asyncio.get_running_loop(), asyncio.Event()

    def end() -> None:
        for number in SIGNALS:
            loop.remove_signal_handler(number)
        stop.set()

    for number in SIGNALS:
        loop.add_signal_handler(number, end)
    await serving(stop)


async def _end(running: uvicorn.Server, end: Callable[[], None], stop: asyncio.Event) -> None:
    await stop.wait()
    end()
    running.should_exit = True


def _room(wanted: int) -> int:
    """How many connections there may be: as many as wanted, if the system grants so many open files."""
    _, granted = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = wanted + FILES if granted == resource.RLIM_INFINITY else min(wanted + FILES, granted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(files, resource.getrlimit(resource.RLIMIT_NOFILE)[0]), granted))
    return max(files - FILES, 1)


def _hosts(settings: ServerSettings) -> frozenset[str]:
    """The names that requests may come to; on an address that others reach any, unless some are given."""
    names = {name.lower() for name in settings.host_names}
    if is_loopback(settings.host):
        return frozenset(names | LOOPBACK | {settings.host.lower()})
    return frozenset(names | {settings.host.lower()}) if names else frozenset()


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
