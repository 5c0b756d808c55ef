"""Errors as RFC 9457 problem details, with stable codes.

Promise: every failed request gets one; its `code` names the reason, its `detail` says what to do, and
nothing of the inside is shown.
"""

from collections.abc import Mapping

import msgspec
from starlette.responses import Response

from stream_car.api.json import plain
from stream_car.api.messages import Problem
from stream_car.errors import Halted, InvalidRequest, InvalidRules, NotVisible, StreamCarError, TooMuch
from stream_car.processing.receipts import Receipt

MEDIA_TYPE = "application/problem+json"
STATUS = {
    "in_flight": 503,
    "not_visible": 504,
    "pending": 409,
    "cursor_ahead": 409,
    "rebuild_running": 409,
}
TITLES = {
    400: "The request cannot be answered as put",
    401: "A token is needed",
    403: "This service does not do that for strangers",
    404: "There is no such page",
    405: "This method is not for this page",
    408: "The body came too slowly",
    409: "Not possible as things stand",
    413: "The body is too large",
    415: "The body is of a kind that is not read here",
    421: "This host is not served here",
    422: "The document was refused",
    429: "Too many at once",
    500: "A defect of the service",
    503: "The service cannot do this now",
    504: "Not visible before the deadline",
}


class Refused(Exception):
    """A request that ends here, with a status and a code."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        receipt: Receipt | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers or {}
        self.receipt = receipt


def problem(refused: Refused) -> Response:
    """The response that tells it."""
    body = Problem(
        type=f"urn:stream-car:problem:{refused.code}",
        title=TITLES.get(refused.status, "The request failed"),
        status=refused.status,
        detail=refused.detail,
        code=refused.code,
        receipt=refused.receipt,
    )
    return Response(
        msgspec.json.encode(plain(body)), refused.status, media_type=MEDIA_TYPE, headers=dict(refused.headers)
    )


def refusal(error: StreamCarError) -> Refused:
    """What an error of the engine means to whoever asked."""
    if isinstance(error, InvalidRequest):
        status = STATUS.get(error.code, 400)
        return Refused(status, error.code, str(error), headers={"Retry-After": "1"} if status == 503 else None)
    if isinstance(error, NotVisible):
        return Refused(STATUS[error.code], error.code, str(error))
    if isinstance(error, TooMuch):
        return Refused(429, "busy", str(error), headers={"Retry-After": "5"})
    if isinstance(error, InvalidRules):
        return Refused(422, "rules", str(error))
    code = error.code if isinstance(error, Halted) else "unavailable"
    return Refused(503, code, str(error), headers={"Retry-After": "5"})
