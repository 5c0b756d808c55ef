"""A subscriber is killed at random points during load: with its cursor in a file it misses nothing."""

import asyncio
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import msgspec
import pytest

import stream_car
from stream_car import Engine
from stream_car.api.arguments import ALL
from stream_car.api.json import to_json
from stream_car.queries.changes import Position
from stream_car.subscriptions.cursor import Cursor
from tests.support.constant_part import constant_part
from tests.support.http_service import LINES, Running, serving
from tests.support.processes.publisher import RULE_PACKS, message
from tests.support.repository import ROOT

BATCH = 5
WAIT_S = 60


class Record:
    """What the followers wrote down, one after the other."""

    def __init__(self, folder: Path, url: str) -> None:
        self.path = folder / "record"
        self.path.touch()
        self.cursor = folder / "cursor"
        self.program = [sys.executable, "-m", "tests.support.processes.follower", url, str(self.cursor), str(self.path)]

    def size(self) -> int:
        return self.path.stat().st_size

    async def exceed(self, size: int) -> None:
        """Wait until more than this is written down."""
        async with asyncio.timeout(WAIT_S):
            while self.size() <= size:
                await asyncio.sleep(0.002)

    async def have_cursor(self) -> None:
        """Wait until the next follower has a cursor to continue from."""
        async with asyncio.timeout(WAIT_S):
            while not self.cursor.exists():
                await asyncio.sleep(0.002)

    def lines(self) -> list[str]:
        """Whole lines, and perhaps halves that a killed follower left."""
        return self.path.read_text().splitlines()


async def publish_forever(running: Running) -> None:
    """Publish a little at a time until cancelled."""
    n = running.engine.status().next_offset
    while True:
        body = b"\n".join(message(number) for number in range(n, n + BATCH))
        response = await running.client.post("/v1/documents", content=body, headers=LINES)
        assert response.status_code == 200, response.text
        n += BATCH
        await asyncio.sleep(0.01)


async def kill_often(folder: Path, times: int, seed: int) -> tuple[list[str], dict[int, str]]:
    """Return what was written down over this many lives, and the changes that there were, by number."""
    random = Random(seed)
    async with serving(engine=stream_car.open(folder / "data", rules=RULE_PACKS)) as running:
        record = Record(folder, running.url)
        publishing = asyncio.create_task(publish_forever(running))
        for life in range(times):
            before = record.size()
            with subprocess.Popen(record.program, cwd=ROOT) as follower:
                try:
                    await (record.exceed(before) if life else record.have_cursor())
                    await asyncio.sleep(random.uniform(0, 0.05))
                finally:
                    follower.kill()
        publishing.cancel()
        with suppress(asyncio.CancelledError):
            await publishing
        await catch_up(record, running.engine)
        changes = running.engine.changes(limit=ALL)
        return record.lines(), {number_of(change.position): to_json(change) for change in changes}


async def catch_up(record: Record, engine: Engine) -> None:
    """Run one more follower, up to the last change."""
    last = engine.changes(limit=ALL)[-1].position
    with subprocess.Popen(record.program, cwd=ROOT) as follower:
        try:
            async with asyncio.timeout(WAIT_S):
                while f'"position":"{last}"' not in record.path.read_text():
                    await asyncio.sleep(0.01)
        finally:
            follower.kill()


def number_of(position: str) -> int:
    """Return the number in the position of a change."""
    return Position.parse(position).number


def check(lines: list[str], changes: dict[int, str], times: int) -> None:
    """After the last snapshot, every change was received, and a repeat is the same.

    Few lives needed a snapshot, because they had a cursor.
    """
    ends = [at for at, text in enumerate(lines) if text.startswith("snapshot-end ")]
    assert len(ends) < times / 2, "followers began again from a snapshot"
    cursor = Cursor.parse(lines[ends[-1]].split()[-1]).numbers[0]
    whole = [text for text in lines[ends[-1] :] if text.startswith('{"position"') and text.endswith("}")]
    received = [(number_of(msgspec.json.decode(text, type=Positioned).position), text) for text in whole]
    assert {number for number, _ in received} == {number for number in changes if number > cursor}
    assert all(constant_part(changes[number]) == constant_part(text) for number, text in received)
    assert len(received) > times


class Positioned(msgspec.Struct):
    """The position of a change."""

    position: str


async def test_a_follower_that_is_killed_misses_nothing(tmp_path: Path) -> None:
    check(*await kill_often(tmp_path, times=20, seed=1), times=20)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
async def test_a_follower_misses_nothing_at_two_hundred_points(block: int, tmp_path: Path) -> None:
    check(*await kill_often(tmp_path, times=20, seed=1000 * (block + 1)), times=20)
