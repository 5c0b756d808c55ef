"""When a request is sent again, and what an error of the service means to a program."""

from collections.abc import Generator

import msgspec
import pytest

from stream_car.api.messages import Problem, Waiting
from stream_car.client.retries import Ask, Heard, Lost, Patience, Pause, answer, patient, unanswered
from stream_car.errors import InvalidRequest, NotVisible, StreamCarError, TooMuch, Unavailable

OK = Heard(status=200, body=b"[]")
BROKEN = Lost(reason="connection reset", was_sent=True)
CLOSED = Lost(reason="connection refused", was_sent=False)
GET = Ask(method="GET", path="/v1/pending")
ONCE = Ask(method="POST", path="/v1/documents", repeatable=False)
URL = "http://127.0.0.1:1"


def problem(status: int, code: str, retry_after: str = "") -> Heard:
    said = Problem(type="urn:x", title="No", status=status, detail="do something else", code=code)
    return Heard(status=status, body=msgspec.json.encode(said), retry_after=retry_after)


def plan(ask: Ask) -> Generator[Ask, Heard, tuple[Waiting, ...]]:
    return answer((yield ask), tuple[Waiting, ...])


def carried_out(ask: Ask, *replies: Heard | Lost) -> tuple[int, list[float]]:
    """How often a request went out, and the pauses between, until the plan came to its end."""
    waiting, sent, pauses = list(replies), 0, []
    conversation = patient(plan(ask), Patience(retries=3), URL)
    step = next(conversation)
    try:
        while True:
            if isinstance(step, Pause):
                pauses.append(step.seconds)
                step = conversation.send(None)
            else:
                sent += 1
                step = conversation.send(waiting.pop(0))
    except StopIteration:
        assert not waiting
        return sent, pauses


def test_a_broken_connection_is_tried_again() -> None:
    assert carried_out(GET, BROKEN, CLOSED, OK)[0] == 3


def test_a_service_that_says_when_to_come_back_is_given_that_time() -> None:
    sent, [pause] = carried_out(GET, problem(503, "in_flight", "2"), OK)

    assert sent == 2
    assert pause == 2


def test_pauses_grow() -> None:
    _, pauses = carried_out(GET, CLOSED, CLOSED, CLOSED, OK)

    assert pauses[0] < pauses[2]


def test_patience_ends() -> None:
    with pytest.raises(Unavailable, match="stream-car up"):
        carried_out(GET, *[CLOSED] * 4)
    with pytest.raises(Unavailable, match="do something else"):
        carried_out(GET, *[problem(503, "damaged")] * 4)
    with pytest.raises(TooMuch, match="do something else"):
        carried_out(GET, *[problem(429, "busy")] * 4)


def test_what_must_not_be_done_twice_is_not_sent_again_once_it_may_have_been_heard() -> None:
    assert carried_out(ONCE, CLOSED, problem(503, "unavailable"), OK)[0] == 3
    with pytest.raises(Unavailable, match="not known"):
        carried_out(ONCE, BROKEN)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (400, "k", InvalidRequest),
        (409, "pending", NotVisible),
        (409, "cursor_ahead", InvalidRequest),
        (413, "size", TooMuch),
        (500, "internal", Unavailable),
        (504, "not_visible", NotVisible),
    ],
)
def test_a_problem_becomes_the_library_s_own_error_at_once(status: int, code: str, kind: type[StreamCarError]) -> None:
    with pytest.raises(kind) as caught:
        carried_out(GET, problem(status, code))

    assert str(caught.value) == "do something else"
    assert getattr(caught.value, "code", code) == code


@pytest.mark.parametrize(
    ("status", "code", "advice"),
    [(401, "token", "do something else; give it to `connect` as `token`"), (404, "not_found", "has a path")],
)
def test_what_is_said_of_headers_and_pages_is_put_for_callers(status: int, code: str, advice: str) -> None:
    with pytest.raises(InvalidRequest, match=advice) as caught:
        carried_out(GET, problem(status, code))

    assert caught.value.code == code


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)", "plain HTTP: http://"),
        ("[SSL] record layer failure (_ssl.c:1032)", "plain HTTP: http://"),
        ("[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed", "is not trusted"),
        ("[Errno 111] Connection refused", "stream-car up"),
    ],
)
def test_why_nobody_answers_decides_what_is_advised(reason: str, advice: str) -> None:
    said = str(unanswered("https://127.0.0.1:8377", reason))

    assert advice in said
    assert reason in said


def test_another_server_is_not_taken_for_the_service() -> None:
    with pytest.raises(InvalidRequest, match="is the address right"):
        carried_out(GET, Heard(status=404, body=b"<html>no such page</html>"))
    with pytest.raises(Unavailable, match="cannot be read"):
        carried_out(GET, Heard(status=200, body=b"<html>welcome</html>"))
