"""One run of chaos: documents arrive and questions are asked while all kinds of faults happen, then all is compared.

Promise: after each phase, topics, state and every query worker are compared with the definitions and with the local
engine. During the faults, no answer may be stale, wrong or empty without saying so, and no process ready that is not.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random

import httpx
from msgspec import Struct

from deploy.local import Kafka, Redis
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.store import RedisStore
from stream_car.adapters.redis.views import RedisViews
from stream_car.cluster.cancel import cancel
from tests.chaos.fleet import Member
from tests.chaos.installation import PARTITIONS, Installation
from tests.chaos.judge import Verdict
from tests.chaos.mishaps import Mishap, Mishaps
from tests.chaos.probes import Prober
from tests.chaos.readiness import Readiness
from tests.chaos.retirement import Retirement
from tests.chaos.twin import Twin
from tests.simulation.two_hops.truth import Inputs
from tests.simulation.world import Violation

SESSION_S = 2.5  # the shipped session of workers
SHORT_SESSIONS = {"group.min.session.timeout.ms": "1000"}  # a setting of brokers, whose default allows none below 6 s
REST_S = 150.0
READY_S = 90.0  # how long query workers may take to be ready when all is at rest
BATCH = 20
SMALL_WORLDS = 0.6  # share of documents
PROBERS = 2
LOOK_S = 0.1
PUBLISH_S = 0.1
PUBLISHED_S = 120.0  # how long publishers may take to get their last receipts after the faults
VIOLATIONS_MAX = 10
CALM_S = 45.0
CALM_ANSWERS = 120


class Dose(Struct, frozen=True, kw_only=True):
    """How often each fault happens, in how many phases, and how many documents arrive meanwhile.

    `kills` happen anywhere, `points` at the named points in turn.
    """

    kills: int = 0
    points: int = 0
    freezes: int = 0
    ends: int = 0
    churns: int = 0
    cuts: int = 0
    wipes: int = 0
    fulls: int = 0
    brokers: int = 0
    flushes: int = 0
    drops: int = 0
    blackouts: int = 0
    query_kills: int = 0
    query_ends: int = 0
    garbage: int = 0
    forgeries: int = 0
    retirements: int = 0  # of history, each in an installation of its own after the phases
    phases: int = 1
    documents: int = 600
    pause_s: float = 1.5
    calm_every: int = 4  # before so many faults, wait until questions are answered again
    sample_s: float = 0.15  # between the questions to one query worker


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
        self.installation = Installation(kafka.address, redis.url, folder)
        self.installation.worker_options = ["--session-timeout", f"{session_s:g}"]
        self.random = Random(seed)
        self.mishaps = Mishaps(kafka, redis, self.installation, self.random, report, session_s)
        self.fleet = self.mishaps.fleet
        self.prober = Prober(self.fleet, self.random, self.installation.ruleset, PARTITIONS)
        self.compared = 0  # answers of query workers, at rest
        self.marked = 0  # answers after history was lost
        self._report = report
        self._happened = 0  # faults of this phase

    async def run(self, dose: Dose) -> Verdict:
        """Let all faults happen in phases, and compare after each. Raises `Violation`."""
        mishaps = self._shuffled(dose)
        verdict = Verdict(inputs=0, acknowledged=0, changes=0, repeats=0, rejected=0)
        twin = Twin(self.installation.folder / "twin", self.installation.rules, self.installation.ruleset, self.random)
        with twin.engine:
            async with self.installation.open(), self._readiness() as readiness, self.fleet.open():
                self._start(readiness)
                await self.installation.processing[0].assigned()
                for phase in range(dose.phases):
                    await self._phase(mishaps[phase :: dose.phases], dose, readiness)
                    verdict = await self.installation.judge(REST_S, lambda inputs: self._compare(twin, inputs))
                    self._report(f"phase {phase + 1}: {verdict}, {self.compared} answers compared")
        for number in range(dose.retirements):
            await self._retire(number)
        return verdict

    async def _retire(self, number: int) -> None:
        main = self.installation
        folder = main.folder / f"retirement-{number}"
        retirement = Retirement(main.server.address, main.redis.url, folder, self.random, self.mishaps.flush)
        await retirement.run()
        self.marked += retirement.marked
        self._report(f"retirement {number + 1}: {retirement.marked} answers marked")

    def _shuffled(self, dose: Dose) -> list[Mishap]:
        counts = {
            self.mishaps.kill: dose.kills,
            self.mishaps.kill_at_a_point: dose.points,
            self.mishaps.freeze: dose.freezes,
            self.mishaps.end: dose.ends,
            self.mishaps.rebalance: dose.churns,
            self.mishaps.cut: dose.cuts,
            self.mishaps.wipe: dose.wipes,
            self.mishaps.fill: dose.fulls,
            self.mishaps.restart_broker: dose.brokers,
            self.mishaps.flush: dose.flushes,
            self.mishaps.drop: dose.drops,
            self.mishaps.blackout: dose.blackouts,
            self.mishaps.kill_query_worker: dose.query_kills,
            self.mishaps.end_query_worker: dose.query_ends,
            self.mishaps.send_garbage: dose.garbage,
            self.mishaps.forge: dose.forgeries,
        }
        mishaps: list[Mishap] = [mishap for mishap, count in counts.items() for _ in range(count)]
        self.random.shuffle(mishaps)
        return mishaps

    @asynccontextmanager
    async def _readiness(self) -> AsyncIterator[Readiness]:
        """Give what watches readiness, over a connection of its own."""
        client = await connect(self.installation.redis)
        prefix = self.installation.layout.prefix
        stores = {hop: RedisStore(client, f"{prefix}.{hop}") for hop in ("intake", "frontier")}
        views = RedisViews(intake=stores["intake"], frontier=stores["frontier"])
        try:
            yield Readiness(views, PARTITIONS, lambda: self.mishaps.losses)
        finally:
            await client.aclose()

    def _start(self, readiness: Readiness) -> None:
        """Start whatever has ended, as a supervisor does."""
        self.mishaps.replace()
        for member in self.fleet.members:
            if not member.is_running:
                self.prober.note_start(member)
                readiness.targets[member.number] = self.installation.ends()
                member.start(self.installation)

    async def _phase(self, mishaps: list[Mishap], dose: Dose, readiness: Readiness) -> None:
        """Let these faults happen while documents arrive and questions are asked."""
        publishing = Work([self._publish(dose.documents / dose.phases, len(mishaps))])
        publishing.add(self.prober.publish(dose.sample_s) for _ in range(PROBERS))
        asking = Work(self.prober.sample(member, dose.sample_s) for member in [*self.fleet.members, None])
        asking.add(readiness.watch(member, LOOK_S) for member in self.fleet.members)
        self._happened, self.prober.is_stopping = 0, False
        try:
            for number, mishap in enumerate(mishaps, 1):
                await asyncio.sleep(self.random.random() * dose.pause_s)
                if number % dose.calm_every == 0:
                    await self._calm()
                self._report(f"{number} of {len(mishaps)}: {mishap.__name__}, {self.prober.sampled} answers sampled")
                await mishap()
                self._start(readiness)
                self._happened = number
                publishing.require_running()
                asking.require_running()
                self._require_none(readiness)
            self.prober.is_stopping = True
            await publishing.ended(PUBLISHED_S)
        finally:
            await self.mishaps.settle()
            await publishing.cancel()
            await asking.cancel()
        self._require_none(readiness)

    async def _calm(self) -> None:
        """Return when questions are answered again: state that is lost over and over answers nothing."""
        answered = self.prober.sampled
        with suppress(TimeoutError):
            async with asyncio.timeout(CALM_S):
                while self.prober.sampled < answered + CALM_ANSWERS:
                    await asyncio.sleep(LOOK_S)

    async def _publish(self, count: float, mishaps: int) -> None:
        """Publish as many documents as there should be by the faults that have happened."""
        published = 0
        while published < count or not self.prober.is_stopping:
            if published <= count * (self._happened + 1) / mishaps or self.prober.is_stopping:
                await self.installation.publish(BATCH, small_worlds=SMALL_WORLDS)
                published += BATCH
            await asyncio.sleep(PUBLISH_S)

    def _require_none(self, readiness: Readiness) -> None:
        if violations := [*self.prober.violations, *readiness.violations]:
            text = "\n".join(violations[:VIOLATIONS_MAX])
            raise Violation(f"{len(violations)} violations; see {self.installation.folder}\n{text}")

    async def _compare(self, twin: Twin, inputs: Inputs) -> None:
        """Compare every query worker with the local engine."""
        await asyncio.to_thread(twin.feed, inputs)
        for member in self.fleet.members:
            await self._ready(member)
            who = f"query worker {member.number} ({self.installation.folder})"
            self.compared += await twin.require_equal(member.client, who, inputs)

    async def _ready(self, member: Member) -> None:
        """Return when a query worker is ready. Raises `Violation` if that takes long."""
        deadline = asyncio.get_running_loop().time() + READY_S
        async with httpx.AsyncClient(base_url=member.client.url, timeout=10.0, trust_env=False) as http:
            while True:
                with suppress(httpx.TransportError):
                    response = await http.get("/readyz")
                    if response.status_code == 200:
                        return
                    if asyncio.get_running_loop().time() > deadline:
                        raise Violation(f"query worker {member.number} is not ready at rest: {response.text}")
                await asyncio.sleep(LOOK_S)


class Work:
    """Tasks that run until they are told to end. One that ends before is an error."""

    def __init__(self, functions: Iterable[Coroutine[object, object, None]]) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self.add(functions)

    def add(self, functions: Iterable[Coroutine[object, object, None]]) -> None:
        """Start more."""
        self._tasks += map(asyncio.create_task, functions)

    def require_running(self) -> None:
        """Raise what ended a task, if one has ended."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def ended(self, timeout_s: float) -> None:
        """Return when all have ended by themselves. Raises `Violation` if that takes too long."""
        _, running = await asyncio.wait(self._tasks, timeout=timeout_s)
        if running:
            raise Violation(f"{len(running)} publishers got no receipt for {timeout_s:.0f} s")
        self.require_running()

    async def cancel(self) -> None:
        """End all."""
        await cancel(*self._tasks)
