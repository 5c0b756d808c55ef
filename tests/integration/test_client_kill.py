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
from stream_car.api.json import line
from stream_car.local.engine import Engine
from tests.support.http_service import Running, serving
from tests.support.processes.publisher import DOMAINS, said
from tests.support.repository import ROOT

BATCH = 5
ALL = 1 << 30
PATIENCE_S = 60


class Heard:
    """What the followers wrote down, one after the other."""

    def __init__(self, folder: Path, url: str) -> None:
        self.path = folder / "heard"
        self.path.touch()
        self.cursor = folder / "cursor"
        self.program = [sys.executable, "-m", "tests.support.processes.follower", url, str(self.cursor), str(self.path)]

    def size(self) -> int:
        return self.path.stat().st_size

    async def until(self, size: int) -> None:
        """Wait until more than that is written down."""
        async with asyncio.timeout(PATIENCE_S):
            while self.size() <= size:
                await asyncio.sleep(0.002)

    async def until_there_is_a_cursor(self) -> None:
        """Wait until the next life has something to go on from."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.cursor.exists():
                await asyncio.sleep(0.002)

    def lines(self) -> list[str]:
        """Whole lines, and perhaps halves that a killed follower left."""
        return self.path.read_text().splitlines()


async def load(running: Running) -> None:
    """Publish for ever, a little at a time."""
    n = running.engine.next_offset
    while True:
        body = b"\n".join(said(at) for at in range(n, n + BATCH))
        await running.client.post("/v1/documents", content=body, headers={"Content-Type": "application/x-ndjson"})
        n += BATCH
        await asyncio.sleep(0.01)


async def killed_often(folder: Path, times: int, seed: int) -> tuple[list[str], dict[int, str]]:
    """What was written down over so many lives, and the changes that there were, by number."""
    random = Random(seed)
    async with serving(engine=stream_car.open(folder / "data", domains=DOMAINS)) as running:
        engine = running.engine
        heard = Heard(folder, running.url)
        publishing = asyncio.create_task(load(running))
        for life in range(times):
            before = heard.size()
            with subprocess.Popen(heard.program, cwd=ROOT) as follower:
                try:
                    await (heard.until(before) if life else heard.until_there_is_a_cursor())
                    await asyncio.sleep(random.uniform(0, 0.05))
                finally:
                    follower.kill()
        publishing.cancel()
        with suppress(asyncio.CancelledError):
            await publishing
        await caught_up(heard, engine)
        return heard.lines(), {one.oseq: line(one) for one in engine.changes(limit=ALL)}


async def caught_up(heard: Heard, engine: Engine) -> None:
    """One more life, up to the last change."""
    last = engine.changes(limit=ALL)[-1].position
    with subprocess.Popen(heard.program, cwd=ROOT) as follower:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while f'"position":"{last}"' not in heard.path.read_text():
                    await asyncio.sleep(0.01)
        finally:
            follower.kill()


def check(lines: list[str], changes: dict[int, str], times: int) -> None:
    """Behind the last snapshot every change was heard, and a repeat is the same; a life with a cursor needs none."""
    ends = [at for at, text in enumerate(lines) if text.startswith("snapshot-end ")]
    assert len(ends) < times / 2, "followers began anew"
    cursor = int(lines[ends[-1]].rpartition(":")[2])
    whole = [text for text in lines[ends[-1] :] if text.startswith('{"position"') and text.endswith("}")]
    told = [(msgspec.json.decode(text, type=Numbered).oseq, text) for text in whole]
    assert {number for number, _ in told} == {number for number in changes if number > cursor}
    assert all(changes[number] == text for number, text in told)
    assert len(told) > times


class Numbered(msgspec.Struct):
    oseq: int


async def test_a_follower_that_is_killed_misses_nothing(tmp_path: Path) -> None:
    check(*await killed_often(tmp_path, times=20, seed=1), times=20)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
async def test_a_follower_misses_nothing_at_two_hundred_points(block: int, tmp_path: Path) -> None:
    check(*await killed_often(tmp_path, times=20, seed=1000 * (block + 1)), times=20)
