"""The server is killed during load: a subscriber that comes back with its cursor has missed nothing."""

import asyncio
from contextlib import suppress
from pathlib import Path
from random import Random

import httpx
import msgspec
import pytest

import stream_car
from stream_car.api.arguments import ALL
from stream_car.api.json import to_json
from stream_car.queries.changes import Position
from stream_car.subscriptions.cursor import Cursor
from tests.support.constant_part import constant_part
from tests.support.http_service import LINES, received_events
from tests.support.processes.publisher import RULE_PACKS, message
from tests.support.server_process import Server

RULES = [word for name in RULE_PACKS for word in ("--rules", name)]
BATCH = 20


class RawScopeChange(msgspec.Struct):
    """The change in an event, byte for byte."""

    change: msgspec.Raw


class Follower:
    """Every change that was received, by its number; the cursor only goes forward."""

    def __init__(self) -> None:
        self.cursor: str | None = None
        self.last = 0
        self.changes: dict[int, bytes] = {}

    async def follow(self, client: httpx.AsyncClient) -> None:
        """Receive events until the connection breaks."""
        headers = {"Last-Event-ID": self.cursor} if self.cursor is not None else {}
        parameters = {"view": "scope", "snapshot": "false"}
        async with client.stream("GET", "/v1/subscribe", params=parameters, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            async for event in received_events(response.aiter_lines()):
                number = Cursor.parse(event.id).numbers[0]
                assert number > self.last, "a cursor went back"
                self.cursor, self.last = event.id, number
                if event.event == "scope-change":
                    change = bytes(msgspec.json.decode(event.data, type=RawScopeChange).change)
                    assert self.changes.setdefault(number, change) == change
                else:
                    assert event.event == "heartbeat"


class Publisher:
    """Sends the same messages again until they are acknowledged."""

    def __init__(self) -> None:
        self.acknowledged = 0

    async def publish(self, client: httpx.AsyncClient) -> None:
        """Send batch after batch until the connection breaks."""
        while True:
            batch = [message(n) for n in range(self.acknowledged, self.acknowledged + BATCH)]
            response = await client.post("/v1/documents", content=b"\n".join(batch), headers=LINES)
            assert response.status_code == 200, response.text
            assert len(response.json()["receipts"]) == BATCH
            self.acknowledged += BATCH


async def run_until_killed(server: Server, follower: Follower, publisher: Publisher, seconds: float) -> None:
    """Publish and follow, and end the server as a power cut would."""

    async def until_broken(work: asyncio.Task[None]) -> None:
        with suppress(httpx.TransportError):
            await work

    async with httpx.AsyncClient(base_url=server.url, timeout=20) as client:
        tasks = [asyncio.create_task(follower.follow(client)), asyncio.create_task(publisher.publish(client))]
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        server.kill()
        await asyncio.gather(*(until_broken(task) for task in tasks))


async def catch_up(server: Server, follower: Follower) -> None:
    """Follow until everything so far is received."""
    async with httpx.AsyncClient(base_url=server.url, timeout=20) as client:
        cursor = (await client.get("/v1/status")).json()["cursor"]
        task = asyncio.create_task(follower.follow(client))
        async with asyncio.timeout(20):
            while follower.last < Cursor.parse(cursor).numbers[0] and not task.done():
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def kill_often(folder: Path, times: int, seed: int) -> None:
    random = Random(seed)
    follower, publisher = Follower(), Publisher()
    with stream_car.open(folder, rules=RULE_PACKS) as engine:
        follower.cursor = engine.status().cursor
    for _ in range(times):
        with Server(folder, *RULES) as server:
            asyncio.run(run_until_killed(server, follower, publisher, random.uniform(0.05, 0.4)))
    (folder / "quick.toml").write_text("heartbeat_s = 0.05\n")
    with Server(folder, *RULES, "--settings", str(folder / "quick.toml")) as server:
        asyncio.run(catch_up(server, follower))
    with stream_car.open(folder, rules=RULE_PACKS) as engine:
        assert engine.status().next_offset >= publisher.acknowledged >= times
        listed = engine.changes(limit=ALL)
        changes = {Position.parse(change.position).number: to_json(change).encode() for change in listed}
    assert {n: constant_part(v) for n, v in follower.changes.items()} == {
        n: constant_part(v) for n, v in changes.items()
    }


def test_twenty_kills_lose_no_change_and_repeat_none_differently(tmp_path: Path) -> None:
    kill_often(tmp_path, times=20, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_two_hundred_kills_do_not_either(block: int, tmp_path: Path) -> None:
    kill_often(tmp_path, times=20, seed=100 * (block + 1))
