"""Bodies share a limited memory: they wait for room, and the slowest of the client that holds most gives way."""

import asyncio

import pytest
from starlette.requests import Request
from starlette.types import Message

from stream_car.http import body_room
from stream_car.http.bodies import whole
from stream_car.http.body_room import BodyRoom
from stream_car.http.problems import HttpError

ROOM = 100


class Sender:
    """A client that sends parts of a body when the test says so."""

    def __init__(self, room: BodyRoom, client: str) -> None:
        self._parts: asyncio.Queue[bytes] = asyncio.Queue()
        self.waiting = asyncio.Event()  # until the service asks for the next part
        self.reading = asyncio.create_task(self._read(room, client))

    async def _read(self, room: BodyRoom, client: str) -> int:
        async def receive() -> Message:
            self.waiting.set()
            part = await self._parts.get()
            self.waiting.clear()
            return {"type": "http.request", "body": part, "more_body": bool(part)}

        with room.body(Request({"type": "http", "headers": []}, receive), client, 1000) as body:
            return len(await whole(body))

    async def send(self, size: int) -> None:
        """Send a part, and return when the service waits for the next one."""
        await self.waiting.wait()
        self.waiting.clear()
        self._parts.put_nowait(b"x" * size)
        await self.waiting.wait()

    def send_last(self, size: int) -> None:
        self._parts.put_nowait(b"x" * size)
        self._parts.put_nowait(b"")

    async def rejection(self) -> HttpError:
        with pytest.raises(HttpError) as caught:
            await self.reading
        return caught.value


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> BodyRoom:
    monkeypatch.setattr(body_room, "BASE", 0)
    monkeypatch.setattr(body_room, "GRACE_S", 0.0)
    monkeypatch.setattr(body_room, "CHECK_S", 0.01)
    return BodyRoom(ROOM)


async def test_a_body_waits_until_there_is_room(room: BodyRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_room, "FAST_RATE", 0)  # nobody counts as slow
    first, second = Sender(room, "a"), Sender(room, "b")
    await first.send(80)
    second.send_last(50)
    await asyncio.sleep(0.05)
    assert not second.reading.done()
    first.send_last(10)

    assert (await first.reading, await second.reading) == (90, 50)
    assert room.held == 0


async def test_the_slowest_body_of_the_client_that_holds_most_gives_way(room: BodyRoom) -> None:
    heavy = [Sender(room, "heavy") for _ in range(2)]
    await heavy[0].send(40)
    await heavy[1].send(20)
    light = Sender(room, "light")
    await light.send(1)  # slower than both
    newcomer = Sender(room, "new")
    newcomer.send_last(50)

    error = await heavy[1].rejection()
    heavy[0].send_last(0)
    light.send_last(1)

    assert (error.status, error.code, error.headers["Retry-After"]) == (503, "unavailable", "5")
    assert (await newcomer.reading, await light.reading, await heavy[0].reading) == (50, 2, 40)


async def test_bodies_that_all_wait_for_room_do_not_wait_forever(
    room: BodyRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_room, "FAST_RATE", 0)
    first, second = Sender(room, "a"), Sender(room, "b")
    await first.send(50)
    await second.send(50)
    first.send_last(10)
    await asyncio.sleep(0)
    second.send_last(10)

    error = await second.rejection()

    assert (error.status, error.code) == (503, "unavailable")
    assert await first.reading == 60


async def test_only_the_time_that_the_client_takes_counts(room: BodyRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_room, "PATIENCE_S", 0.05)
    sender = Sender(room, "a")
    with room.body(Request({"type": "http", "headers": []}), "b", 1000) as other:
        await other.hold(ROOM)
        sender.send_last(50)
        await asyncio.sleep(0.1)  # the service itself is slow

    assert await sender.reading == 50
