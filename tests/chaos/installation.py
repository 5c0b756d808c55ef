"""Topics and state of one test over Kafka and Redis, its worker processes, and the documents that are published."""

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import TypeVar

import msgspec

from stream_car import rule_packs
from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import KEYS, Layout
from stream_car.adapters.kafka.topics import apply, delete
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.adapters.redis.views import RedisViews
from stream_car.cluster.connections import read_signatures
from stream_car.core.documents import Document, Statement
from stream_car.errors import Unavailable
from stream_car.ports import Hop, Message, Record
from stream_car.processing.partitions import Partitions
from stream_car.processing.two_hop import generation_of
from tests.chaos.documents import random_statement
from tests.chaos.judge import Judge, Verdict, read_all
from tests.chaos.workers import QueryWorker, Worker
from tests.simulation.two_hops.truth import Inputs
from tests.simulation.world import Violation, bytes_of
from tests.support.streams import random_document

RULES = Path(__file__).with_name("rules.toml")
STREAM_CAR = (str(Path(sys.executable).with_name("stream-car")),)
DOOMED = (sys.executable, "-m", "tests.chaos.doomed")
PARTITIONS = Partitions(intakes=2, frontiers=3)
W = TypeVar("W", bound=Worker)
REST_S = 60.0
RETRY_S = 0.2
STATEMENTS = 24  # of a small world


