"""Nobody waits for ever: not for a slow client, and not for a publisher that has died."""

import asyncio

import pytest

from stream_car.http import bodies, slow_clients
from tests.integration.test_service import CLAIM, DENIAL, code_of, connected, published
from tests.support.http_service import Running, serving

HEAD = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


async def all_that_comes(reader: asyncio.StreamReader) -> bytes:
    """Everything until the server closes."""
    async with asyncio.timeout(20):
        return await reader.read()


@pytest.mark.parametrize("said", [b"", b"GET /v1/status HT", HEAD])
async def test_a_connection_that_brings_no_whole_request_is_closed(
    said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_clients, "HEAD_S", 0.05)
    async with serving() as running:
        reader, writer = await connected(running)
        writer.write(said)
        answer = await all_that_comes(reader)
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_head_that_drips_gets_no_more_time_than_one_that_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_clients, "HEAD_S", 0.2)

    async def drip(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"X-Drop: 1\r\n")
            await asyncio.sleep(0.01)

    async with serving() as running:
        reader, writer = await connected(running)
        writer.write(HEAD)
        dripping = asyncio.create_task(drip(writer))
        answer = await all_that_comes(reader)
        dripping.cancel()
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_second_request_on_a_connection_has_as_long_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_clients, "HEAD_S", 0.5)
    async with serving() as running:
        reader, writer = await connected(running)
        writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        first = await reader.readuntil(b"alive\n")
        writer.write(b"GET /livez HT")
        rest = await all_that_comes(reader)
        writer.close()

    assert first.startswith(b"HTTP/1.1 200 ")
    assert rest.startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_comes_too_slowly_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "PATIENCE_S", 0.05)
    async with serving() as running:
        reader, writer = await connected(running)
        writer.write(HEAD + b"Content-Length: 1000\r\n\r\n{")
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readuntil(b"}")
        writer.close()

    assert head.startswith(b"HTTP/1.1 408 ")
    assert b'"slow_body"' in body


async def killed(running: Running, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Two publications wait while the task that serves both dies; their statuses."""

    def broken(_: int) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(running.engine, "advance", broken)
    async with asyncio.timeout(20):
        both = await asyncio.gather(*(running.post("/v1/documents", one) for one in (CLAIM, DENIAL)))
    monkeypatch.undo()
    return [response.status_code for response in both]


async def test_when_publishing_has_died_everyone_is_told_and_questions_are_still_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as running:
        ready = (await running.get("/readyz")).status_code
        await published(running, CLAIM)
        waited = await killed(running, monkeypatch)
        later = await running.post("/v1/documents", DENIAL)
        unready = await running.get("/readyz")
        answer = await running.post("/v1/resolve", {"names": ["claim-1"]})

    assert (ready, waited) == (200, [503, 503])
    assert (later.status_code, code_of(later)) == (503, "unavailable")
    assert "restart" in later.json()["detail"]
    assert (unready.status_code, code_of(unready)) == (503, "unavailable")
    assert (answer.status_code, answer.json()[0]["status"]) == (200, "active")
