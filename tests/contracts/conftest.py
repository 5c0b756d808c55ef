"""The back ends that the contracts are tested on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_car.ports import AnchorIndex, Journal, Log, Store
from tests.contracts.backends import Backend, Embedded, SetClock
from tests.waiting import pytest_pyfunc_call

BACKENDS = {"embedded": Embedded}


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path: Path) -> Iterator[Backend]:
    backend: Backend = BACKENDS[str(request.param)](tmp_path)
    yield backend
    runner.run(backend.close())


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def log(backend: Backend, runner: asyncio.Runner, clock: SetClock) -> Log:
    return runner.run(backend.log(clock))


@pytest.fixture
def store(backend: Backend, runner: asyncio.Runner) -> Store:
    return runner.run(backend.store())


@pytest.fixture
def journal(backend: Backend, runner: asyncio.Runner) -> Journal:
    return runner.run(backend.journal())


@pytest.fixture
def index(backend: Backend, runner: asyncio.Runner) -> AnchorIndex:
    return runner.run(backend.index())


__all__ = ["pytest_pyfunc_call"]
