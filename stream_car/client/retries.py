"""Talking to the service without touching a socket: what to send, when to send it again, what an error means.

Promise: one conversation, written once as generators; the synchronous and the asynchronous client only
carry it out. A request is sent again only where that is safe: after `503` (the service did nothing), where
no connection was made, and, where the request may be repeated, where a connection broke. Never after
another status.
"""

from collections.abc import Generator, Mapping
from random import Random
from typing import TypeVar

import msgspec
from msgspec import Struct

from stream_car.api.json import read
from stream_car.api.messages import Problem
from stream_car.errors import InvalidRequest, NotVisible, StreamCarError, TooMuch, Unavailable

T = TypeVar("T")
JSON = "application/json"
PAUSE_S = 0.1
PAUSE_MAX_S = 5.0
LET_IN = "give it to `connect` as `token`; on the command line, set $STREAM_CAR_TOKEN"
NO_PAGE = (
    "there is no such page; if the address has a path (/v1, say), leave it out, else the service is older than this"
)
NO_TLS = ("WRONG_VERSION_NUMBER", "record layer failure")  # what OpenSSL says of an answer in plain HTTP
NO_SERVICE = "{url} does not answer as Stream-CAR does (status {status}); is the address right?"


class Ask(Struct, frozen=True, kw_only=True):
    """A request. `repeatable`: doing it twice is as doing it once."""

    method: str
    path: str
    parameters: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    kind: str = JSON
    repeatable: bool = True


class Heard(Struct, frozen=True, kw_only=True):
    """A response."""

    status: int
    body: bytes
    retry_after: str = ""


class Lost(Struct, frozen=True, kw_only=True):
    """No response, and why; `was_sent` says whether the service may have heard the request."""

    reason: str
    was_sent: bool


class Pause(Struct, frozen=True):
    """Wait so long."""

    seconds: float


class Patience(Struct, frozen=True, kw_only=True):
    """How often a request is sent again, and how long a pause may be."""

    retries: int = 4
    pause_max_s: float = PAUSE_MAX_S


Plan = Generator[Ask, Heard, T]
Conversation = Generator[Ask | Pause, Heard | Lost | None, T]
_random = Random()


def patient(plan: Plan[T], patience: Patience, url: str) -> Conversation[T]:
    """The plan carried out, each of its requests as often as needed. Raises `Unavailable` at the end of patience."""
    heard: Heard | None = None
    while True:
        try:
            ask = next(plan) if heard is None else plan.send(heard)
        except StopIteration as stop:
            result: T = stop.value
            return result
        heard = yield from _settled(ask, patience, url)


def _settled(ask: Ask, patience: Patience, url: str) -> Conversation[Heard]:
    tries = 0
    while True:
        reply = yield ask
        assert reply is not None
        if isinstance(reply, Heard):
            if reply.status not in (429, 503) or tries >= patience.retries:
                return reply
            pause = asked_pause(reply.retry_after)
        else:
            if reply.was_sent and not ask.repeatable:
                raise Unavailable(f"{url} fell silent ({reply.reason}); whether it heard the request is not known")
            if tries >= patience.retries:
                raise unanswered(url, reply.reason)
            pause = 0.0
        yield Pause(min(max(pause, pause_after(tries)), patience.pause_max_s))
        tries += 1


def pause_after(failures: int) -> float:
    """Twice as long after each failure, and never the same for all who failed together."""
    return min(PAUSE_S * 2.0 ** min(failures, 16), PAUSE_MAX_S) * _random.uniform(0.5, 1.0)


def asked_pause(retry_after: str) -> float:
    """The pause that a service asks for."""
    return float(retry_after) if retry_after.isdecimal() else 0.0


def unanswered(url: str, reason: str) -> Unavailable:
    """Nobody is there."""
    if "CERTIFICATE" in reason:
        return Unavailable(f"the certificate of {url} is not trusted here ({reason})")
    if any(sign in reason for sign in NO_TLS):
        plain = url.replace("https:", "http:", 1)
        return Unavailable(f"{url} does not speak TLS ({reason}); perhaps it speaks plain HTTP: {plain}")
    return Unavailable(f"{url} does not answer ({reason}); is it running? Start it: stream-car up")


def answer(heard: Heard, kind: type[T]) -> T:
    """The answer that was heard. Raises what the library would raise in its place."""
    if heard.status != 200:
        raise failure(heard)
    try:
        return read(heard.body, kind)
    except (ValueError, KeyError, TypeError) as error:
        raise Unavailable(f"the answer cannot be read ({error}); is this client older than the service?") from None


def problem_of(heard: Heard) -> Problem | None:
    """The problem that a response tells, if it does."""
    try:
        return read(heard.body, Problem)
    except (ValueError, KeyError, TypeError):
        return None


def failure(heard: Heard) -> StreamCarError:
    """The error of the library that a response means."""
    said = problem_of(heard)
    if said is None:
        return InvalidRequest("url", NO_SERVICE.format(url="this address", status=heard.status))
    if said.code in ("not_visible", "pending"):
        return NotVisible(said.code, said.detail)
    if heard.status in (413, 429):
        return TooMuch(said.detail)
    if heard.status >= 500:
        return Unavailable(said.detail, said.code)
    return InvalidRequest(said.code, _for_callers(said))


def _for_callers(said: Problem) -> str:
    """The detail; where it is about headers and pages, what whoever calls the library can do."""
    if said.code == "token":
        return f"{said.detail.partition(';')[0]}; {LET_IN}"
    return NO_PAGE if said.code == "not_found" else said.detail


def as_body(message: Struct | Mapping[str, object]) -> bytes:
    """A message as JSON; what is at its default is left to the service."""
    return msgspec.json.encode(message)
