"""Probes and metrics of a process that answers no questions: a worker.

Promise: `/metrics` and `/livez` are answered whatever the process waits for. Who may ask is checked as for a service.
"""

from collections.abc import Callable, Collection

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from stream_car.api.operations import METRICS_ROLE
from stream_car.http.access_log import AccessLog
from stream_car.http.app import EXCEPTION_HANDLERS, route
from stream_car.http.auth import Guard
from stream_car.http.metrics import CONTENT_TYPE
from stream_car.http.problems import HttpError, problem_response
from stream_car.http.tokens import Tokens


def probes(
    exposition: Callable[[], bytes],
    require_ready: Callable[[], None],
    *,
    hosts: Collection[str],
    any_address: bool = False,
    tokens: Tokens | None = None,
) -> Starlette:
    """Return the ASGI application. `require_ready` raises `Unavailable` while the process is not ready.

    `hosts` and `any_address` are those of `Guard`.
    """

    async def alive(_: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def ready(_: Request) -> Response:
        require_ready()
        return PlainTextResponse("ready\n")

    async def metrics(_: Request) -> Response:
        return Response(exposition(), media_type=CONTENT_TYPE)

    return Starlette(
        routes=[
            route("/livez", alive, name="livez", role=None),
            route("/readyz", ready, name="readyz", role=None),
            route("/metrics", metrics, name="metrics", role=METRICS_ROLE),
        ],
        middleware=[Middleware(AccessLog), Middleware(Guard, hosts=hosts, any_address=any_address, tokens=tokens)],
        exception_handlers={**EXCEPTION_HANDLERS, HTTPException: _unknown_page},
    )


async def _unknown_page(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = "A worker answers GET /livez, /readyz and /metrics. A query worker answers questions."
    return problem_response(HttpError(error.status_code, "not_found", detail, headers=error.headers))
