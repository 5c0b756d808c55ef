"""Topics and state of one test over a Kafka and a Redis, its workers, and the documents that are sent."""

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
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
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply, delete
from stream_car.adapters.redis.connection import connect
from stream_car.adapters.redis.settings import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.adapters.redis.views import RedisViews
from stream_car.errors import Unavailable
from stream_car.ports import Hop, Message, Record
from stream_car.processing.partitions import Partitions
from tests.chaos.judge import Judge, Verdict
from tests.chaos.workers import QueryWorker, Worker
from tests.simulation.world import Violation, bytes_of
from tests.support.streams import random_document

RULES = Path(__file__).with_name("rules.toml")
STREAM_CAR = (str(Path(sys.executable).with_name("stream-car")),)
DOOMED = (sys.executable, "-m", "tests.chaos.doomed")
PARTS = Partitions(intakes=2, frontiers=3)
P = TypeVar("P", bound=Worker)
REST_S = 60.0


class Installation:
    """Topics and state of one test, and its workers."""

    def __init__(self, kafka: str, redis: str, folder: Path, *, rules: Sequence[str] = (str(RULES),)) -> None:
        self.server, self.redis = KafkaServer(address=kafka), RedisServer(url=redis)
        self.folder = folder
        self.layout = Layout(
            prefix=f"test-{secrets.token_hex(6)}", intakes=PARTS.intakes, frontiers=PARTS.frontiers, single_broker=True
        )
        self.rules = rules
        self.ruleset = rule_packs.load(rules)
        self.workers: list[Worker] = []
        self.acknowledged: dict[tuple[int, int], Message] = {}  # by partition and offset
        self.environment: dict[str, str] = {}  # for all workers of this installation
        self._plan = Random(7)

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Installation"]:
        """Topics are there within; workers are gone after."""
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

    def worker(self, hops: str = "all", rules: str | None = None) -> Worker:
        """Another process."""
        return self._started(Worker, ["worker", hops], self.rules if rules is None else [rules])

    def doomed(self, at: str = "", times: int = 1) -> Worker:
        """Another process, which dies when it comes to a point of `doomed.POINTS` for the n-th time."""
        environment = {"CHAOS_AT": f"{at}:{times}"} if at else {}
        return self._started(Worker, ["worker", "all"], self.rules, environment, DOOMED)

    def serving(self, token: str | None = None) -> QueryWorker:
        """Another process that answers: to whoever has the token, if there is one."""
        environment = {"STREAM_CAR_TOKEN": token} if token is not None else {}
        query = self._started(QueryWorker, ["serve", "--port", "0"], self.rules, environment)
        query.token = token
        return query

    def _started(
        self,
        kind: type[P],
        command: Sequence[str],
        rules: Sequence[str],
        environment: Mapping[str, str] | None = None,
        program: Sequence[str] = STREAM_CAR,
    ) -> P:
        options = ["--single-broker", "--prefix", self.layout.prefix]
        options += [word for rule in rules for word in ("--rules", rule)]
        places = {"STREAM_CAR_KAFKA": self.server.address, "STREAM_CAR_REDIS": self.redis.url}
        found = kind(
            self.folder / f"process-{len(self.workers)}.log",
            {**places, **self.environment, **(environment or {})},
            [*command, *options],
            program,
        )
        self.workers.append(found)
        return found

    async def publish(self, count: int, ids: int = 60) -> None:
        """Documents, corrections, retractions by null value and nonsense, a quarter of them in a wrong partition.

        Revisions rise with the documents before, so that however many there are, each may change something.
        """
        random = self._plan
        risen = len(self.acknowledged) // ids
        batches: dict[int, list[Message]] = {}
        for _ in range(count):
            said = random_document(random, ids)
            said = msgspec.structs.replace(said, revision=said.revision + risen)
            what = random.random()
            at = PARTS.of_id(said.id) if what < 0.75 else random.randrange(PARTS.intakes)
            message = Message(value=bytes_of(said), key=said.id.encode())
            if what < 0.08:
                message = Message(value=None, key=said.id.encode())
            elif what > 0.97:
                message = Message(value=b'{"id": "n1", "type": "unheard of", "time": "2024"}', headers=(("h", b"v"),))
            batches.setdefault(at, []).append(message)
        for partition, messages in batches.items():
            offsets = await self._sent(partition, messages)
            self.acknowledged |= {(partition, at): one for at, one in zip(offsets, messages, strict=True)}

    async def _sent(self, partition: int, messages: Sequence[Message]) -> Sequence[int]:
        """Again until it is acknowledged: a repeat changes nothing, but for null values, which say the same."""
        deadline = time.monotonic() + REST_S
        while True:
            try:
                return await self.sender.send(self.layout.named("documents"), partition, messages)
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)

    async def records(self, topic: str, partition: int) -> list[Record]:
        """All there are."""
        reader = await Reader.open(self.server)
        try:
            log = KafkaLog(reader, self.sender, self.layout.named(topic))
            _, end = await log.range(partition)
            found: list[Record] = []
            while len(found) < end:
                found += await log.fetch(partition, len(found), 1000)
            return found
        finally:
            await reader.close()

    async def judge(self, timeout_s: float = REST_S) -> Verdict:
        """Wait until nothing is left to do, then compare with the definitions. Raises `Violation`."""
        client = await connect(self.redis)
        reader = await Reader.open(self.server)
        try:
            views = RedisViews(intake=self._store(client, "intake"), frontier=self._store(client, "frontier"))
            judge = Judge(self.layout, self.ruleset, views, reader, self.sender)
            try:
                await judge.at_rest(timeout_s)
            except Violation as violation:
                raise Violation(f"{violation}; see {self.folder}") from None
            return await judge.verdict(self.acknowledged)
        finally:
            await reader.close()
            await client.aclose()

    def _store(self, client: object, hop: Hop) -> RedisStore:
        return RedisStore(client, f"{self.layout.prefix}.{hop}")  # type: ignore[arg-type]
