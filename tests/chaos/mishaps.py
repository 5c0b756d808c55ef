"""What befalls an installation while documents arrive: workers, Redis and the broker, each in many ways."""

import asyncio
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

from msgspec import Struct

from deploy.local import Kafka, Redis
from tests.chaos.doomed import POINTS
from tests.chaos.installation import Installation
from tests.chaos.judge import Verdict
from tests.chaos.workers import Worker
from tests.simulation.world import Violation

SESSION_S = 6.0  # as workers have it
SHORT_SESSIONS = {"group.min.session.timeout.ms": "1000"}  # of a broker, which else allows none below 6 s
WORKERS = 3
CUT_MAX = 1 << 16
REST_S = 150.0
AT_WORK_S = 60.0  # how long a worker that is to be killed is waited for to have shards
AT_A_POINT_S = 12.0  # how long one is waited for to come to its point
POINT_TIMES = 3
FROZEN_S = 1.3  # times the session
FULL_S = 3.0
CHURN_S = 3.0
CHURNS = 4
DOCUMENTS, EVERY_S = 20, 0.4


class Dose(Struct, frozen=True, kw_only=True):
    """How often each thing happens. `kills` are at random, `points` at a named point each, in turn."""

    kills: int = 0
    points: int = 0
    freezes: int = 0
    ends: int = 0
    churns: int = 0
    cuts: int = 0
    wipes: int = 0
    fulls: int = 0
    brokers: int = 0
    pause_s: float = 1.5


class Chaos:
    """One run; what happens follows from the seed, when it happens does not. `session_s` is that of the group."""

    def __init__(
        self,
        kafka: Kafka,
        redis: Redis,
        folder: Path,
        seed: int,
        say: Callable[[str], None],
        *,
        session_s: float = SESSION_S,
    ) -> None:
        self.kafka, self.redis = kafka, redis
        self.random = Random(seed)
        self.here = Installation(kafka.address, redis.url, folder)
        self.here.environment["CHAOS_SESSION_MS"] = str(int(session_s * 1000))
        self.deaths = 0  # of workers that had shards
        self.reached: dict[str, int] = {}  # how many died at each point
        self._session_s = session_s
        self._points = list(POINTS)
        self._say = say
        self._thawing: set[asyncio.Task[None]] = set()

    async def run(self, dose: Dose) -> Verdict:
        """Raises `Violation` where anything is not as the definition has it."""
        mishaps = self._mishaps(dose)
        async with self.here.open() as here:
            self._replace()
            await here.workers[0].assigned()
            publishing = asyncio.create_task(self._publish())
            try:
                for at, mishap in enumerate(mishaps, 1):
                    await asyncio.sleep(self.random.random() * dose.pause_s)
                    self._say(f"{at} of {len(mishaps)}: {mishap.__name__.strip('_')}")
                    await mishap()
                    self._replace()
            finally:
                publishing.cancel()
                [result] = await asyncio.gather(publishing, return_exceptions=True)
                await asyncio.gather(*self._thawing)
            if not isinstance(result, asyncio.CancelledError):
                raise AssertionError("publishing ended") from result
            return await here.judge(REST_S)

    def _mishaps(self, dose: Dose) -> list[Callable[[], Awaitable[None]]]:
        counts: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.kill, dose.kills),
            (self.kill_at_a_point, dose.points),
            (self.freeze, dose.freezes),
            (self.end, dose.ends),
            (self.rebalance, dose.churns),
            (self.cut, dose.cuts),
            (self.wipe, dose.wipes),
            (self.fill, dose.fulls),
            (self.restart_broker, dose.brokers),
        ]
        mishaps = [mishap for mishap, count in counts for _ in range(count)]
        self.random.shuffle(mishaps)
        self.random.shuffle(self._points)
        return mishaps

    async def _publish(self) -> None:
        while True:
            await self.here.publish(DOCUMENTS)
            await asyncio.sleep(EVERY_S)

    def _replace(self) -> None:
        """As a supervisor does."""
        for _ in range(WORKERS - len(self._running())):
            self.here.doomed()

    def _running(self) -> list[Worker]:
        return [worker for worker in self.here.workers if worker.is_running]

    async def _at_work(self) -> Worker:
        """A worker that has shards. Raises `Violation` where the group gives nobody any."""
        deadline = asyncio.get_running_loop().time() + AT_WORK_S
        while True:
            self._replace()
            working = [worker for worker in self._running() if worker.shards and not worker.is_frozen]
            if working:
                return self.random.choice(working)
            if asyncio.get_running_loop().time() > deadline:
                raise Violation(f"no worker has shards for {AT_WORK_S:.0f} s; see {self.here.folder}")
            await asyncio.sleep(0.1)

    async def kill(self) -> None:
        """A worker dies, somewhere."""
        victim = await self._at_work()
        self.deaths += victim.shards > 0
        victim.kill()

    async def kill_at_a_point(self) -> None:
        """A worker joins and dies when it comes to the next of the named points; else where it is."""
        point = self._points[0]
        self._points = [*self._points[1:], point]
        victim = self.here.doomed(point, 1 if "claim" in point else self.random.randint(1, POINT_TIMES))
        deadline = asyncio.get_running_loop().time() + AT_A_POINT_S
        while victim.is_running and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.1)
        if victim.is_running:
            self._say(f"it did not come {point}")
            victim.kill()
        else:
            self.reached[point] = self.reached.get(point, 0) + 1
        self.deaths += victim.shards > 0

    async def freeze(self) -> None:
        """A worker stands still until the group has given its shards to others, then goes on as if nothing were."""
        victim = await self._at_work()
        victim.freeze()

        async def thaw() -> None:
            await asyncio.sleep(self._session_s * FROZEN_S)
            victim.thaw()

        task = asyncio.create_task(thaw())
        self._thawing.add(task)
        task.add_done_callback(self._thawing.discard)

    async def end(self) -> None:
        """A worker is told to end, under load."""
        victim = await self._at_work()
        await self._ended(victim)

    async def _ended(self, worker: Worker) -> None:
        """It has ended in order, unless it had not even begun."""
        if worker.is_frozen:
            return
        has_begun = bool(worker.said("started"))
        code = await worker.stop()
        if has_begun and code:
            raise Violation(f"a worker that was told to end ended with {code}; see {worker.log}")

    async def rebalance(self) -> None:
        """A worker joins, leaves, joins and leaves."""
        for _ in range(CHURNS):
            one = self.here.doomed()
            await asyncio.sleep(CHURN_S)
            await self._ended(one)
            await asyncio.sleep(CHURN_S / 2)

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

    async def fill(self) -> None:
        """Redis has no memory left for a while."""
        await asyncio.to_thread(self._configure, "maxmemory", "1mb")
        await asyncio.sleep(FULL_S)
        await asyncio.to_thread(self._configure, "maxmemory", "0")

    def _configure(self, setting: str, value: str) -> None:
        command = ["redis-cli", "-p", str(self.redis.port), "config", "set", setting, value]
        subprocess.run(command, check=True, capture_output=True)

    async def restart_broker(self) -> None:
        """The broker dies and comes back."""
        self.kafka.kill()
        await asyncio.to_thread(self.kafka.start)
