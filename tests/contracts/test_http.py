"""The service keeps to its own description: generated requests find no defect and no undocumented answer."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck
from requests.adapters import HTTPAdapter
from schemathesis import Case, GenerationMode
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import negative_data_rejection

from stream_car.api.messages import TIMEOUT_MAX_MS
from tests.chaos.installation import Installation
from tests.support.back_ends import over_servers
from tests.support.http_service import serving

GATE, SLOW = 25, 250  # requests of either kind
TOKEN = "the-token-of-these-tests"
OPERATIONS = (
    "query",
    "relevance",
    "resolve",
    "check",
    "frontier",
    "history",
    "changes",
    "explain",
    "rejected",
    "pending",
    "rules",
    "status",
    "publish",
    "replay",
    "rebuild",
    "rebuilding",
    "subscribe",
)
WITHOUT_INPUT = ("pending", "rules", "status", "rebuilding")
# What a description cannot say: whether a text is a time that exists, and which revisions were published.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 409, 422, 504]

[checks.negative_data_rejection]
expected-statuses = [400, 404, 405, 409, 413, 415, 422]

[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 504]
"""
PATIENCE_MS = 20


@pytest.fixture(scope="module", params=["embedded", over_servers(quick=False)])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that runs beside the tests; over Kafka and Redis all are processes of their own."""
    if request.param == "embedded":
        yield from beside(embedded())
        return
    kafka, redis = request.getfixturevalue("kafka"), request.getfixturevalue("redis")
    yield from beside(over(kafka, redis, tmp_path_factory.mktemp("processes")))


@asynccontextmanager
async def embedded() -> AsyncIterator[str]:
    """One engine."""
    async with serving(token=TOKEN) as running:
        yield running.url


@asynccontextmanager
async def over(kafka: str, redis: str, folder: Path) -> AsyncIterator[str]:
    """A worker and a query worker."""
    async with Installation(kafka, redis, folder, rules=()).open() as here:
        await here.worker().assigned(5)
        query = here.serving(token=TOKEN)
        await query.ready()
        yield await query.url()


def beside(running: AbstractAsyncContextManager[str]) -> Iterator[str]:
    """The address, while a thread keeps it running."""
    told: list[str] = []
    started = threading.Event()
    loop = asyncio.new_event_loop()
    end = asyncio.Event()

    async def run() -> None:
        async with running as url:
            told.append(url)
            started.set()
            await end.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert started.wait(90)
    yield told[0]
    loop.call_soon_threadsafe(end.set)
    thread.join()
    loop.close()


class Impatient(HTTPAdapter):
    """Reads the beginning of a stream that has no end, and all of every other body."""

    def send(  # type: ignore[override]  # the rest is handed on as it is
        self, request: requests.PreparedRequest, stream: bool = False, **options: object
    ) -> requests.Response:
        response = super().send(request, stream=True, **options)  # type: ignore[arg-type]
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            response._content = response.raw.read(8)
            response.close()
        return response


def check(url: str, name: str, mode: GenerationMode, cases: int) -> int:
    """Send generated requests of one operation with every check; how many were sent."""
    config = SchemathesisConfig.from_str(CONFIG)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=config, headers=headers)
    operation = schema.find_operation_by_id(name)
    session = requests.Session()
    session.mount("http://", Impatient())
    sent = 0

    @hypothesis.settings(
        max_examples=cases,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def attempt(case: Case) -> None:  # type: ignore[type-arg]
        nonlocal sent
        sent += 1
        body = case.body
        if isinstance(body, dict):
            asked = body.get("timeout_ms")
            if isinstance(asked, int) and PATIENCE_MS < asked <= TIMEOUT_MAX_MS:
                body["timeout_ms"] = PATIENCE_MS
        response = case.call(base_url=url, session=session, headers=headers)
        # Of an array each document is refused for itself, what cannot be cut into documents too: a receipt says so.
        is_told = name == "publish" and b'"rejected"' in response.content
        case.validate_response(response, headers=headers, excluded_checks=[negative_data_rejection] if is_told else [])

    attempt()
    return sent


@pytest.mark.parametrize("name", OPERATIONS)
def test_good_requests_are_answered_as_described(url: str, name: str) -> None:
    assert check(url, name, GenerationMode.POSITIVE, GATE) >= 1


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in WITHOUT_INPUT])
def test_bad_requests_are_refused_as_described(url: str, name: str) -> None:
    assert check(url, name, GenerationMode.NEGATIVE, GATE) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_many_requests_find_nothing(url: str, name: str) -> None:
    assert check(url, name, GenerationMode.POSITIVE, SLOW) >= 1
    if name not in WITHOUT_INPUT:
        assert check(url, name, GenerationMode.NEGATIVE, SLOW) >= 1
