"""Check who sends a request: its Host header and its token.

Promise: a page of another site cannot reach a service on this machine through its visitor's browser, whatever name it
gives to the address. Tokens are compared in constant time.
"""

import hmac
from collections.abc import Collection

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from stream_car.http.problems import HttpError, problem_response

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
OPEN = frozenset({"/livez", "/readyz", "/"})
OPEN_PREFIX = "/static/"  # files of the package, which contain no data


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    return host in LOOPBACK or (host.startswith("127.") and host.replace(".", "").isdecimal())


class Guard:
    """Middleware that passes a request on, or answers it with an error."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] = (), token: str | None = None) -> None:
        self.app = app
        self.hosts = frozenset(hosts)
        self.token = token.encode() if token is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        try:
            _check_framing(request)
            self._check_host(request)
            self._check_token(request)
        except HttpError as error:
            await problem_response(error)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _check_host(self, request: Request) -> None:
        if not self.hosts:
            return
        named = request.headers.get("host", "")
        host = named.rpartition(":")[0] if named.rpartition(":")[2].isdecimal() else named
        if host.lower() not in self.hosts:
            raise HttpError(
                421, "host", "The Host header names another host. Start the service with --host-name to accept it."
            )

    def _check_token(self, request: Request) -> None:
        path = request.url.path
        if self.token is None or path in OPEN or path.startswith(OPEN_PREFIX):
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token):
            problem = "The token is wrong." if given else "A token is required."
            detail = f"{problem} Send the header Authorization: Bearer TOKEN."
            raise HttpError(401, "token", detail, headers={"WWW-Authenticate": "Bearer"})


def _check_framing(request: Request) -> None:
    """Raise `HttpError` for a body with two lengths, because a proxy in front may use the other one."""
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        raise HttpError(400, "framing", "Send one length of the body, not two.", headers={"Connection": "close"})
