"""The real servers that tests use: started for the session, or given by the environment.

`TEST_KAFKA` (`host:port`), `TEST_REDIS` and `TEST_REDIS_CLUSTER` (URLs) name servers
to use instead of starting some. Where none can be had, the tests are left out and the summary says so loudly;
with `TEST_SERVERS=required` they fail instead. Tests keep to topics and keys of their own.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

import pytest

from deploy.local import Kafka, Redis, RedisCluster, StartFailed
from deploy.local.kafka import missing_requirement as missing_for_kafka
from deploy.local.redis import missing_requirement as missing_for_redis

Server = TypeVar("Server", Kafka, Redis, RedisCluster)

LEFT_OUT = "left out, no server: "
CURE = "`make servers` installs what is missing"


def require(reason: str | None) -> None:
    """Where there is a reason, leave the test out, or fail it if servers are required."""
    if reason is None:
        return
    if os.environ.get("TEST_SERVERS") == "required":
        pytest.fail(f"{reason}; {CURE}", pytrace=False)
    pytest.skip(LEFT_OUT + reason)


@pytest.fixture(scope="session")
def local_kafka() -> None:
    """For tests that start brokers of their own."""
    require(missing_for_kafka())


@pytest.fixture(scope="session")
def local_redis() -> None:
    """For tests that start servers of their own."""
    require(missing_for_redis())


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Kafka."""
    if given := os.environ.get("TEST_KAFKA"):
        yield given
        return
    require(missing_for_kafka())
    with _running(request, Kafka(tmp_path_factory.mktemp("kafka"))) as server:
        yield server.address


@pytest.fixture(scope="session")
def redis(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Redis."""
    if given := os.environ.get("TEST_REDIS"):
        yield given
        return
    require(missing_for_redis())
    with _running(request, Redis(tmp_path_factory.mktemp("redis"))) as server:
        yield server.url


@pytest.fixture(scope="session")
def redis_cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a node of a Redis Cluster of three."""
    if given := os.environ.get("TEST_REDIS_CLUSTER"):
        yield given
        return
    require(missing_for_redis())
    with _running(request, RedisCluster(tmp_path_factory.mktemp("cluster"))) as server:
        yield server.url


@contextmanager
def _running(request: pytest.FixtureRequest, server: Server) -> Iterator[Server]:
    """The server runs within; its folder, with its log, is kept where a test failed."""
    try:
        server.start()
        yield server
    except StartFailed as failed:
        pytest.fail(str(failed), pytrace=False)
    finally:
        server.kill()
        if not request.session.testsfailed:
            shutil.rmtree(server.folder, ignore_errors=True)


NO_BROWSER = "there is no Chromium (Debian: apt-get install chromium)"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says loudly what was not tested."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [str(report.longrepr) for report in skipped if LEFT_OUT in str(report.longrepr)]
    if reasons:
        whys = sorted({reason.partition(LEFT_OUT)[2].rstrip("')") for reason in reasons})
        terminalreporter.section("NOT TESTED", sep="!", red=True, bold=True)
        terminalreporter.line(f"{len(reasons)} tests of the servers were left out: {'; '.join(whys)}.", red=True)
        terminalreporter.line(f"{CURE}; TEST_SERVERS=required makes this a failure.", red=True)
    if any(NO_BROWSER in str(report.longrepr) for report in skipped):
        terminalreporter.section("NOT TESTED", sep="!", red=True, bold=True)
        terminalreporter.line(f"The page: {NO_BROWSER}; TEST_BROWSER=required makes this a failure.", red=True)


def in_one_worker(name: str) -> pytest.MarkDecorator:
    """Tests marked so with one name run in one process of several, so that what they share is started once.

    Modules have names of their own: with one name for all, the other processes would end long before theirs.
    """
    return pytest.mark.xdist_group(name)
