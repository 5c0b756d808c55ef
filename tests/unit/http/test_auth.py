"""Which addresses only this machine can reach, and which requests pass the guard."""

import httpx
import pytest
from starlette.responses import PlainTextResponse

from stream_car.http.auth import Guard, is_loopback

pytestmark = pytest.mark.anyio
TOKEN = "the-token-of-these-tests"


async def status_of(path: str, *, token: str | None = None, **headers: str) -> int:
    """Return the status of a request through the guard of a service that is called car.example."""
    guard = Guard(PlainTextResponse("data"), hosts={"car.example", "localhost"}, token=token)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://car.example") as client:
        return (await client.get(path, headers=given)).status_code


@pytest.mark.parametrize("host", ["car.example", "car.example/static/y?", "car.example/livez#", "car.example:80"])
async def test_what_needs_a_token_is_decided_by_the_path_whatever_the_host_header_says(host: str) -> None:
    guard = Guard(PlainTextResponse("data"), token=TOKEN)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://car.example") as client:
        response = await client.get("/v1/status", headers={"Host": host})
    assert response.status_code == 401


@pytest.mark.parametrize("path", ["/", "/livez", "/static/main.js"])
async def test_the_page_and_its_files_need_no_token_and_may_be_linked_from_anywhere(path: str) -> None:
    assert await status_of(path, token=TOKEN, sec_fetch_site="cross-site") == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"origin": "http://car.example.evil.example"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
    ],
)
async def test_a_request_that_another_site_makes_a_browser_send_is_rejected(headers: dict[str, str]) -> None:
    assert await status_of("/v1/status", **headers) == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://car.example"},
        {"origin": "https://car.example:8443"},
        {"sec_fetch_site": "same-origin"},
        {"sec_fetch_site": "none"},
        {"host": "localhost:8377", "origin": "http://localhost:8377"},
    ],
)
async def test_the_own_page_and_programs_are_served(headers: dict[str, str]) -> None:
    assert await status_of("/v1/status", **headers) == 200


async def test_every_answer_tells_browsers_not_to_guess_and_not_to_share() -> None:
    guard = Guard(PlainTextResponse("data"), token=TOKEN)
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
