"""Nobody waits forever: not for a slow client, and not after publishing has ended with an error."""

import asyncio

import pytest

from stream_car.http import body_room, connections
from tests.support.http_service import CLAIM, DENIAL, Running, code_of, serving

HEAD = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    """Return everything up to the end of the connection."""
    async with asyncio.timeout(20):
        return await reader.read()


@pytest.mark.parametrize("sent", [b"", b"GET /v1/status HT", HEAD])
async def test_a_connection_without_a_complete_request_is_closed(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.05)
    async with serving() as running:
        reader, writer = await running.connect()
        writer.write(sent)
        answer = await read_to_end(reader)
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_request_that_arrives_byte_by_byte_gets_no_more_time_than_one_that_stops(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.2)

    async def drip(writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(b"X-Drop: 1\r\n")
            await asyncio.sleep(0.01)

    async with serving() as running:
        reader, writer = await running.connect()
        writer.write(HEAD)
        dripping = asyncio.create_task(drip(writer))
        answer = await read_to_end(reader)
        dripping.cancel()
        writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_second_request_on_a_connection_has_as_long_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.5)
    async with serving() as running:
        reader, writer = await running.connect()
        writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        first = await reader.readuntil(b"alive\n")
        writer.write(b"GET /livez HT")
        rest = await read_to_end(reader)
        writer.close()

    assert first.startswith(b"HTTP/1.1 200 ")
    assert rest.startswith(b"HTTP/1.1 408 ")


async def test_a_body_that_arrives_too_slowly_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_room, "PATIENCE_S", 0.05)
    async with serving() as running:
        reader, writer = await running.connect()
        writer.write(HEAD + b"Content-Length: 1000\r\n\r\n{")
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readuntil(b"}")
        writer.close()

    assert head.startswith(b"HTTP/1.1 408 ")
    assert b'"slow_body"' in body


async def kill_publishing(running: Running, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """End the task that serves two publications with an error, and return the status of each."""

    def fail(_: int) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(running.engine.directory, "advance", fail)
    async with asyncio.timeout(20):
        responses = await asyncio.gather(*(running.post("/v1/documents", fields) for fields in (CLAIM, DENIAL)))
    monkeypatch.undo()
    return [response.status_code for response in responses]


async def test_when_publishing_has_ended_every_publisher_gets_an_error_and_questions_are_still_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as running:
        ready = (await running.get("/readyz")).status_code
        await running.post_documents(CLAIM)
        statuses = await kill_publishing(running, monkeypatch)
        later = await running.post("/v1/documents", DENIAL)
        unready = await running.get("/readyz")
        answer = await running.post("/v1/resolve", {"names": ["claim-1"]})

    assert (ready, statuses) == (200, [503, 503])
    assert (later.status_code, code_of(later)) == (503, "unavailable")
    assert "restart" in later.json()["detail"]
    assert (unready.status_code, code_of(unready)) == (503, "unavailable")
    assert (answer.status_code, answer.json()[0]["status"]) == (200, "in_force")
