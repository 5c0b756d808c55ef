"""Record metrics during real faults: `python -m tests.alerts.record [SCENARIO ...]`, a quarter of an hour for all.

Promise: each file in `recorded` is one fault of a real installation, from before it began until the metrics have
returned to normal, unless it takes a person, or ten minutes more, to end it.
"""

import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
from kafka import KafkaAdminClient
from kafka.structs import TopicPartition

from deploy.local import Kafka, Redis
from deploy.local.processes import free_ports
from stream_car.adapters.search.index import TantivyIndex
from tests.alerts.recording import INTERVAL_S, RECORDED, Recording
from tests.chaos.installation import PARTITIONS, Installation
from tests.chaos.workers import QueryWorker, Worker

SCRAPE_S = 1.0
READY_S = 60.0
ALL = PARTITIONS.intakes + PARTITIONS.frontiers
WORKER, QUERY_WORKER = "stream-car-worker", "stream-car-query-worker"


class Target:
    """A process that is scraped, always at the same port. It is started again unless it is to be away."""

    def __init__(self, job: str, instance: str, start: Callable[[int], Worker]) -> None:
        self.name = (job, instance)
        self.port = free_ports(1)[0]
        self.is_wanted = True
        self._start = start
        self.process = start(self.port)

    def supervise(self) -> None:
        """Start the process if it has ended."""
        if self.is_wanted and not self.process.is_running:
            self.process = self._start(self.port)

    async def get(self, path: str, question: object = None) -> httpx.Response | None:
        """Return what it answers, or `None` if it does not. With a question, the request is a POST."""
        with suppress(httpx.HTTPError):
            async with httpx.AsyncClient(timeout=SCRAPE_S) as client:
                method = "GET" if question is None else "POST"
                return await client.request(method, f"http://127.0.0.1:{self.port}{path}", json=question)
        return None


