"""The back ends that the contracts are tested on."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from stream_car.ports import AnchorIndex, ChangeLog, Log, Store
from tests.support.async_tests import pytest_pyfunc_call
from tests.support.local_ports import Backend, Embedded, SetClock
from tests.support.server_ports import KafkaBackend, RedisBackend
from tests.support.servers import in_one_worker

PORTS = {
    "embedded": {"log", "store", "journal", "index"},
    "redis": {"store"},
    "redis_cluster": {"store"},
    "kafka": {"log", "journal"},
}


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test of a port, which its file names, runs once for each back end that has it."""
    if "backend" in metafunc.fixturenames:
        port = metafunc.module.__name__.rpartition("test_")[2]
        able = [
            pytest.param(name, marks=[] if name == "embedded" else [in_one_worker(name)])
            for name, ports in PORTS.items()
            if port in ports
        ]
        metafunc.parametrize("backend", able, indirect=True)


@pytest.fixture
def backend(request: pytest.FixtureRequest, runner: asyncio.Runner, tmp_path: Path) -> Iterator[Backend]:
    backend: Backend
    if request.param == "embedded":
        backend = Embedded(tmp_path)
    elif request.param == "kafka":
        backend = KafkaBackend(request.getfixturevalue("kafka"))
    else:
        backend = RedisBackend(request.getfixturevalue(str(request.param)))
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
def journal(backend: Backend, runner: asyncio.Runner) -> ChangeLog:
    return runner.run(backend.journal())


@pytest.fixture
def index(backend: Backend, runner: asyncio.Runner) -> AnchorIndex:
    return runner.run(backend.index())


__all__ = ["pytest_pyfunc_call"]
