"""Connections: a limited number, in all and per client, each with time limits. At a limit, the slowest give way first.

Promise: a new connection beyond the limit takes the place of the one that has waited for its client for longest, to
send a request or the rest of one, or to read an answer. It is one of the client that has most connections, if any of
those waits. If none waits, the new one gets an error and is closed. A client at its own limit only takes places of its
own.

A connection that has not sent the complete head of a request within `HEAD_S` after it was opened, or after the first
byte of a further request, gets an error and is closed; sending single bytes does not extend the limit. An answer of
which less than `READ_RATE` bytes per second are read over `STALL_S` is cut off, and so is the one read most slowly once
those that wait to be read are more than `UNREAD_MAX` bytes. Bodies have other limits.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Sequence
from http import HTTPStatus

import h11
from msgspec import Struct
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from stream_car.http.clients import LOCAL, Proxies, client_at, is_proxy
from stream_car.http.problems import HttpError, problem_response

HEAD_S = 10.0
LINGER_S = 0.5  # in which the client of a connection that has ended may read why
STALL_S = 30.0
READ_RATE = 1024  # bytes per second
UNREAD_MAX = 96 << 20
BODY_S = 1.0  # for which no part of a body has come, before its connection counts as waiting
SEND_MAX = 128 << 10  # bytes of answers that the system takes ahead of a client; by itself it would take megabytes
RECEIVE_MAX = 64 << 10  # bytes taken from a socket at a time, which count before anything can limit them
SHARES = 4
_SLOW = HttpError(408, "slow_head", f"Send the head of a request within {HEAD_S:.0f} seconds.")
_AGAIN = {"Retry-After": "5"}
_FULL = HttpError(503, "unavailable", "Too many connections are open. Try again later.", headers=_AGAIN)
_SHARE = HttpError(503, "unavailable", "You have too many open connections. Close some, or try later.", headers=_AGAIN)
_INVALID = HttpError(400, "head", "This is not an HTTP/1.1 request, or its line and headers are longer than 64 KiB.")


class ConnectionLimits(Struct, frozen=True):
    """How many connections there may be. A client that has a name may have one of `SHARES` shares; a proxy all."""

    total: int
    proxies: Proxies = ()

    @property
    def share(self) -> int:
        """How many connections one client may have."""
        return -(-self.total // SHARES)


class HttpConnection(H11Protocol):
    """One connection of HTTP/1.1."""

    _timer: asyncio.TimerHandle | None = None
    _stall_timer: asyncio.TimerHandle | None = None
    _has_ended = False

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ConnectionLimits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = limits
        self.name = LOCAL
        self._received_at = 0.0
        self._unread_since: float | None = None  # `None` while its client reads what there is
        self._unread = 0

    @property
    def unread(self) -> int:
        """How many bytes of answers wait to be read."""
        return self.transport.get_write_buffer_size()

    @property
    def waits_since(self) -> float | None:
        """Since when it has waited for its client, or `None` if it does not."""
        if self.transport.is_closing():
            return None
        if self._unread_since is not None:
            return self._unread_since
        if self.cycle is None or self.cycle.response_complete:  # type: ignore[redundant-expr]  # none at first
            return self._received_at
        late = self.loop.time() - BODY_S
        return self._received_at if self.cycle.more_body and self._received_at < late else None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent
        others = self._others()
        super().connection_made(transport)
        if hasattr(transport, "max_size"):  # of asyncio's own loop, which would take 256 KiB
            transport.max_size = RECEIVE_MAX
        peer: socket.socket | None = transport.get_extra_info("socket")
        if peer is not None:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_MAX)
        self._received_at = self.loop.time()
        address = self.client[0] if self.client is not None else ""
        self.name = LOCAL if is_proxy(address, self.limits.proxies) else client_at(address)
        own = [other for other in others if other.name == self.name]
        if self.name != LOCAL and len(own) >= self.limits.share and not _end_slowest(own):
            self._end(_SHARE)
        elif len(others) >= self.limits.total and not _end_slowest(others):
            self._end(_FULL)
        else:
            self._start_timer()

    def data_received(self, data: bytes) -> None:
        if self._has_ended:
            return
        self._received_at = self.loop.time()
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._start_timer()
        else:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread_since = self.loop.time()
        self._unread = self.unread
        self._stall_timer = self.loop.call_later(STALL_S, self._check_reading)
        unread = [other for other in self._others() if other.unread]
        if self.unread + sum(other.unread for other in unread) > UNREAD_MAX:
            _end_slowest(unread)

    def resume_writing(self) -> None:
        self._unread_since = None
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None
        super().resume_writing()

    def _others(self) -> list["HttpConnection"]:
        """Return the other connections that are open."""
        connections = (other for other in self.connections if isinstance(other, HttpConnection) and other is not self)
        return [other for other in connections if not other.transport.is_closing()]

    def _check_reading(self) -> None:
        before, self._unread = self._unread, self.unread
        if before - self._unread < READ_RATE * STALL_S:
            self.transport.abort()
        else:
            self._stall_timer = self.loop.call_later(STALL_S, self._check_reading)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_S, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        if not self.transport.is_closing() and not self._has_ended:
            self._end(_SLOW)

    def send_400_response(self, msg: str) -> None:
        self._end(_INVALID)

    def _end(self, error: HttpError) -> None:
        """Send an error and close the connection.

        Closed at once with bytes of its client unread, it would be reset, and the client might never read the error.
        """
        response = problem_response(error)
        head = [*response.raw_headers, (b"connection", b"close")]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in head)
        line = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n".encode()
        self.transport.write(line + lines + b"\r\n" + response.body)
        self.transport.write_eof()
        self._has_ended = True
        self.loop.call_later(LINGER_S, self.transport.close)


def _end_slowest(connections: Sequence[HttpConnection]) -> bool:
    """End the connection that has waited for its client for longest, and return whether there was any."""
    counts = Counter(connection.name for connection in connections)
    waiting = [(since, connection) for connection in connections if (since := connection.waits_since) is not None]
    if not waiting:
        return False
    _, slowest = min(waiting, key=lambda pair: (-counts[pair[1].name], pair[0]))
    slowest.transport.abort()
    return True
