"""What each role may do over HTTP, and what becomes of a token that is revoked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import stream_car
from stream_car.api.operations import OPERATIONS, ROLES, Role
from stream_car.errors import InvalidRequest
from stream_car.http import tokens as tokens_module
from stream_car.http.tokens import TokenFile, make_token
from stream_car.settings import ServerSettings
from tests.support.back_ends import in_the_gate, on_both, only_embedded
from tests.support.command_line import run
from tests.support.http_service import CLAIM, Running, code_of, serving, take, take_until

pytestmark = on_both
MADE = {role: make_token(f"the-{role}", [role]) for role in ROLES}
TOKEN = {role: token for role, (token, _) in MADE.items()}
OTHER_PATHS: list[tuple[str, str, Role | None]] = [
    ("POST", "/v1/documents", "publish"),
    ("GET", "/v1/subscribe?after=x", "read"),
    ("GET", "/metrics", "metrics"),
    ("GET", "/openapi.json", None),
]
PATHS = [*((operation.method, operation.path, operation.role) for operation in OPERATIONS), *OTHER_PATHS]


def write(path: Path, *roles: Role) -> Path:
    """Write a file with the tokens of these roles."""
    path.write_text("".join(f"{MADE[role][1]}\n" for role in roles))
    return path


@asynccontextmanager
async def serving_roles(path: Path) -> AsyncIterator[Running]:
    """Serve with a token for each role; requests have none by default."""
    settings = ServerSettings(port=0, heartbeat_s=0.05)
    async with serving(settings=settings, tokens=TokenFile(write(path, *ROLES))) as running:
        yield running


def bearer(role: Role) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKEN[role]}"}


@in_the_gate
async def test_each_path_is_open_to_its_role_and_to_admin_alone(tmp_path: Path) -> None:
    async with serving_roles(tmp_path / "tokens") as running:
        for method, path, needed in PATHS:
            for role in ROLES:
                response = await running.client.request(method, path, headers=bearer(role))
                is_denied = response.status_code == 403
                assert is_denied == (needed is not None and role not in (needed, "admin")), (method, path, role)
                if is_denied:
                    assert code_of(response) == "role"
                    assert f"`the-{role}` does not have the role `{needed}`" in response.json()["detail"]
        unknown = [await running.client.get("/v1/none", headers=headers) for headers in ({}, bearer("read"))]
        description = (await running.client.get("/openapi.json", headers=bearer("read"))).json()

    assert [response.status_code for response in unknown] == [401, 404]
    for method, path, needed in PATHS[: len(OPERATIONS)]:
        assert {"token": [needed]} in description["paths"][path][method.lower()]["security"]


HEADS = {
    "GET http://evil.example/static/main.js HTTP/1.1\r\nHost: localhost": 401,
    "GET http://evil.example/livez HTTP/1.1\r\nHost: localhost": 401,
    "GET //livez HTTP/1.1\r\nHost: localhost": 401,
    "GET /v1/status;/static/ HTTP/1.1\r\nHost: localhost": 401,
    "GET /static/../v1/status HTTP/1.1\r\nHost: localhost": 404,
    "GET /static/%2e%2e/v1/status HTTP/1.1\r\nHost: localhost": 404,
    "GET /v1/status HTTP/1.1\r\nHost: localhost/static/y?": 421,
    "GET /v1/status HTTP/1.1\r\nHost: evil.example@localhost": 421,
    "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nHost: localhost": 400,
    "GET /v1/status HTTP/1.0": 421,
}


@only_embedded("the same server")
@pytest.mark.parametrize(("head", "status"), HEADS.items())
async def test_no_spelling_of_a_request_without_a_token_reaches_data(tmp_path: Path, head: str, status: int) -> None:
    async with serving_roles(tmp_path / "tokens") as running:
        reader, writer = await running.connect()
        writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode())
        response = await reader.read()
        writer.close()

    assert response.startswith(f"HTTP/1.1 {status} ".encode())


@in_the_gate
async def test_rejected_input_is_shown_to_admin_alone(tmp_path: Path) -> None:
    async with serving_roles(tmp_path / "tokens") as running:
        published = await running.client.post(
            "/v1/documents", json=[{"password": "a-secret"}, CLAIM], headers=bearer("publish")
        )
        await running.rest()
        shown = {}
        for role in ROLES:
            texts = []
            for method, path, needed in PATHS:
                if needed in (role, "admin") and method == "GET" and "subscribe" not in path:
                    texts.append((await running.client.get(path, headers=bearer(role))).text)
            shown[role] = "a-secret" in "".join(texts)

    assert published.status_code == 200 and "a-secret" not in published.text
    assert shown == {"read": False, "publish": False, "metrics": False, "admin": True}


@in_the_gate
async def test_clients_and_the_command_line_say_which_role_is_missing(tmp_path: Path) -> None:
    async with serving_roles(tmp_path / "tokens") as running:
        async with stream_car.connect_async(running.url, token=TOKEN["publish"]) as feed:
            await feed.publish([CLAIM])
            with pytest.raises(InvalidRequest, match="`the-publish` does not have the role `read`") as caught:
                await feed.query("tea")
        await running.rest()
        resolved = await run("resolve", "claim-1", "--url", running.url, STREAM_CAR_TOKEN=TOKEN["read"])
        denied = await run("rejected", "list", "--url", running.url, STREAM_CAR_TOKEN=TOKEN["read"])
        listed = await run("rejected", "list", "--url", running.url, STREAM_CAR_TOKEN=TOKEN["admin"])

    assert caught.value.code == "role"
    assert (resolved.exit_code, denied.exit_code, listed.exit_code) == (0, 2, 0), denied.stderr
    assert "`the-read` does not have the role `admin`" in denied.stderr


async def test_a_subscription_ends_when_its_token_is_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens_module, "RECHECK_S", 0.0)
    path = tmp_path / "tokens"
    async with serving_roles(path) as running:
        running.client.headers.update(bearer("read"))
        async with running.subscribe() as events, asyncio.timeout(20):
            await take_until(events, "snapshot-end")
            await take(events, 2)
            write(path, "publish", "admin")
            async for event in events:
                assert event.event == ""
        again = await running.client.get("/v1/subscribe")
        metrics = (await running.client.get("/metrics", headers=bearer("admin"))).text

    assert (again.status_code, code_of(again)) == (401, "token")
    assert "stream_car_tokens_stale 0.0" in metrics


async def test_a_spoiled_file_keeps_the_tokens_in_force_and_a_metric_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens_module, "RECHECK_S", 0.0)
    path = tmp_path / "tokens"
    async with serving_roles(path) as running:
        path.write_text("the-admin admin\n")
        metrics = await running.client.get("/metrics", headers=bearer("admin"))

    assert metrics.status_code == 200
    assert "stream_car_tokens_stale 1.0" in metrics.text
