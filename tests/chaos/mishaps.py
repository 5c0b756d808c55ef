"""What happens to an installation while documents arrive: faults of workers, of Redis and of the broker."""

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

SESSION_S = 3.0  # the shipped session of workers
SHORT_SESSIONS = {"group.min.session.timeout.ms": "1000"}  # a setting of brokers, whose default allows none below 6 s
WORKERS = 3
CUT_MAX = 1 << 16
REST_S = 150.0
ASSIGNED_S = 60.0  # how long to wait for a worker with shards
AT_POINT_S = 12.0  # how long to wait until a doomed worker reaches its point
POINT_NUMBER_MAX = 3
FROZEN_SESSIONS = 1.3  # how long a frozen worker stands still, in sessions
FULL_S = 3.0
CHURN_S = 3.0
CHURNS = 4
DOCUMENTS, PUBLISH_S = 20, 0.4


class Dose(Struct, frozen=True, kw_only=True):
    """How often each fault happens. `kills` happen anywhere, `points` at the named points in turn."""

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
    """One run. The seed decides which faults happen, not when. `session_s` is that of the consumer group."""

    def __init__(
        self,
        kafka: Kafka,
        redis: Redis,
        folder: Path,
        seed: int,
        report: Callable[[str], None],
        *,
        session_s: float = SESSION_S,
    ) -> None:
        self.kafka, self.redis = kafka, redis
        self.random = Random(seed)
        self.installation = Installation(kafka.address, redis.url, folder)
        self.installation.worker_options = ["--session-timeout", f"{session_s:g}"]
        self.deaths = 0  # of workers that had shards
        self.reached: dict[str, int] = {}  # deaths by point
        self._session_s = session_s
        self._points = list(POINTS)
        self._report = report
        self._thawing: set[asyncio.Task[None]] = set()

    async def run(self, dose: Dose) -> Verdict:
        """Let all faults happen, then compare with the definitions. Raises `Violation`."""
        mishaps = self._mishaps(dose)
        async with self.installation.open() as installation:
            self._replace()
            await installation.workers[0].assigned()
            publishing = asyncio.create_task(self._publish())
            try:
                for number, mishap in enumerate(mishaps, 1):
                    await asyncio.sleep(self.random.random() * dose.pause_s)
                    self._report(f"{number} of {len(mishaps)}: {mishap.__name__.strip('_')}")
                    await mishap()
                    self._replace()
            finally:
                publishing.cancel()
                [result] = await asyncio.gather(publishing, return_exceptions=True)
                await asyncio.gather(*self._thawing)
            if not isinstance(result, asyncio.CancelledError):
                raise AssertionError("publishing ended") from result
            return await installation.judge(REST_S)

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
            await self.installation.publish(DOCUMENTS)
            await asyncio.sleep(PUBLISH_S)

    def _replace(self) -> None:
        """Start workers in place of those that ended, as a supervisor does."""
        for _ in range(WORKERS - len(self._running())):
            self.installation.doomed()

    def _running(self) -> list[Worker]:
        return [worker for worker in self.installation.workers if worker.is_running]

    async def _worker_with_shards(self) -> Worker:
        """Return a worker that has shards. Raises `Violation` if the group assigns none for long."""
        deadline = asyncio.get_running_loop().time() + ASSIGNED_S
        while True:
            self._replace()
            candidates = [worker for worker in self._running() if worker.shards and not worker.is_frozen]
            if candidates:
                return self.random.choice(candidates)
            if asyncio.get_running_loop().time() > deadline:
                raise Violation(f"no worker had shards for {ASSIGNED_S:.0f} s; see {self.installation.folder}")
            await asyncio.sleep(0.1)

    async def kill(self) -> None:
        """Kill a worker, wherever it is."""
        victim = await self._worker_with_shards()
        self.deaths += victim.shards > 0
        victim.kill()

    async def kill_at_a_point(self) -> None:
        """Start a worker that dies when it reaches the next of the named points; after a while, kill it anywhere."""
        point = self._points[0]
        self._points = [*self._points[1:], point]
        victim = self.installation.doomed(point, 1 if "claim" in point else self.random.randint(1, POINT_NUMBER_MAX))
        deadline = asyncio.get_running_loop().time() + AT_POINT_S
        while victim.is_running and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.1)
        if victim.is_running:
            self._report(f"the worker did not die {point}")
            victim.kill()
        else:
            self.reached[point] = self.reached.get(point, 0) + 1
        self.deaths += victim.shards > 0

    async def freeze(self) -> None:
        """Stop a worker until the group has given its shards to others; then let it continue."""
        victim = await self._worker_with_shards()
        victim.freeze()

        async def thaw() -> None:
            await asyncio.sleep(self._session_s * FROZEN_SESSIONS)
            victim.thaw()

        task = asyncio.create_task(thaw())
        self._thawing.add(task)
        task.add_done_callback(self._thawing.discard)

    async def end(self) -> None:
        """End a worker in order, under load."""
        victim = await self._worker_with_shards()
        await self._stop(victim)

    async def _stop(self, worker: Worker) -> None:
        """End a worker; raise `Violation` if its exit code is not 0, unless it had not even begun."""
        if worker.is_frozen:
            return
        has_begun = bool(worker.events("started"))
        code = await worker.stop()
        if has_begun and code:
            raise Violation(f"a worker ended with code {code} after SIGTERM; see {worker.log}")

    async def rebalance(self) -> None:
        """Let workers join and leave, one after the other."""
        for _ in range(CHURNS):
            worker = self.installation.doomed()
            await asyncio.sleep(CHURN_S)
            await self._stop(worker)
            await asyncio.sleep(CHURN_S / 2)

    async def cut(self) -> None:
        """Kill Redis, cut off the end of its file, start it, kill it and start it again."""
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
        """Delete everything that Redis has."""
        self.redis.kill()
        shutil.rmtree(self.redis.folder / "appendonlydir")
        await asyncio.to_thread(self.redis.start)

    async def fill(self) -> None:
        """Let Redis run out of memory for a while."""
        await asyncio.to_thread(self._configure, "maxmemory", "1mb")
        await asyncio.sleep(FULL_S)
        await asyncio.to_thread(self._configure, "maxmemory", "0")

    def _configure(self, setting: str, value: str) -> None:
        command = ["redis-cli", "-p", str(self.redis.port), "config", "set", setting, value]
        subprocess.run(command, check=True, capture_output=True)

    async def restart_broker(self) -> None:
        """Kill the broker and start it again."""
        self.kafka.kill()
        await asyncio.to_thread(self.kafka.start)
