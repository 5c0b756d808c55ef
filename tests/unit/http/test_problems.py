"""Errors over HTTP: a client raises what the library would raise."""

import msgspec
import pytest

from stream_car.client.retries import HttpResponse, error_of
from stream_car.errors import (
    Busy,
    ClaimLost,
    Halted,
    InvalidRequest,
    InvalidRules,
    NotVisible,
    Overloaded,
    StreamCarError,
    Unavailable,
    Unsupported,
)
from stream_car.http.problems import TITLES, HttpError, Problem, as_http_error, problem_response


def received(error: HttpError) -> HttpResponse:
    """Return the response as a client receives it."""
    response = problem_response(error)
    assert response.media_type == "application/problem+json"
    return HttpResponse(
        status=response.status_code, body=bytes(response.body), retry_after=response.headers.get("retry-after", "")
    )


def test_a_problem_has_a_status_a_code_and_a_sentence() -> None:
    response = received(as_http_error(InvalidRequest("scope", "Name at least one KEY=VALUE.")))

    assert response.status == 400
    assert msgspec.json.decode(response.body) == {
        "type": "urn:stream-car:problem:scope",
        "title": "Invalid request",
        "status": 400,
        "detail": "Name at least one KEY=VALUE.",
        "code": "scope",
        "receipt": None,
        "problems": [],
    }


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidRequest("scope", "Name at least one KEY=VALUE."), 400),
        (InvalidRequest("cursor_ahead", "The last event so far is 5."), 409),
        (InvalidRequest("rebuild_running", "Another rebuild is running."), 409),
        (InvalidRules(("The rule 'a' has no scope.", "The rule 'b' has no scope.")), 422),
        (NotVisible("not_visible", "Revision 2 of a did not become visible."), 504),
        (NotVisible("pending", "Revision 2 of a waits for its time."), 409),
        (Overloaded("Too many long questions are waiting."), 429),
        (Unsupported("A cluster cannot do this."), 501),
        (Unavailable("Redis does not answer."), 503),
        (Unavailable("The index is catching up.", "catching_up"), 503),
    ],
)
def test_a_client_raises_the_error_of_the_service(error: StreamCarError, status: int) -> None:
    response = received(as_http_error(error))
    raised = error_of(response)

    assert response.status == status
    assert (type(raised), str(raised), vars(raised)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Halted("damaged", "The state is damaged."), "damaged"),
        (ClaimLost("Another worker has the shard."), "unavailable"),
        (Busy("The folder is open", "Close it."), "unavailable"),
        (StreamCarError("The disk is full."), "unavailable"),
    ],
)
def test_what_only_the_operator_can_repair_makes_a_service_unavailable(error: StreamCarError, code: str) -> None:
    raised = error_of(received(as_http_error(error)))

    assert isinstance(raised, Unavailable)
    assert (raised.code, str(raised)) == (code, str(error))


@pytest.mark.parametrize(
    "error",
    [Overloaded("Later."), Unavailable("Later."), InvalidRequest("in_flight", "Later."), StreamCarError("Later.")],
)
def test_what_may_succeed_later_says_when(error: StreamCarError) -> None:
    assert received(as_http_error(error)).retry_after in ("1", "5")


def test_every_status_of_an_error_has_a_title() -> None:
    response = received(HttpError(418, "teapot", "This is not a coffee machine."))

    assert msgspec.json.decode(response.body, type=Problem).title == "Request failed"
    assert all(400 <= status < 600 and title for status, title in TITLES.items())
