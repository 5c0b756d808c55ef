"""Which pages there are and who may see them, and what is audited if the service fails."""

import logging
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

import httpx
import msgspec
import pytest

from stream_car.api.operations import OPERATIONS, PUBLISH_PATH, SUBSCRIBE_PATH
from stream_car.api.requests import Request, Subscribe
from stream_car.errors import Unavailable
from stream_car.http.app import application
from stream_car.http.clients import parse_proxies
from stream_car.http.tokens import Principal, Tokens
from stream_car.subscriptions.events import Event

pytestmark = pytest.mark.anyio
A = TypeVar("A")
TOKEN = "the-token-of-these-tests"
OPEN = {"/", "/livez", "/readyz"}


class FailingService:
    """A service that does nothing but fail."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def call(self, request: Request[A]) -> A:
        raise self.error

    async def subscribe(self, request: Subscribe, client: str = "") -> AsyncIterator[Sequence[Event]]:
        raise self.error

    async def require_ready(self) -> str:
        raise self.error


def client(error: Exception, tokens: Tokens | None = None) -> httpx.AsyncClient:
    app = application(FailingService(error), version="0", hosts={"car.example"}, tokens=tokens)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://car.example")


async def test_a_page_is_open_to_everybody_only_if_it_is_listed_here() -> None:
    app = application(FailingService(Unavailable("not now")), version="0", hosts={"car.example"})
    paths = {str(path).replace(":anything", "") for route in app.routes if (path := getattr(route, "path", ""))}

    others = {PUBLISH_PATH, SUBSCRIBE_PATH, "/metrics", "/openapi.json", *OPEN}
    assert {path for path in paths if not path.startswith("/static/")} == {op.path for op in OPERATIONS} | others


async def test_a_token_without_a_role_sees_the_description_alone() -> None:
    known = Tokens.of(TOKEN).find(TOKEN)
    assert known is not None
    others = [("POST", PUBLISH_PATH), ("GET", SUBSCRIBE_PATH), ("GET", "/metrics")]
    async with client(
        Unavailable("not now"), Tokens([Principal(name="nobody", roles=frozenset(), hash=known.hash)])
    ) as http:
        http.headers["Authorization"] = f"Bearer {TOKEN}"
        denied = [
            await http.request(method, path) for method, path in [*((op.method, op.path) for op in OPERATIONS), *others]
        ]
        described = await http.get("/openapi.json")

    assert {response.status_code for response in denied} == {403}
    assert described.status_code == 200


@pytest.mark.parametrize(("proxy", "logged"), [("127.0.0.1", "203.0.113.9"), ("10.0.0.1", "127.0.0.1")])
async def test_the_logs_name_the_client_behind_a_trusted_proxy_and_believe_no_other(
    proxy: str, logged: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "stream_car")
    service = FailingService(Unavailable("not now"))
    app = application(service, version="0", hosts={"car.example"}, proxies=parse_proxies([proxy]))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://car.example") as http:
        await http.post("/v1/documents", json={"id": "a"}, headers={"X-Forwarded-For": "203.0.113.9"})
    lines = [record.getMessage() for record in caplog.records if record.name.startswith("stream_car")]

    assert [msgspec.json.decode(line)["address"] for line in lines] == [logged, logged]


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(Unavailable("not now", "in_flight"), 503, "in_flight"), (RuntimeError("a defect"), 500, "internal")],
)
async def test_a_publication_that_failed_is_audited_because_it_may_have_been_carried_out(
    error: Exception, status: int, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "stream_car")
    async with client(error) as http:
        response = await http.post("/v1/documents", json={"id": "a"})
    audited, access = [record for record in caplog.records if record.name.startswith("stream_car")]

    assert response.status_code == status
    assert msgspec.json.decode(audited.getMessage(), type=dict[str, str]) == {
        "operation": "publish", "address": "127.0.0.1", "error": code,
    }  # fmt: skip
    assert (access.levelname, msgspec.json.decode(access.getMessage())["status"]) == ("WARNING", status)
