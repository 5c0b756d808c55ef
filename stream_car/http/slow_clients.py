"""Connections: not more than the service has files for, and none that waits for ever for a request to begin.

Promise: a connection that has not brought the whole head of a request `HEAD_S` after it was opened, or
after the first byte of a further one, is told so and closed; bytes that drip do not prolong it. Bodies and
idle connections between requests have limits elsewhere. Where `limit_concurrency` are open, a further one is
told so and closed.
"""

import asyncio
from http import HTTPStatus

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from stream_car.http.problems import Refused, problem

HEAD_S = 10.0
_SLOW = Refused(408, "slow_head", f"send the head of a request within {HEAD_S:.0f} seconds")
_FULL = Refused(503, "unavailable", "too many connections are open; come again later", headers={"Retry-After": "5"})
_ILL = Refused(400, "head", "this is no request in HTTP/1.1, or its line and headers are longer than 64 KiB")


class Connection(H11Protocol):
    """One connection of HTTP/1.1."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as its parent
        """Somebody has come."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self._end(_FULL)
        else:
            self._wait()

    def data_received(self, data: bytes) -> None:
        """They say something."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._wait()
        else:
            self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(HEAD_S, self._give_up)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if not self.transport.is_closing():
            self._end(_SLOW)

    def send_400_response(self, msg: str) -> None:
        """What came is no request."""
        self._end(_ILL)

    def _end(self, refused: Refused) -> None:
        """The last words to a connection: a problem as every other."""
        response = problem(refused)
        head = [*response.raw_headers, (b"connection", b"close")]
        lines = b"".join(name + b": " + value + b"\r\n" for name, value in head)
        line = f"HTTP/1.1 {refused.status} {HTTPStatus(refused.status).phrase}\r\n".encode()
        self.transport.write(line + lines + b"\r\n" + response.body)
        self.transport.close()
