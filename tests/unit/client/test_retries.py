"""When a request is sent again, and what an error of the service means to a program."""

import msgspec
import pytest

from stream_car.client.retries import (
    HttpRequest,
    HttpResponse,
    HttpRetryPolicy,
    NoResponse,
    pause_before_retry,
    read_answer,
    unreachable,
)
from stream_car.errors import (
    InvalidRequest,
    InvalidRules,
    NotVisible,
    Overloaded,
    StreamCarError,
    Unavailable,
    Unsupported,
)
from stream_car.http.problems import Problem
from stream_car.queries.answers import PendingDocument

OK = HttpResponse(status=200, body=b"[]")
BROKEN = NoResponse(reason="connection reset", was_sent=True)
CLOSED = NoResponse(reason="connection refused", was_sent=False)
GET = HttpRequest(method="GET", path="/v1/pending")
ONCE = HttpRequest(method="POST", path="/v1/documents", is_repeatable=False)
URL = "http://127.0.0.1:1"
POLICY = HttpRetryPolicy(retries=3)


def problem(status: int, code: str, retry_after: str = "") -> HttpResponse:
    body = Problem(type="urn:x", title="No", status=status, detail="Do something else.", code=code)
    return HttpResponse(status=status, body=msgspec.json.encode(body), retry_after=retry_after)


def send(request: HttpRequest, *replies: HttpResponse | NoResponse, policy: HttpRetryPolicy = POLICY) -> list[float]:
    """Send a request that gets these replies, read the answer, and return the pauses."""
    pauses: list[float] = []
    for tries, reply in enumerate(replies):
        pause = pause_before_retry(request, reply, tries, policy, URL)
        if pause is None:
            assert isinstance(reply, HttpResponse)
            assert tries == len(replies) - 1, "the request was not sent again"
            read_answer(reply, tuple[PendingDocument, ...])
            return pauses
        pauses.append(pause)
    raise AssertionError("the request would be sent again")


def test_a_broken_connection_is_tried_again() -> None:
    assert len(send(GET, BROKEN, CLOSED, OK)) == 2


@pytest.mark.parametrize(("status", "code"), [(503, "in_flight"), (429, "busy")])
def test_a_pause_that_the_service_asks_for_is_made(status: int, code: str) -> None:
    assert send(GET, problem(status, code, "2"), OK) == [2]


@pytest.mark.parametrize("retry_after", ["", "soon", "-1", "Wed, 21 Oct 2015 07:28:00 GMT"])
def test_without_a_number_of_seconds_the_usual_pause_is_made(retry_after: str) -> None:
    [pause] = send(GET, problem(503, "in_flight", retry_after), OK)

    assert 0 < pause < 1


def test_no_pause_is_longer_than_the_policy_allows() -> None:
    assert send(GET, problem(503, "in_flight", "3600"), OK) == [POLICY.pause_max_s]
    assert send(GET, problem(503, "in_flight", "2"), OK, policy=HttpRetryPolicy(pause_max_s=0.5)) == [0.5]


def test_pauses_grow() -> None:
    pauses = send(GET, CLOSED, CLOSED, CLOSED, OK)

    assert pauses[0] < pauses[2]


def test_after_the_last_try_the_error_is_raised() -> None:
    with pytest.raises(Unavailable, match="stream-car serve"):
        send(GET, *[CLOSED] * 4)
    with pytest.raises(Unavailable, match="Do something else") as caught:
        send(GET, *[problem(503, "damaged")] * 4)
    assert caught.value.code == "damaged"
    with pytest.raises(Overloaded, match="Do something else"):
        send(GET, *[problem(429, "busy")] * 4)


def test_what_must_not_be_repeated_is_not_sent_again_once_it_may_have_arrived() -> None:
    assert len(send(ONCE, CLOSED, problem(503, "unavailable"), OK)) == 2
    with pytest.raises(Unavailable, match="may have been carried out"):
        send(ONCE, BROKEN)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "k", InvalidRequest),
        (409, "pending", NotVisible),
        (409, "cursor_ahead", InvalidRequest),
        (409, "rebuild_running", InvalidRequest),
        (413, "size", Overloaded),
        (422, "rules", InvalidRules),
        (500, "internal", Unavailable),
        (501, "unsupported", Unsupported),
        (503, "lost_history", Unavailable),  # only a person ends it
        (503, "quarantined", Unavailable),
        (504, "not_visible", NotVisible),
    ],
)
def test_a_problem_becomes_the_error_of_the_library_at_once(status: int, code: str, kind: type[StreamCarError]) -> None:
    with pytest.raises(kind) as caught:
        send(GET, problem(status, code))

    assert type(caught.value) is kind
    assert str(caught.value) == "Do something else."
    assert getattr(caught.value, "code", code) == code


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [
        (401, "token", "Do something else. Pass it to `connect` as `token`. On the command line, set"),
        (404, "not_found", "If the URL has a path"),
    ],
)
def test_advice_about_headers_and_pages_is_replaced_by_advice_to_callers(status: int, code: str, advice: str) -> None:
    with pytest.raises(InvalidRequest, match=advice) as caught:
        send(GET, problem(status, code))

    assert caught.value.code == code


def test_the_hint_about_the_token_does_not_speak_of_headers() -> None:
    body = Problem(
        type="urn:x",
        title="Token required",
        status=401,
        detail="The token is wrong. Send the header Authorization: Bearer TOKEN.",
        code="token",
    )
    with pytest.raises(InvalidRequest) as caught:
        send(GET, HttpResponse(status=401, body=msgspec.json.encode(body)))

    assert str(caught.value).startswith("The token is wrong. Pass it to `connect`")
    assert "header" not in str(caught.value)


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "plain HTTP: http://"),
        ("[SSL] record layer failure (_ssl.c:1032)", "plain HTTP: http://"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "is not trusted"),
        ("[Errno 111] Connection refused", "stream-car serve"),
    ],
)
def test_the_reason_for_no_answer_decides_the_advice(reason: str, advice: str) -> None:
    message = str(unreachable("https://127.0.0.1:8377", reason))

    assert advice in message
    assert reason in message


def test_another_server_is_not_mistaken_for_the_service() -> None:
    with pytest.raises(InvalidRequest, match="Is it the right one"):
        send(GET, HttpResponse(status=404, body=b"<html>no such page</html>"))
    with pytest.raises(Unavailable, match="cannot be read"):
        send(GET, HttpResponse(status=200, body=b"<html>welcome</html>"))


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{}", b'[{"id": 1}]', b'[{"id": "w", "revision": 1, "time": "soon"}]']
)
def test_an_answer_of_another_form_is_an_error(body: bytes) -> None:
    with pytest.raises(Unavailable, match="older than the service"):
        read_answer(HttpResponse(status=200, body=body), tuple[PendingDocument, ...])


def test_a_problem_of_a_newer_service_is_understood() -> None:
    body = b'{"type": "urn:x", "title": "No", "status": 400, "detail": "Do.", "code": "k", "mood": "good"}'
    with pytest.raises(InvalidRequest, match="Do"):
        send(GET, HttpResponse(status=400, body=body))
