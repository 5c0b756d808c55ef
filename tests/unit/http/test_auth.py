"""Which addresses only this machine can reach, and which requests pass the guard."""

from collections.abc import Mapping

import httpx
import pytest
from starlette.responses import PlainTextResponse

from stream_car.http.auth import Guard, is_loopback
from stream_car.http.tokens import Tokens

pytestmark = pytest.mark.anyio
NONE: Mapping[str, str] = {}
TOKEN = "the-token-of-these-tests"


async def status_of(
    path: str, headers: Mapping[str, str] = NONE, *, token: str | None = None, any_address: bool = False
) -> int:
    """Return the status of a request through the guard of a service that is called car.example."""
    tokens = Tokens.of(token) if token is not None else None
    guard = Guard(PlainTextResponse("data"), hosts={"car.example", "localhost"}, any_address=any_address, tokens=tokens)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://car.example") as client:
        return (await client.get(path, headers=headers)).status_code


@pytest.mark.parametrize("host", ["car.example/static/y?", "car.example/livez#", "127.0.0.1/static/y?", "x@localhost"])
async def test_a_host_header_that_is_no_host_opens_nothing(host: str) -> None:
    assert await status_of("/v1/status", token=TOKEN, any_address=True, headers={"host": host}) == 421


@pytest.mark.parametrize("host", ["car.example", "CAR.example:80", "localhost:8377", "10.0.0.1", "[fd00::1]:8377"])
async def test_beyond_this_machine_its_names_and_any_address_are_served(host: str) -> None:
    assert await status_of("/v1/status", any_address=True, headers={"host": host}) == 200
    assert await status_of("/v1/status", any_address=True, token=TOKEN, headers={"host": host}) == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "car.example.evil.example", "10.0.0.1.evil.example", "", "10.0.0.1:x"]
)
async def test_another_name_is_not_served_although_it_leads_to_this_address(host: str) -> None:
    assert await status_of("/v1/status", any_address=True, headers={"host": host}) == 421


@pytest.mark.parametrize("host", ["10.0.0.1", "0.0.0.0:8377"])
async def test_on_this_machine_alone_an_address_is_a_host_like_any_other(host: str) -> None:
    assert await status_of("/v1/status", headers={"host": host}) == 421


@pytest.mark.parametrize("path", ["/", "/livez", "/static/main.js"])
async def test_the_page_and_its_files_need_no_token_and_may_be_linked_from_anywhere(path: str) -> None:
    assert await status_of(path, token=TOKEN, headers={"sec-fetch-site": "cross-site"}) == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"origin": "http://car.example.evil.example"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
async def test_a_request_that_another_site_makes_a_browser_send_is_rejected(headers: dict[str, str]) -> None:
    assert await status_of("/v1/status", headers) == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://car.example"},
        {"origin": "https://car.example:8443"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"host": "localhost:8377", "origin": "http://localhost:8377"},
    ],
)
async def test_the_own_page_and_programs_are_served(headers: dict[str, str]) -> None:
    assert await status_of("/v1/status", headers) == 200


async def test_every_answer_tells_browsers_not_to_guess_and_not_to_share() -> None:
    guard = Guard(PlainTextResponse("data"), hosts={"car.example"}, tokens=Tokens.of(TOKEN))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://car.example") as client:
        for path in ("/", "/v1/status"):
            response = await client.get(path)
            assert response.headers["x-content-type-options"] == "nosniff"
            assert response.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "localhost", "::1", "[::1]"])
def test_these_addresses_are_reached_by_this_machine_alone(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "127.0.0.1.example.org", "example.org", ""])  # noqa: S104
def test_other_machines_can_reach_these(host: str) -> None:
    assert not is_loopback(host)
