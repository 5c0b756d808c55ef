"""The service keeps to its own description: generated requests find no defect and no undocumented answer."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import hypothesis
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck
from msgspec import Struct
from requests.adapters import HTTPAdapter
from schemathesis import Case, GenerationMode
from schemathesis.checks import CheckFunction
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import negative_data_rejection

from stream_car.api.operations import OPERATIONS
from stream_car.api.requests import TIMEOUT_MAX_MS
from stream_car.cluster.service import UNSUPPORTED
from tests.chaos.installation import Installation
from tests.support.back_ends import over_servers
from tests.support.background import in_background
from tests.support.http_service import TOKEN, serving

GATE, SLOW = 25, 250  # requests of either kind
REQUESTS: dict[str, type[Struct]] = {operation.name: operation.request for operation in OPERATIONS}
NAMES = (*REQUESTS, "publish", "subscribe")
WITHOUT_INPUT = tuple(operation.name for operation in OPERATIONS if not operation.request.__struct_fields__)
# What a description cannot express: whether a text is a time that exists, and which revisions were published.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 409, 422, 504{unsupported}]

[checks.negative_data_rejection]
expected-statuses = [400, 401, 404, 405, 409, 413, 415, 422]

[checks.not_a_server_error]
expected-statuses = ["2xx", "3xx", "4xx", 504{unsupported}]
"""
TIMEOUT_MS = 20


class Served(Struct, frozen=True):
    """A service, and the requests that its back end does not support: their answer is 501."""

    url: str
    unsupported: tuple[type[Struct], ...] = ()


@pytest.fixture(scope="module", params=["embedded", over_servers(quick=False)])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that runs beside the tests; over Kafka and Redis all are processes of their own."""
    if request.param == "embedded":
        opening = embedded()
    else:
        kafka, redis = request.getfixturevalue("kafka"), request.getfixturevalue("redis")
        opening = over(kafka, redis, tmp_path_factory.mktemp("processes"))
    with in_background(opening) as running:
        yield running.value


@asynccontextmanager
async def embedded() -> AsyncIterator[Served]:
    """Run a service over one data directory."""
    async with serving(token=TOKEN) as running:
        yield Served(running.url)


@asynccontextmanager
async def over(kafka: str, redis: str, folder: Path) -> AsyncIterator[Served]:
    """Run a worker and a query worker."""
    async with Installation(kafka, redis, folder, rules=()).open() as installation:
        await installation.worker().assigned(5)
        query = installation.query_worker(token=TOKEN)
        await query.ready()
        yield Served(await query.url(), unsupported=tuple(UNSUPPORTED))


class StreamCutter(HTTPAdapter):
    """Reads the beginning of a stream that has no end, and all of every other body."""

    def send(  # type: ignore[override]  # the rest is handed on as it is
        self, request: requests.PreparedRequest, stream: bool = False, **options: object
    ) -> requests.Response:
        response = super().send(request, stream=True, **options)  # type: ignore[arg-type]
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            response._content = response.raw.read(8)
            response.close()
        return response


def check(service: Served, name: str, mode: GenerationMode, cases: int) -> int:
    """Send generated requests of one operation with every check, and return how many were sent."""
    url, unsupported = service.url, REQUESTS.get(name) in service.unsupported
    config = SchemathesisConfig.from_str(CONFIG.format(unsupported=", 501" if unsupported else ""))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=config, headers=headers)
    operation = schema.find_operation_by_id(name)
    session = requests.Session()
    session.mount("http://", StreamCutter())
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
            timeout_ms = body.get("timeout_ms")
            if isinstance(timeout_ms, int) and TIMEOUT_MS < timeout_ms <= TIMEOUT_MAX_MS:
                body["timeout_ms"] = TIMEOUT_MS
        response = case.call(base_url=url, session=session, headers=headers)
        # Each document of an array is rejected by its receipt, and so is what cannot be cut into documents.
        has_receipt = name == "publish" and b'"rejected"' in response.content
        excluded: list[CheckFunction] = [negative_data_rejection] if has_receipt else []
        case.validate_response(response, headers=headers, excluded_checks=excluded)

    attempt()
    return sent


@pytest.mark.parametrize("name", NAMES)
def test_valid_requests_are_answered_as_described(service: Served, name: str) -> None:
    assert check(service, name, GenerationMode.POSITIVE, GATE) >= 1


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_INPUT])
def test_invalid_requests_are_rejected_as_described(service: Served, name: str) -> None:
    assert check(service, name, GenerationMode.NEGATIVE, GATE) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_requests_find_nothing(service: Served, name: str) -> None:
    assert check(service, name, GenerationMode.POSITIVE, SLOW) >= 1
    if name not in WITHOUT_INPUT:
        assert check(service, name, GenerationMode.NEGATIVE, SLOW) >= 1
