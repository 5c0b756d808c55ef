"""Connections: a limited number, each with a time limit for the head of a request.

Promise: a connection that has not sent the complete head of a request within `HEAD_S` after it was opened, or after
the first byte of a further request, gets an error and is closed; sending single bytes does not extend the limit. A
connection beyond `limit_concurrency` gets an error and is closed. Bodies and idle connections have other limits.
"""

import asyncio
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from stream_car.http.problems import HttpError, problem_response

HEAD_S = 10.0
_SLOW = HttpError(408, "slow_head", f"Send the head of a request within {HEAD_S:.0f} seconds.")
_FULL = HttpError(503, "unavailable", "Too many connections are open. Try again later.", headers={"Retry-After": "5"})
_INVALID = HttpError(400, "head", "This is not an HTTP/1.1 request, or its line and headers are longer than 64 KiB.")


class HttpConnection(H11Protocol):
    """One connection of HTTP/1.1."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self._end(_FULL)
        else:
            self._start_timer()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._start_timer()
        else:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(HEAD_S, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        if not self.transport.is_closing():
            self._end(_SLOW)

    def send_400_response(self, msg: str) -> None:
        self._end(_INVALID)

    def _end(self, error: HttpError) -> None:
        """Send an error and close the connection."""
        response = problem_response(error)
        head = [*response.raw_headers, (b"connection", b"close")]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in head)
        line = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n".encode()
        self.transport.write(line + lines + b"\r\n" + response.body)
        self.transport.close()
