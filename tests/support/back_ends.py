"""The same tests over the embedded engine and over Kafka and Redis.

A module or a test that is marked `on_both` runs twice: embedded, and over servers. Over servers it is part of the
gate where it is also marked `in_the_gate`; `make both` runs all of them. `only_embedded` says why a test is about
the embedded engine alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec import Struct

from tests.support.servers import in_one_worker

on_both = pytest.mark.on_both
in_the_gate = pytest.mark.in_the_gate
SERVERS = "servers"


def only_embedded(reason: str) -> pytest.MarkDecorator:
    """Not over servers, because of this."""
    return pytest.mark.only_embedded(reason=reason)


class Servers(Struct, frozen=True):
    """Where they are."""

    kafka: str
    redis: str


_now: list[Servers] = []


def servers() -> Servers | None:
    """What the test that runs now is to run on; `None`: nothing beside this process."""
    return _now[-1] if _now else None


@contextmanager
def on_servers(kafka: str, redis: str) -> Iterator[None]:
    """Let helpers use these servers within, instead of this process."""
    _now.append(Servers(kafka, redis))
    try:
        yield
    finally:
        _now.clear()


def over_servers(*, quick: bool) -> object:
    """The parameter of a fixture that means Kafka and Redis."""
    return pytest.param(SERVERS, marks=[in_one_worker("kafka"), *([] if quick else [pytest.mark.both])])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that is marked so runs once for each back end."""
    names = {mark.name for mark in metafunc.definition.iter_markers()}
    if "on_both" in names:
        every = ["embedded"] if "only_embedded" in names else ["embedded", over_servers(quick="in_the_gate" in names)]
        metafunc.parametrize("where", every, indirect=True, scope="function")


@pytest.fixture(autouse=True)
def where(request: pytest.FixtureRequest) -> Iterator[str]:
    """The back end of a test."""
    chosen: str = getattr(request, "param", "embedded")
    if chosen == SERVERS:
        ask = request.getfixturevalue
        _now.append(Servers(ask("kafka"), ask("redis")))
    yield chosen
    _now.clear()
