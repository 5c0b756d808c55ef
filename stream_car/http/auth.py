"""Check who sends a request: its Host header, the site that a browser sends it for, and its token.

Promise: a page of another site cannot reach a service on this machine through its visitor's browser, whatever name it
gives to the address. What is open without a token is decided by the path that the server parsed, never by a header.
A request that passes has roles as `scope["roles"]`, and if it came with a token, a `Principal` as `scope["principal"]`.
"""

from collections.abc import Collection
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_car.api.operations import ROLES
from stream_car.http.problems import HttpError, problem_response
from stream_car.http.tokens import Tokens

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "::1"})
OPEN = frozenset({"/livez", "/readyz", "/"})
OPEN_PREFIX = "/static/"  # files of the package, which contain no data
HEADERS = {"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"}


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the address."""
    return host in LOOPBACK or (host.startswith("127.") and host.replace(".", "").isdecimal())


class Guard:
    """Middleware that passes a request on, or answers it with an error."""

    def __init__(
        self, app: ASGIApp, *, hosts: Collection[str], any_address: bool = False, tokens: Tokens | None = None
    ) -> None:
        """Accept requests for `hosts`, and with `any_address` also for IP addresses, which no other site can name."""
        self.app = app
        self.hosts = frozenset(hosts)
        self.any_address = any_address
        self.tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        try:
            _check_framing(request)
            self._check_host(request)
            self._check_site(request)
            self._check_token(request)
        except HttpError as error:
            await problem_response(error)(scope, receive, _with_headers(send))
            return
        await self.app(scope, receive, _with_headers(send))

    def _check_host(self, request: Request) -> None:
        host = _host_of(request.headers.get("host", ""))
        if host not in self.hosts and not (self.any_address and _is_address(host)):
            raise HttpError(
                421, "host", "The Host header names another host. Start the service with --host-name to accept it."
            )

    def _check_site(self, request: Request) -> None:
        """Reject what a browser sends for another site: a form, a script or a link to the API."""
        if _is_open(request):
            return
        origin = request.headers.get("origin")
        named = urlsplit(origin).netloc if origin is not None else None
        is_own = named is None or named == request.headers.get("host") or _host_of(named) in self.hosts - LOOPBACK
        if not is_own or request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            raise HttpError(403, "origin", "A page of another site sent this. Call the service from its own page.")

    def _check_token(self, request: Request) -> None:
        if self.tokens is None:
            request.scope["roles"] = frozenset(ROLES)
            return
        if _is_open(request):
            return
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        principal = self.tokens.find(given.strip()) if scheme.lower() == "bearer" else None
        if principal is None:
            problem = "The token is wrong." if given else "A token is required."
            detail = f"{problem} Send the header Authorization: Bearer TOKEN."
            raise HttpError(401, "token", detail, headers={"WWW-Authenticate": "Bearer"})
        request.scope["principal"], request.scope["roles"] = principal, principal.roles


def _is_open(request: Request) -> bool:
    """Return whether a path needs no token. It is that of the request line: `url` follows the Host header too."""
    path: str = request.scope["path"]
    return path in OPEN or path.startswith(OPEN_PREFIX)


def _host_of(named: str) -> str:
    """Return a host in lower case without its port."""
    host, _, port = named.rpartition(":")
    return (host if port.isdecimal() and host else named).lower()


def _is_address(host: str) -> bool:
    """Return whether a host is an IP address."""
    try:
        ip_address(host[1:-1] if host.startswith("[") else host)
    except ValueError:
        return False
    return True


def _with_headers(send: Send) -> Send:
    """Add the headers that keep other sites from reading an answer, or from taking it for something else."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _check_framing(request: Request) -> None:
    """Raise `HttpError` for a body with two lengths, because a proxy in front may use the other one."""
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        raise HttpError(400, "framing", "Send one length of the body, not two.", headers={"Connection": "close"})
