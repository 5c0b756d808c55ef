"""Errors as RFC 9457 problem details, with stable codes.

Promise: every failed request gets one; `code` names the reason, `detail` says what to do, and nothing internal is
shown.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct
from starlette.responses import Response

from stream_car.errors import (
    LASTING,
    DocumentsRejected,
    Halted,
    InvalidRequest,
    InvalidRules,
    NotVisible,
    Overloaded,
    StreamCarError,
    Unavailable,
    Unsupported,
)
from stream_car.processing.receipts import Receipt

MEDIA_TYPE = "application/problem+json"
STATUS = {
    "in_flight": 503,
    "closed": 503,
    "not_visible": 504,
    "pending": 409,
    "cursor_ahead": 409,
    "rebuild_running": 409,
}
TITLES = {
    400: "Invalid request",
    401: "Token required",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Body too slow",
    409: "Not possible now",
    413: "Body too large",
    415: "Unsupported body type",
    421: "Wrong host",
    422: "Document or rules rejected",
    429: "Too many requests",
    500: "Internal error",
    501: "Not supported here",
    503: "Unavailable",
    504: "Not visible before the deadline",
}


class Problem(Struct, frozen=True, kw_only=True):
    """RFC 9457 problem details. `code` is stable; `detail` says what to do.

    `problems` has one sentence for each reason why rule packs cannot be loaded, or for each document that a strict
    publication rejects.
    """

    type: str
    title: str
    status: int
    detail: str
    code: str
    receipt: Receipt | None = None
    problems: tuple[str, ...] = ()


class HttpError(Exception):
    """A request that ends here, with a status and a code."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        receipt: Receipt | None = None,
        problems: tuple[str, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers or {}
        self.receipt = receipt
        self.problems = problems


def problem_response(error: HttpError) -> Response:
    """Return the response that reports an error."""
    body = Problem(
        type=f"urn:stream-car:problem:{error.code}",
        title=TITLES.get(error.status, "Request failed"),
        status=error.status,
        detail=error.detail,
        code=error.code,
        receipt=error.receipt,
        problems=error.problems,
    )
    return Response(msgspec.json.encode(body), error.status, media_type=MEDIA_TYPE, headers=dict(error.headers))


def as_http_error(error: StreamCarError) -> HttpError:
    """Return what an error of the service means to a client."""
    if isinstance(error, InvalidRequest):
        status = STATUS.get(error.code, 400)
        return HttpError(status, error.code, str(error), headers={"Retry-After": "1"} if status == 503 else None)
    if isinstance(error, NotVisible):
        return HttpError(STATUS[error.code], error.code, str(error))
    if isinstance(error, Overloaded):
        return HttpError(429, "busy", str(error), headers={"Retry-After": "5"})
    if isinstance(error, InvalidRules):
        return HttpError(422, "rules", str(error), problems=error.problems)
    if isinstance(error, DocumentsRejected):
        return HttpError(422, error.code, str(error), problems=error.problems)
    if isinstance(error, Unsupported):
        return HttpError(501, "unsupported", str(error))
    code = error.code if isinstance(error, Halted | Unavailable) else "unavailable"
    return HttpError(503, code, str(error), headers=None if code in LASTING else {"Retry-After": "5"})
