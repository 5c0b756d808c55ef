"""How long the shards of a killed worker stand still, and where the time goes: `... .servers.takeovers [KILLS]`.

Promise: the settings are the defaults, and documents for all shards arrive all the time. A part lasts from the end
of the one before it until it is over for all shards of the victim.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.speed.report import Figure, quantile, show
from benchmarks.speed.servers.latencies import single
from benchmarks.speed.servers.testbed import Testbed, open_testbed
from benchmarks.speed.servers.throughput import WORKERS

KILLS = 50
PUBLISH_S = 0.2
LOOK_S = 0.01
TAKEN_OVER_S = 3.5
# what the broker and the surviving workers log at the end of each part
EXPIRED, JOINED, ASSIGNED, CLAIMED = b"has failed, removing", b"Stabilized group", b'"assigned"', b'"claimed"'
PARTS = ("the group removes it", "the others join again", "shards are assigned", "shards are claimed", "they progress")


class Takeover:
    """One kill. `ends` has the seconds from the kill to the end of each part so far."""

    def __init__(self, testbed: Testbed) -> None:
        victim = testbed.workers.pop(0)
        self.ends: list[float] = []
        self.progress: list[float] = []  # of each shard
        self._testbed = testbed
        self._shards = victim.shards()
        self._broker = testbed.kafka.folder / "log"
        self._starts = {
            path: path.stat().st_size for path in [self._broker, *(worker.log for worker in testbed.workers)]
        }
        self._begin = time.perf_counter()
        victim.process.kill()
        victim.process.wait()

    async def run(self) -> None:
        """Return when all shards of the victim have progressed."""
        before = await self._testbed.positions()
        waiting = set(self._shards)
        while waiting:
            await asyncio.sleep(LOOK_S)
            positions = await self._testbed.positions()
            seconds = time.perf_counter() - self._begin
            self.ends += [seconds] * (self._finished() - len(self.ends))
            progressed = {shard for shard in waiting if positions[shard] > before[shard]}
            self.progress += [seconds] * len(progressed)
            waiting -= progressed
        self.ends += [self.progress[-1]] * (len(PARTS) - len(self.ends))

    def _finished(self) -> int:
        """Return how many parts are over, by the logs."""
        new = {path: path.read_bytes()[start:] for path, start in self._starts.items()}
        broker = new.pop(self._broker)
        expired = EXPIRED in broker
        joined = expired and JOINED in broker
        assigned = joined and all(ASSIGNED in text for text in new.values())
        claims = sum(text[text.find(ASSIGNED) :].count(CLAIMED) for text in new.values())
        claimed = (
            assigned and claims >= self._testbed.connections.layout.intakes + self._testbed.connections.layout.frontiers
        )
        return sum((expired, joined, assigned, claimed))


async def measure(testbed: Testbed, kills: int) -> list[Figure]:
    """Kill one worker after the other while documents arrive for every shard."""
    takeovers: list[Takeover] = []
    async with _publishing(testbed):
        for _ in range(kills):
            takeovers.append(Takeover(testbed))
            await takeovers[-1].run()
            await testbed.start_workers(1)
    ends = [[0.0, *takeover.ends] for takeover in takeovers]
    parts = [
        Figure(
            name=f"  {name}, p50",
            value=quantile([each[at + 1] - each[at] for each in ends], 0.5),
            unit="s",
            note=f"largest {max(each[at + 1] - each[at] for each in ends):.2f}",
        )
        for at, name in enumerate(PARTS)
    ]
    shards = [seconds for takeover in takeovers for seconds in takeover.progress]
    whole = [takeover.ends[-1] for takeover in takeovers]
    return [
        Figure(name=f"a shard progresses again, p50 of {len(shards)}", value=quantile(shards, 0.5), unit="s"),
        Figure(name="a shard progresses again, p99", value=quantile(shards, 0.99), unit="s"),
        Figure(name=f"all shards of a worker, p50 of {kills} kills", value=quantile(whole, 0.5), unit="s"),
        *(Figure(name=f"all shards of a worker, p{q}", value=quantile(whole, q / 100), unit="s") for q in (10, 90)),
        Figure(name="all shards of a worker, p99", value=quantile(whole, 0.99), unit="s", at_most=TAKEN_OVER_S),
        *parts,
        Figure(name="load of the machine, mean of the last five minutes", value=os.getloadavg()[1], unit=""),
    ]


@asynccontextmanager
async def _publishing(testbed: Testbed) -> AsyncIterator[None]:
    """Publish 64 documents for many shards of both hops, a few times per second."""

    async def publish() -> None:
        number = 0
        while True:
            await testbed.publish([single(f"drop-{number + at}", number + at) for at in range(64)])
            number += 64
            await asyncio.sleep(PUBLISH_S)

    publishing = asyncio.create_task(publish())
    try:
        yield
    finally:
        publishing.cancel()
        await asyncio.gather(publishing, return_exceptions=True)


async def run(folder: Path, kills: int) -> int:
    """Print the table; return 1 if the goal was missed."""
    async with open_testbed(folder) as testbed:
        await testbed.start_workers(WORKERS)
        return show("workers killed", await measure(testbed, kills))


def main(kills: int = KILLS) -> int:
    """Run on servers of its own."""
    with tempfile.TemporaryDirectory(prefix="stream-car-bench-") as folder:
        return asyncio.run(run(Path(folder), kills))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
