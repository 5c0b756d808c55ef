"""What happens to an installation while documents arrive: faults of workers, servers and publishers."""

import asyncio
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from random import Random

from deploy.local import Kafka, Redis
from stream_car.ports import Message, Record
from tests.chaos import hostile
from tests.chaos.doomed import POINTS
from tests.chaos.fleet import Fleet
from tests.chaos.installation import PARTITIONS, Installation
from tests.chaos.workers import Worker
from tests.simulation.world import Violation

WORKERS = 3
CUT_MAX = 1 << 16
ASSIGNED_S = 60.0  # how long to wait for a worker with shards
AT_POINT_S = 5.0  # how long to wait until a doomed worker that has shards reaches its point
POINT_NUMBER_MAX = 3
LOOK_S = 0.1
FROZEN_SESSIONS = 1.3  # how long a frozen worker stands still, in sessions
FULL_S = 3.0
CHURN_S = 3.0
CHURNS = 4
BLACKOUT_S = 1.5
HOSTILE = 30  # records of each kind per topic
GENUINE_MAX = 500  # of the newest records, from which forgeries and copies are made

Mishap = Callable[[], Awaitable[None]]


class Mishaps:
    """The faults. `losses` counts beginnings and ends of those in which Redis loses state.

    `deaths` counts workers that died with shards.
    """

    def __init__(
        self,
        kafka: Kafka,
        redis: Redis,
        installation: Installation,
        random: Random,
        report: Callable[[str], None],
        session_s: float,
    ) -> None:
        self.kafka, self.redis = kafka, redis
        self.installation = installation
        self.fleet = Fleet(installation)
        self.losses = 0
        self.deaths = 0
        self.reached: dict[str, int] = {}  # deaths by point
        self.random = random
        self._session_s = session_s
        self._points = list(POINTS)
        random.shuffle(self._points)
        self._report = report
        self._thawing: set[asyncio.Task[None]] = set()

    async def settle(self) -> None:
        """Return when every frozen worker continues."""
        await asyncio.gather(*self._thawing)

    def replace(self) -> None:
        """Start workers in place of those that ended, as a supervisor does."""
        for _ in range(WORKERS - len(self._running())):
            self.installation.doomed()

    def _running(self) -> list[Worker]:
        return [worker for worker in self.installation.processing if worker.is_running]

    async def _worker_with_shards(self) -> Worker:
        """Return a worker that has shards. Raises `Violation` if the group assigns none for long."""
        deadline = asyncio.get_running_loop().time() + ASSIGNED_S
        while True:
            self.replace()
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
        with suppress(TimeoutError):
            async with asyncio.timeout(ASSIGNED_S):
                while victim.is_running and not victim.shards:
                    await asyncio.sleep(LOOK_S)
            async with asyncio.timeout(AT_POINT_S):
                while victim.is_running:
                    await asyncio.sleep(LOOK_S)
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
        self.losses += 1
        self.redis.kill()
        [newest] = sorted((self.redis.folder / "appendonlydir").glob("*.incr.aof"))[-1:]
        size = newest.stat().st_size
        with newest.open("r+b") as file:
            file.truncate(size - self.random.randrange(min(size, CUT_MAX) + 1))
        await asyncio.to_thread(self.redis.start)
        await asyncio.sleep(self.random.random())
        self.redis.kill()
        await asyncio.to_thread(self.redis.start)
        self.losses += 1

    async def wipe(self) -> None:
        """Delete everything that Redis has."""
        self.losses += 1
        self.redis.kill()
        shutil.rmtree(self.redis.folder / "appendonlydir")
        await asyncio.to_thread(self.redis.start)
        self.losses += 1

    async def fill(self) -> None:
        """Let Redis run out of memory for a while."""
        await asyncio.to_thread(self._redis_cli, "config", "set", "maxmemory", "1mb")
        await asyncio.sleep(FULL_S)
        await asyncio.to_thread(self._redis_cli, "config", "set", "maxmemory", "0")

    async def restart_broker(self) -> None:
        """Kill the broker and start it again."""
        self.kafka.kill()
        await asyncio.to_thread(self.kafka.start)

    def _redis_cli(self, *words: str) -> str:
        command = ["redis-cli", "-p", str(self.redis.port), *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    async def flush(self) -> None:
        """Delete everything that Redis has, while it runs and all use it."""
        self.losses += 1
        await asyncio.to_thread(self._redis_cli, "flushall")
        self.losses += 1

    async def drop(self) -> None:
        """Delete the state of a shard, as the runbook does, while its worker works."""
        self.losses += 1
        hop = self.random.choice(("intake", "frontier"))
        shard = self.random.randrange(PARTITIONS.intakes if hop == "intake" else PARTITIONS.frontiers)
        await asyncio.to_thread(self._redis_cli, "unlink", f"{{{self.installation.layout.prefix}.{hop}:{shard}}}")
        self.losses += 1

    async def blackout(self) -> None:
        """Kill all workers, delete the state of some shards, and let query workers answer without them for a while."""
        for worker in self._running():
            self.deaths += worker.shards > 0
            worker.kill()
        if self.random.random() < 0.3:
            await self.flush()
        else:
            for _ in range(2):
                await self.drop()
        await asyncio.sleep(BLACKOUT_S)

    async def kill_query_worker(self) -> None:
        """Kill a query worker; another one takes its place, with or without its index."""
        victim = self.random.choice(self.fleet.members)
        if victim.process is not None:
            victim.process.kill()

    async def end_query_worker(self) -> None:
        """End a query worker in order. Raises `Violation` if its exit code is not 0."""
        victim = self.random.choice(self.fleet.members)
        if victim.process is None:
            return
        listens = '"url"' in victim.process.output()
        code = await victim.process.stop()
        if listens and code:
            raise Violation(f"a query worker ended with code {code} after SIGTERM; see {victim.process.log}")

    async def send_garbage(self) -> None:
        """Write arbitrary bytes to every partition of every topic."""
        await self._to_every_topic(lambda topic, genuine: [hostile.garbage(self.random) for _ in range(HOSTILE)])

    async def forge(self) -> None:
        """Write records with forged headers, and copies of genuine records, to every partition of every topic."""
        generation = self.installation.generation

        def records(topic: str, genuine: Sequence[Record]) -> list[Message]:
            forged = [hostile.forgery(self.random, topic, genuine, generation) for _ in range(HOSTILE)]
            return forged + hostile.copies(self.random, genuine, HOSTILE)

        await self._to_every_topic(records)

    async def _to_every_topic(self, records: Callable[[str, Sequence[Record]], list[Message]]) -> None:
        installation = self.installation
        counts = {"documents": PARTITIONS.intakes, "rejected": 1, "keys": 1}
        for topic in hostile.TOPICS:
            partitions = range(counts.get(topic, PARTITIONS.frontiers))
            genuine = [
                record
                for partition in partitions
                for record in await installation.newest_records(topic, partition, GENUINE_MAX)
            ]
            for partition in partitions:
                await installation.send(partition, records(topic, genuine), topic)
