"""Who may ask: the name that the request came to, and the token.

Promise: a page of another site cannot reach a service on this machine through its visitor's browser,
whatever name it gives to the address; a wrong token is told from a right one in constant time.
"""

import hmac
from collections.abc import Collection

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from stream_car.http.problems import Refused, problem

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
OPEN = frozenset({"/livez", "/readyz", "/"})
OPEN_BELOW = "/static/"  # files of the package, the same for everybody


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach that address."""
    return host in LOOPBACK or (host.startswith("127.") and host.replace(".", "").isdecimal())


class Guard:
    """Lets a request pass, or answers it with a problem."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] = (), token: str | None = None) -> None:
        self.app = app
        self.hosts = frozenset(hosts)
        self.token = token.encode() if token is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check, then hand on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        try:
            _check_framing(request)
            self._check_host(request)
            self._check_token(request)
        except Refused as refused:
            await problem(refused)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _check_host(self, request: Request) -> None:
        if not self.hosts:
            return
        named = request.headers.get("host", "")
        host = named.rpartition(":")[0] if named.rpartition(":")[2].isdecimal() else named
        if host.lower() not in self.hosts:
            raise Refused(421, "host", "the Host header names another host; start with --host-name to serve it")

    def _check_token(self, request: Request) -> None:
        path = request.url.path
        if self.token is None or path in OPEN or path.startswith(OPEN_BELOW):
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self.token):
            wrong = "the token that was sent is not the one of this service" if given else "no token was sent"
            detail = f"{wrong}; send the header Authorization: Bearer TOKEN"
            raise Refused(401, "token", detail, headers={"WWW-Authenticate": "Bearer"})


def _check_framing(request: Request) -> None:
    """Refuse a body with two lengths: a proxy in front may believe the other one."""
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        raise Refused(400, "framing", "send one length of the body, not two", headers={"Connection": "close"})
