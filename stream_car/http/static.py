"""The page at `/`: files of the package, which are read once and contain no data.

Promise: the page runs only its own scripts and styles, connects only to this service, and cannot be framed.
"""

from collections.abc import Awaitable, Callable
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-cache",
}
KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
HOME = "index.html"


def handlers() -> dict[str, Callable[[Request], Awaitable[Response]]]:
    """Return the page and its files by their paths."""
    contents = {file.name: file.read_bytes() for file in files("stream_car").joinpath("http", "page").iterdir()}
    return {
        "/" if name == HOME else f"/static/{name}": _StaticFile(name, body).answer for name, body in contents.items()
    }


class _StaticFile:
    """One file of the page."""

    def __init__(self, name: str, body: bytes) -> None:
        self.body = body
        self.headers = {**HEADERS, "Content-Type": KINDS[name.rpartition(".")[2]]}

    async def answer(self, _: Request) -> Response:
        return Response(self.body, headers=self.headers)
