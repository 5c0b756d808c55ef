"""Requests and responses of both clients: when a request is sent again, and what an error means.

Promise: a request is sent again only if that is safe: after `503` and `429` (the service did nothing), if no connection
was made, and, if it is repeatable, after a connection broke. Never after another status, and not if only a person can
end what the service reports.
"""

from random import Random
from typing import TypeVar

import msgspec
from msgspec import Struct

from stream_car.errors import (
    LASTING,
    DocumentsRejected,
    InvalidRequest,
    InvalidRules,
    NotVisible,
    Overloaded,
    StreamCarError,
    Unavailable,
    Unsupported,
)
from stream_car.processing.receipts import Receipt

T = TypeVar("T")
JSON = "application/json"
PAUSE_S = 0.1
PAUSE_MAX_S = 5.0
TO_AUTHENTICATE = "Pass it to `connect` as `token`. On the command line, set $STREAM_CAR_TOKEN."
NO_PAGE = "This page does not exist. If the URL has a path (such as /v1), omit it. Otherwise the service is older."
PLAIN_HTTP = ("WRONG_VERSION_NUMBER", "record layer failure")  # what OpenSSL reports for an answer in plain HTTP
NO_SERVICE = "This URL does not answer like Stream-CAR (status {status}). Is it the right one?"


class HttpRequest(Struct, frozen=True, kw_only=True):
    """A request. If `is_repeatable`, sending it twice has the same effect as sending it once."""

    method: str
    path: str
    parameters: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = JSON
    is_repeatable: bool = True


class HttpResponse(Struct, frozen=True, kw_only=True):
    """A response."""

    status: int
    body: bytes
    retry_after: str = ""


class NoResponse(Struct, frozen=True, kw_only=True):
    """No response, and why; `was_sent` tells whether the service may have received the request."""

    reason: str
    was_sent: bool


class HttpRetryPolicy(Struct, frozen=True, kw_only=True):
    """How often a request is sent again, and how long a pause may be."""

    retries: int = 4
    pause_max_s: float = PAUSE_MAX_S


class ReceivedProblem(Struct, frozen=True, kw_only=True):
    """What is read of RFC 9457 problem details."""

    detail: str
    code: str
    receipt: Receipt | None = None
    problems: tuple[str, ...] = ()


_random = Random()


def pause_before_retry(
    request: HttpRequest, reply: HttpResponse | NoResponse, tries: int, policy: HttpRetryPolicy, url: str
) -> float | None:
    """Return how long to wait before a request is sent again, in seconds, or `None` if the reply is final.

    Raises:
        Unavailable: there is no response, and none is to be expected.
    """
    if isinstance(reply, HttpResponse):
        if reply.status not in (429, 503) or tries >= policy.retries or _is_lasting(reply):
            return None
        pause = requested_pause(reply.retry_after)
    else:
        if reply.was_sent and not request.is_repeatable:
            raise Unavailable(f"{url} stopped answering ({reply.reason}). The request may have been carried out.")
        if tries >= policy.retries:
            raise unreachable(url, reply.reason)
        pause = 0.0
    return min(max(pause, pause_after(tries)), policy.pause_max_s)


def _is_lasting(response: HttpResponse) -> bool:
    problem = problem_of(response)
    return problem is not None and problem.code in LASTING


def pause_after(failures: int) -> float:
    """Return a pause twice as long after each failure, and different for all who failed together."""
    return min(PAUSE_S * 2.0 ** min(failures, 16), PAUSE_MAX_S) * _random.uniform(0.5, 1.0)


def requested_pause(retry_after: str) -> float:
    """Return the pause that a service asks for."""
    return float(retry_after) if retry_after.isdecimal() else 0.0


def unreachable(url: str, reason: str) -> Unavailable:
    """Return the error that a service cannot be reached."""
    if "CERTIFICATE" in reason:
        return Unavailable(f"The certificate of {url} is not trusted here ({reason}).")
    if any(sign in reason for sign in PLAIN_HTTP):
        plain = url.replace("https:", "http:", 1)
        return Unavailable(f"{url} does not speak TLS ({reason}). Try plain HTTP: {plain}.")
    return Unavailable(f"{url} does not answer ({reason}). Is it running? Start it with `stream-car serve`.")


def read_answer(response: HttpResponse, kind: type[T]) -> T:
    """Return the answer in a response. Raises what the library would raise in its place."""
    if response.status != 200:
        raise error_of(response)
    try:
        return msgspec.json.decode(response.body, type=kind)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"The answer cannot be read ({error}). Is this client older than the service?") from None


def problem_of(response: HttpResponse) -> ReceivedProblem | None:
    """Return the problem that a response reports, if it does."""
    try:
        return msgspec.json.decode(response.body, type=ReceivedProblem)
    except msgspec.MsgspecError:
        return None


def error_of(response: HttpResponse) -> StreamCarError:
    """Return the error of the library that a response means."""
    problem = problem_of(response)
    if problem is None:
        return InvalidRequest("url", NO_SERVICE.format(status=response.status))
    if problem.code in ("not_visible", "pending"):
        return NotVisible(problem.code, problem.detail)
    if response.status in (413, 429):
        return Overloaded(problem.detail)
    if response.status == 501:
        return Unsupported(problem.detail)
    if response.status >= 500:
        return Unavailable(problem.detail, problem.code)
    if problem.code == "rules" and response.status == 422:
        return InvalidRules(problem.problems or (problem.detail,))
    if response.status == 422 and problem.problems:
        return DocumentsRejected(
            problem.detail.partition(problem.problems[0])[0].strip(), problem.problems, code="strict"
        )
    return InvalidRequest(problem.code, _for_callers(problem))


def _for_callers(problem: ReceivedProblem) -> str:
    """Return the detail; if it is about headers and pages, what a caller of the library can do."""
    if problem.code == "token":
        return f"{problem.detail.partition(' Send ')[0]} {TO_AUTHENTICATE}"
    return NO_PAGE if problem.code == "not_found" else problem.detail
