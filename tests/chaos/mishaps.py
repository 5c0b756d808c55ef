"""What befalls an installation: workers killed, Redis cut or wiped, the broker killed, while documents arrive."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from msgspec import Struct

from deploy.local import Kafka, Redis
from tests.chaos.installation import Installation, Verdict

WORKERS = 3
CUT_MAX = 1 << 16
REST_S = 150.0


class Dose(Struct, frozen=True, kw_only=True):
    """How often each thing happens."""

    kills: int
    cuts: int
    wipes: int
    brokers: int
    pause_s: float = 1.5


class Chaos:
    """One run; what happens follows from the seed, when it happens does not."""

    def __init__(self, kafka: Kafka, redis: Redis, folder: Path, seed: int, say: Callable[[str], None]) -> None:
        self.kafka, self.redis = kafka, redis
        self.random = Random(seed)
        self.here = Installation(kafka.address, redis.url, folder)
        self._say = say

    async def run(self, dose: Dose) -> Verdict:
        """Raises `Violation` where anything is not as the definition has it."""
        mishaps = [self.kill] * dose.kills + [self.cut] * dose.cuts
        mishaps += [self.wipe] * dose.wipes + [self.restart_broker] * dose.brokers
        self.random.shuffle(mishaps)
        async with self.here.open() as here:
            for _ in range(WORKERS):
                here.worker()
            await here.workers[0].assigned()
            publishing = asyncio.create_task(self._publish())
            try:
                for at, mishap in enumerate(mishaps, 1):
                    await asyncio.sleep(self.random.random() * dose.pause_s)
                    self._say(f"{at} of {len(mishaps)}: {mishap.__name__}")
                    await mishap()
                    self._replace()
            finally:
                publishing.cancel()
                [result] = await asyncio.gather(publishing, return_exceptions=True)
            if not isinstance(result, asyncio.CancelledError):
                raise AssertionError("publishing ended") from result
            return await here.judge(REST_S)

    async def _publish(self) -> None:
        while True:
            await self.here.publish(20)
            await asyncio.sleep(0.3)

    def _replace(self) -> None:
        """As a supervisor does."""
        running = sum(worker.is_running for worker in self.here.workers)
        for _ in range(WORKERS - running):
            self.here.worker()

    async def kill(self) -> None:
        """A worker dies."""
        self.random.choice([worker for worker in self.here.workers if worker.is_running]).kill()

    async def cut(self) -> None:
        """Redis dies, loses the end of its file, comes back, dies and comes back."""
        self.redis.kill()
        [newest] = sorted((self.redis.folder / "appendonlydir").glob("*.incr.aof"))[-1:]
        size = newest.stat().st_size
        with newest.open("r+b") as file:
            file.truncate(size - self.random.randrange(min(size, CUT_MAX) + 1))
        await asyncio.to_thread(self.redis.start)
        await asyncio.sleep(self.random.random())
        self.redis.kill()
        await asyncio.to_thread(self.redis.start)

    async def wipe(self) -> None:
        """Redis loses everything."""
        self.redis.kill()
        shutil.rmtree(self.redis.folder / "appendonlydir")
        await asyncio.to_thread(self.redis.start)

    async def restart_broker(self) -> None:
        """The broker dies and comes back."""
        self.kafka.kill()
        await asyncio.to_thread(self.kafka.start)