class World:
    """An installation whose processes are scraped, and whose query worker is asked."""

    def __init__(self, kafka: Kafka, redis: Redis, installation: Installation) -> None:
        self.kafka, self.redis, self.installation = kafka, redis, installation
        self.recording = Recording()
        self.targets: list[Target] = []

    def worker(self, instance: str, hops: str = "all") -> Target:
        """Start a worker."""

        def start(port: int) -> Worker:
            self.installation.worker_options = ["--port", str(port)]
            return self.installation.worker(hops)

        return self._add(Target(WORKER, instance, start))

    def query_worker(self, index: Path | None = None) -> Target:
        """Start a query worker. Without `index`, it builds a fresh one whenever it is started."""

        def start(port: int) -> QueryWorker:
            return self.installation.query_worker(port=port, index=index)

        return self._add(Target(QUERY_WORKER, "query-1", start))

    def _add(self, target: Target) -> Target:
        self.targets.append(target)
        return target

    async def ready(self) -> None:
        """Wait until all processes are ready."""
        async with asyncio.timeout(READY_S):
            while True:
                answers = [await target.get("/readyz") for target in self.targets]
                if all(answer is not None and answer.status_code == httpx.codes.OK for answer in answers):
                    return
                await asyncio.sleep(0.2)

    async def wait(self, seconds: float) -> None:
        """Let this much be recorded."""
        await asyncio.sleep(seconds)

    async def scrape(self) -> None:
        """Scrape until cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            answers = await asyncio.gather(*(target.get("/metrics") for target in self.targets))
            texts = [answer.text if answer is not None else None for answer in answers]
            self.recording.add({target.name: text for target, text in zip(self.targets, texts, strict=True)})
            for target in self.targets:
                target.supervise()
            due += INTERVAL_S
            await asyncio.sleep(max(due - loop.time(), 0))

    async def publish(self) -> None:
        """Publish a few documents per second until cancelled."""
        while True:
            await self.installation.publish(5)
            await asyncio.sleep(1)

    async def ask(self) -> None:
        """Ask for documents every second until cancelled."""
        while True:
            for target in self.targets:
                if target.name[0] == QUERY_WORKER:
                    await target.get("/v1/resolve", {"names": [f"n{number}" for number in range(60)]})
            await asyncio.sleep(1)


async def quiet(world: World) -> None:
    """A restart in order, and a crash that a supervisor answers at once: no fault."""
    first, second = world.worker("worker-1"), world.worker("worker-2")
    world.query_worker()
    await world.ready()
    async with recorded(world):
        await world.wait(15)
        first.process._process.terminate()
        await world.wait(20)
        second.process.kill()
        await world.wait(25)


async def redis_away(world: World) -> None:
    """Redis is away for 45 seconds."""
    world.worker("worker-1")
    world.query_worker()
    await world.ready()
    async with recorded(world):
        await world.wait(10)
        world.redis.kill()
        await world.wait(45)
        world.redis.start()
        await world.ready()
        await world.wait(15)


async def kafka_away(world: World) -> None:
    """The broker is away for 45 seconds, and a query worker has just begun to build its index."""
    world.worker("worker-1")
    await world.ready()
    for _ in range(40):
        await world.installation.publish(1000, ids=4000)
    await world.wait(10)
    query_worker = world.query_worker()
    async with recorded(world, is_busy=False):
        while (answer := await query_worker.get("/metrics")) is None or _value(answer, "stream_car_index_lag") < 5000:
            await asyncio.sleep(0.01)
        world.kafka.kill()
        await world.wait(45)
        await asyncio.to_thread(world.kafka.start)
        await world.ready()
        await world.wait(15)


async def frontier_away(world: World) -> None:
    """The only worker of the frontier hop is gone for a minute and a half."""
    world.worker("worker-1", "intake")
    frontier = world.worker("worker-2", "frontier")
    world.query_worker()
    await world.ready()
    async with recorded(world):
        await world.wait(10)
        frontier.is_wanted = False
        frontier.process.kill()
        await world.wait(90)
        frontier.is_wanted = True
        await world.wait(5)
        await world.ready()
        await world.wait(75)


async def workers_away(world: World) -> None:
    """All workers are gone for 45 seconds."""
    workers = [world.worker("worker-1"), world.worker("worker-2")]
    await world.ready()
    async with recorded(world):
        await world.wait(10)
        for worker in workers:
            worker.is_wanted = False
            worker.process.kill()
        await world.wait(45)
        for worker in workers:
            worker.is_wanted = True
        await world.wait(5)
        await world.ready()
        await world.wait(15)


async def halted(world: World) -> None:
    """The beginning of a topic was deleted while a shard had not read it: the shard halts until a person decides."""
    worker = world.worker("worker-1")
    await world.ready()
    async with recorded(world):
        await world.wait(10)
        worker.is_wanted = False
        await worker.process.stop()
        await world.installation.publish(200)
        _delete_records(world, world.installation.ends()[0] - 1)
        worker.is_wanted = True
        await world.wait(45)


async def lost_history(world: World) -> None:
    """Kafka has deleted records that were applied, and a query worker comes back with an empty index."""
    world.worker("worker-1")
    await world.installation.publish(400, ids=4000)
    query_worker = world.query_worker()
    await world.ready()
    applied = world.installation.ends()[0]
    async with recorded(world):
        await world.wait(10)
        query_worker.is_wanted = False
        await query_worker.process.stop()
        _delete_records(world, applied)
        query_worker.is_wanted = True
        await world.wait(90)


async def index_repaired(world: World) -> None:
    """A query worker comes back with an index that lacks some documents of the state."""
    world.worker("worker-1")
    await world.installation.publish(400, ids=4000)
    folder = world.installation.folder / "index"
    query_worker = world.query_worker(folder)
    await world.ready()
    names = {message.key.decode() for message in world.installation.acknowledged.values() if message.key}
    async with recorded(world):
        await world.wait(10)
        query_worker.is_wanted = False
        await query_worker.process.stop()
        index = TantivyIndex(folder)
        await index.apply([], sorted(names)[:20], await index.position())
        index.close()
        query_worker.is_wanted = True
        await world.wait(30)


async def frozen(world: World) -> None:
    """A worker is frozen again and again for longer than its session, and the other one takes its shards."""
    first = world.worker("worker-1")
    world.worker("worker-2")
    await world.ready()
    async with recorded(world):
        for _ in range(7):
            await world.wait(4)
            first.process.freeze()
            await world.wait(5)
            first.process.thaw()
        await world.wait(10)


async def rebuild(world: World) -> None:
    """The state in Redis is deleted, and built again from 40,000 documents."""
    for _ in range(40):
        await world.installation.publish(1000, ids=4000)
    async with recorded(world):
        world.worker("worker-1")
        await world.ready()
        await world.wait(40)


SCENARIOS: dict[str, Callable[[World], Awaitable[None]]] = {
    scenario.__name__: scenario
    for scenario in (
        quiet,
        redis_away,
        kafka_away,
        frontier_away,
        workers_away,
        halted,
        lost_history,
        index_repaired,
        frozen,
        rebuild,
    )
}


@asynccontextmanager
async def recorded(world: World, *, is_busy: bool = True) -> AsyncIterator[None]:
    """Scrape, publish and ask within."""
    busy = [world.publish(), world.ask()] if is_busy else []
    tasks = [asyncio.create_task(work) for work in (world.scrape(), *busy)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if not isinstance(result, asyncio.CancelledError):
            raise AssertionError("the recording ended early") from result


def _delete_records(world: World, up_to: int) -> None:
    """Delete the beginning of a partition of the documents."""
    topic = world.installation.layout.full_name("documents")
    with KafkaAdminClient(bootstrap_servers=world.kafka.address) as admin:
        admin.delete_records({TopicPartition(topic, 0): up_to})


def _value(answer: httpx.Response, name: str) -> float:
    return next((float(line.split()[1]) for line in answer.text.splitlines() if line.startswith(f"{name} ")), 0.0)


async def record(name: str, kafka: Kafka, redis: Redis, folder: Path) -> None:
    """Record a scenario and write its file."""
    async with Installation(kafka.address, redis.url, folder).open() as installation:
        world = World(kafka, redis, installation)
        await SCENARIOS[name](world)
        world.recording.write(RECORDED / f"{name}.json")
        sys.stdout.write(f"{name}: {world.recording.length * INTERVAL_S} s\n")


def main() -> None:
    """Record the named scenarios, or all."""
    for name in sys.argv[1:] or SCENARIOS:
        folder = Path(tempfile.mkdtemp(prefix="stream-car-alerts-"))
        kafka, redis = Kafka(folder / "kafka"), Redis(folder / "redis")
        try:
            redis.start()
            kafka.start()
            asyncio.run(record(name, kafka, redis, folder))
        finally:
            kafka.kill()
            redis.kill()


if __name__ == "__main__":
    main()