class Installation:
    """Topics and state of one test, and its workers."""

    def __init__(self, kafka: str, redis: str, folder: Path, *, rules: Sequence[str] = (str(RULES),)) -> None:
        self.server, self.redis = KafkaServer(address=kafka), RedisServer(url=redis)
        self.folder = folder
        self.layout = Layout(
            prefix=f"test-{secrets.token_hex(6)}",
            intakes=PARTITIONS.intakes,
            frontiers=PARTITIONS.frontiers,
            single_broker=True,
        )
        self.rules = rules
        self.ruleset = rule_packs.load(rules)
        self.workers: list[Worker] = []
        self.acknowledged: dict[tuple[int, int], Message] = {}  # by partition and offset
        self.worker_options: Sequence[str] = ()  # for all workers
        self._random = Random(7)
        self._in_small_worlds = 0

    @property
    def generation(self) -> str:
        """The generation of its rules and partitions."""
        return generation_of(self.ruleset, PARTITIONS)

    @property
    def processing(self) -> list[Worker]:
        """The workers, without the query workers."""
        return [worker for worker in self.workers if not isinstance(worker, QueryWorker)]

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Installation"]:
        """Create the topics. At the end of the block, kill the workers and delete topics and state."""
        await asyncio.to_thread(apply, self.server, self.layout)
        self.sender = Sender(self.server)
        try:
            yield self
        finally:
            for worker in self.workers:
                worker.kill()
            await self.sender.close()
            client = await connect(self.redis)
            for hop in ("intake", "frontier"):
                await RedisStore(client, f"{self.layout.prefix}.{hop}").drop(range(8))
            await client.aclose()
            await asyncio.to_thread(delete, self.server, self.layout)

    def worker(
        self,
        hops: str = "all",
        rules: str | None = None,
        options: Sequence[str] = (),
        program: Sequence[str] = STREAM_CAR,
    ) -> Worker:
        """Start a worker."""
        words = ["worker", hops, *self.worker_options, *options]
        return self._start(Worker, words, self.rules if rules is None else [rules], program=program)

    def doomed(self, point: str = "", number: int = 1) -> Worker:
        """Start a worker that dies when it reaches a point of `doomed.POINTS` for the n-th time."""
        environment = {"CHAOS_AT": f"{point}:{number}"} if point else {}
        return self._start(Worker, ["worker", "all", *self.worker_options], self.rules, environment, DOOMED)

    def query_worker(
        self, token: str | None = None, port: int = 0, index: Path | None = None, options: Sequence[str] = ()
    ) -> QueryWorker:
        """Start a query worker. With a token, it answers only requests that have it; with `index`, it keeps that."""
        environment = {"STREAM_CAR_TOKEN": token} if token is not None else {}
        kept = ["--index", str(index)] if index is not None else []
        command = ["query-worker", "--port", str(port), *kept, *options]
        query_worker = self._start(QueryWorker, command, self.rules, environment)
        query_worker.token = token
        return query_worker

    def _start(
        self,
        kind: type[W],
        command: Sequence[str],
        rules: Sequence[str],
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = STREAM_CAR,
    ) -> W:
        options = ["--single-broker", "--prefix", self.layout.prefix]
        options += [word for rule in rules for word in ("--rules", rule)]
        addresses = {"STREAM_CAR_KAFKA": self.server.address, "STREAM_CAR_REDIS": self.redis.url}
        worker = kind(
            self.folder / f"process-{len(self.workers)}.log",
            {**addresses, **(environment or {})},
            [*command, *options],
            program,
        )
        self.workers.append(worker)
        return worker

    async def publish(self, count: int, ids: int = 60, small_worlds: float = 0.0) -> None:
        """Publish documents, corrections, retractions by null value and nonsense, a quarter in a wrong partition.

        `small_worlds` is the share that goes to worlds of their own, of which there are ever more.

        Revisions increase with the number of documents published before, so that each may change something.
        """
        random = self._random
        increase = len(self.acknowledged) // ids
        batches: dict[int, list[Message]] = {}
        for number in range(count):
            statement: Statement = random_document(random, ids)
            if isinstance(statement, Document):
                statement = msgspec.structs.replace(statement, revision=statement.revision + increase)
            if number < small_worlds * count:
                self._in_small_worlds += 1
                world = f"world{self._in_small_worlds // STATEMENTS}"
                statement = random_statement(random, world, revision=self._in_small_worlds)
            choice = random.random()
            partition = PARTITIONS.of_id(statement.id) if choice < 0.75 else random.randrange(PARTITIONS.intakes)
            message = Message(value=bytes_of(statement), key=statement.id.encode())
            if choice < 0.08:
                message = Message(value=None, key=statement.id.encode())
            elif choice > 0.97:
                message = Message(value=b'{"id": "n1", "type": "unheard of", "time": "2024"}', headers=(("h", b"v"),))
            batches.setdefault(partition, []).append(message)
        for partition, messages in batches.items():
            await self.send(partition, messages)

    async def send(self, partition: int, messages: Sequence[Message], topic: str = "documents") -> None:
        """Append these messages to a partition of a topic, and note which documents are acknowledged."""
        offsets = await self._send(partition, messages, topic)
        if topic == "documents":
            self.acknowledged |= {
                (partition, offset): message for offset, message in zip(offsets, messages, strict=True)
            }

    def ends(self) -> tuple[int, ...]:
        """Return the offset after the last acknowledged document of each partition."""
        partitions = range(self.layout.intakes)
        return tuple(
            max((o + 1 for p, o in self.acknowledged if p == partition), default=0) for partition in partitions
        )

    async def _send(self, partition: int, messages: Sequence[Message], topic: str) -> Sequence[int]:
        """Send until Kafka acknowledges. A repeat changes nothing; a repeated null value retracts the same document."""
        deadline = time.monotonic() + REST_S
        while True:
            try:
                return await self.sender.send(self.layout.full_name(topic), partition, messages)
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(RETRY_S)

    async def newest_records(self, topic: str, partition: int, count: int) -> Sequence[Record]:
        """Return some of the newest records of a partition; none while the broker is away."""
        reader = await Reader.open(self.server)
        try:
            log = KafkaLog(reader, self.sender, self.layout.full_name(topic))
            first, end = await log.range(partition)
            return await log.fetch(partition, max(first, end - count), count)
        finally:
            await reader.close()

    async def records(self, topic: str, partition: int) -> list[Record]:
        """Return all records of a partition."""
        reader = await Reader.open(self.server)
        try:
            return await read_all(KafkaLog(reader, self.sender, self.layout.full_name(topic)), partition)
        finally:
            await reader.close()

    async def judge(
        self, timeout_s: float = REST_S, further: Callable[[Inputs], Awaitable[None]] | None = None
    ) -> Verdict:
        """Wait until all shards are at rest, then compare with the definitions. Raises `Violation`.

        `further` may examine more while they are at rest.
        """
        client = await connect(self.redis)
        reader = await Reader.open(self.server)
        try:
            intake, frontier = self._store(client, "intake"), self._store(client, "frontier")

            async def count_unpublished() -> int:
                shards = [(intake, shard) for shard in range(self.layout.intakes)]
                shards += [(frontier, shard) for shard in range(self.layout.frontiers)]
                return sum([await _unpublished(store, shard) for store, shard in shards])

            views = RedisViews(intake=intake, frontier=frontier)
            signatures = await read_signatures(KafkaLog(reader, self.sender, self.layout.full_name(KEYS)))
            judge = Judge(self.layout, self.ruleset, signatures, views, reader, self.sender, count_unpublished)
            try:
                await judge.at_rest(timeout_s)
            except Violation as violation:
                raise Violation(f"{violation}; see {self.folder}") from None
            verdict, inputs = await judge.verdict(self.acknowledged)
            if further is not None:
                await further(inputs)
            return verdict
        finally:
            await reader.close()
            await client.aclose()

    def _store(self, client: object, hop: Hop) -> RedisStore:
        return RedisStore(client, f"{self.layout.prefix}.{hop}")  # type: ignore[arg-type]


async def _unpublished(store: RedisStore, shard: int) -> int:
    """Return how many emissions of a shard are committed and not trimmed yet."""
    [head] = await store.calls.read(*store.peek_request(shard, []))
    _, _, next_oseq, trimmed, *_ = (head or b"- 0 1 0").split()
    return int(next_oseq) - int(trimmed) - 1
