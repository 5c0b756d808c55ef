"""Workers as processes over a Kafka and a Redis: started, killed, and judged by what they leave behind.

The judge reads only topics and store. What publishers sent is given to the definitions; every change that
was told is compared with an uninterrupted fold of the log, byte for byte.
"""

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import TypeVar

from deploy.local.processes import ends_with_its_parent
from stream_car import AsyncClient, domains
from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.server import KafkaServer
from stream_car.adapters.kafka.specification import Layout
from stream_car.adapters.kafka.topics import apply, delete
from stream_car.adapters.redis.connect import connect
from stream_car.adapters.redis.server import RedisServer
from stream_car.adapters.redis.store import RedisStore
from stream_car.adapters.redis.views import RedisViews
from stream_car.engine.hops import FrontierFold, generation_of
from stream_car.engine.partitions import Partitions
from stream_car.engine.query import Queries
from stream_car.engine.reader import Reader as Values
from stream_car.engine.scopes import holding
from stream_car.engine.sources import ManyShards
from stream_car.errors import Unavailable
from stream_car.ports import Event, Hop, Message, Place, Record
from tests.properties.streams import random_document
from tests.properties.words import PlainIndex
from tests.simulation.two_hops.truth import Inputs, Reference, replayed
from tests.simulation.world import Violation, bytes_of

RULES = Path(__file__).with_name("rules.toml")
PARTS = Partitions(intakes=2, frontiers=3)
P = TypeVar("P", bound="Worker")
REST_S = 60.0
READY_S = 40.0


class Worker:
    """A `stream-car worker` process. What it says is kept in a file."""

    def __init__(self, log: Path, environment: Mapping[str, str], arguments: Sequence[str]) -> None:
        self.log = log
        command = [str(Path(sys.executable).with_name("stream-car")), *arguments, "--json"]
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [*ends_with_its_parent(), *command], env={**os.environ, **environment}, stdout=out, stderr=out
            )

    def said(self, event: str) -> list[dict[str, object]]:
        """What it told of this kind."""
        lines = self._text().splitlines()
        told: Iterator[dict[str, object]] = (json.loads(line) for line in lines if line.startswith('{"event"'))
        return [one for one in told if one["event"] == event]

    def _text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def shards(self) -> int:
        """How many the group has given it, as it last said."""
        told = self.said("assigned")
        found = told[-1].get("shards", []) if told else []
        assert isinstance(found, list)
        return len(found)

    async def assigned(self, at_least: int = 1) -> None:
        """Returns when the group has given it so many shards."""
        await until(
            lambda: self.shards >= at_least or not self.is_running,
            READY_S,
            f"{self.log}: no {at_least} shards were assigned",
        )
        if not self.is_running:
            raise Violation(f"it ended: {self.log.read_text(encoding='utf-8')[-2000:]}")

    def kill(self) -> None:
        """As a crash would."""
        self._process.kill()
        self._process.wait()

    def freeze(self) -> None:
        """Stop it as a debugger would."""
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._process.send_signal(signal.SIGCONT)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    async def stop(self) -> int:
        """Ask it to end; its exit code."""
        self._process.terminate()
        return await self.ended()

    async def ended(self) -> int:
        """Returns when it has ended; its exit code."""
        await until(lambda: not self.is_running, REST_S, f"{self.log}: it did not end")
        return int(self._process.returncode)


class QueryWorker(Worker):
    """A `stream-car serve` process."""

    async def url(self) -> str:
        """Where it listens."""
        await until(lambda: '"url"' in self._text() or not self.is_running, READY_S, f"{self.log}: it does not listen")
        found = [json.loads(line) for line in self._text().splitlines() if line.startswith('{"url"')]
        if not found:
            raise Violation(f"it ended: {self._text()[-2000:]}")
        return str(found[0]["url"])

    async def ready(self) -> None:
        """Returns when its index has caught up."""
        async with AsyncClient(await self.url()) as client:
            deadline = time.monotonic() + READY_S
            while True:
                try:
                    await client.status()
                    return
                except Unavailable:
                    if time.monotonic() > deadline:
                        raise
                    await asyncio.sleep(0.05)


class Installation:
    """Topics and state of one test, and its workers."""

    def __init__(self, kafka: str, redis: str, folder: Path, *, rules: Sequence[str] = (str(RULES),)) -> None:
        self.server, self.redis = KafkaServer(address=kafka), RedisServer(url=redis)
        self.folder = folder
        self.layout = Layout(
            prefix=f"test-{secrets.token_hex(6)}", intakes=PARTS.intakes, frontiers=PARTS.frontiers, single_broker=True
        )
        self.rules = rules
        self.ruleset = domains.load(rules)
        self.workers: list[Worker] = []
        self.published = 0
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

    def serving(self) -> "QueryWorker":
        """Another process that answers."""
        return self._started(QueryWorker, ["serve", "--port", "0"], self.rules)

    def _started(self, kind: type[P], command: Sequence[str], rules: Sequence[str]) -> P:
        options = ["--single-broker", "--prefix", self.layout.prefix]
        options += [word for rule in rules for word in ("--rules", rule)]
        found = kind(
            self.folder / f"process-{len(self.workers)}.log",
            {"STREAM_CAR_KAFKA": self.server.address, "STREAM_CAR_REDIS": self.redis.url},
            [*command, *options],
        )
        self.workers.append(found)
        return found

    async def publish(self, count: int, ids: int = 60) -> None:
        """Documents, corrections, retractions by null value and nonsense, a quarter of them in a wrong partition."""
        random = self._plan
        batches: dict[int, list[Message]] = {}
        for _ in range(count):
            said = random_document(random, ids)
            what = random.random()
            at = PARTS.of_id(said.id) if what < 0.75 else random.randrange(PARTS.intakes)
            message = Message(value=bytes_of(said), key=said.id.encode())
            if what < 0.08:
                message = Message(value=None, key=said.id.encode())
            elif what > 0.97:
                message = Message(value=b'{"id": "n1", "type": "unheard of", "time": "2024"}', headers=(("h", b"v"),))
            batches.setdefault(at, []).append(message)
        for partition, messages in batches.items():
            await self._sent(partition, messages)
        self.published += count

    async def _sent(self, partition: int, messages: Sequence[Message]) -> None:
        """Again until it is acknowledged: a repeat changes nothing, but for null values, which say the same."""
        deadline = time.monotonic() + REST_S
        while True:
            try:
                await self.sender.send(self.layout.named("documents"), partition, messages)
                return
            except Unavailable:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.2)

    async def judge(self, timeout_s: float = REST_S) -> "Verdict":
        """Wait until nothing is left to do, then compare with the definitions. Raises `Violation`."""
        client = await connect(self.redis)
        reader = await Reader.open(self.server)
        try:
            judge = _Judge(
                self, RedisViews(intake=self._store(client, "intake"), frontier=self._store(client, "frontier")), reader
            )
            await judge.at_rest(timeout_s)
            return await judge.verdict()
        finally:
            await reader.close()
            await client.aclose()

    def _store(self, client: object, hop: Hop) -> RedisStore:
        return RedisStore(client, f"{self.layout.prefix}.{hop}")  # type: ignore[arg-type]


class Verdict:
    """What was found to be right: how many inputs, changes and repeats of changes."""

    def __init__(self, inputs: int, changes: int, repeats: int, rejected: int) -> None:
        self.inputs, self.changes, self.repeats, self.rejected = inputs, changes, repeats, rejected


class _Judge:
    def __init__(self, place: Installation, views: RedisViews, reader: Reader) -> None:
        self.place = place
        self.views = views
        self.logs = {
            name: KafkaLog(reader, place.sender, place.layout.named(name))
            for name in ("documents", "placements", "changes", "rejected")
        }
        self.generation = generation_of(place.ruleset, PARTS)

    async def at_rest(self, timeout_s: float) -> None:
        """Returns when every shard stands at the end of its log, marks included, and stays there."""
        deadline = time.monotonic() + timeout_s
        seen: object = None
        while True:
            stands, ends = await self._standing()
            if stands == ends and seen == ends:
                return
            seen = ends
            if time.monotonic() > deadline:
                raise Violation(f"the shards stand at {stands}, not at {ends}; see {self.place.folder}")
            await asyncio.sleep(0.4)

    async def _standing(self) -> tuple[dict[Place, int], dict[Place, int]]:
        ends: dict[Place, int] = {}
        for q in range(PARTS.intakes):
            ends[Place("intake", q)] = (await self.logs["documents"].range(q))[1]
        for p in range(PARTS.frontiers):
            ends[Place("frontier", p)] = (await self.logs["placements"].range(p))[1]
        try:
            found = await self.views.peek({place: [] for place in ends})
        except Unavailable:
            return {}, ends
        return {place: told[0] for place, told in found.items()}, ends

    async def verdict(self) -> Verdict:
        records = [await self._all("documents", q) for q in range(PARTS.intakes)]
        inputs = Inputs(records, PARTS, self.place.ruleset)
        if left := inputs.unforwarded():
            raise Violation(f"never forwarded: {left}")
        known = inputs.known(inputs.end())
        told: dict[str, set[str]] = {}
        changes = repeats = 0
        for p in range(PARTS.frontiers):
            events, again = await self._events(p)
            changes, repeats = changes + len(events), repeats + again
            told |= replayed(events)
        scopes = sorted({scope for one in known.corpus.values() for scope in self.place.ruleset.scopes(one)})
        for scope in scopes:
            if told.get(scope, set()) != known.frontier(scope):
                raise Violation(f"{scope}: told {told.get(scope)}, not {known.frontier(scope)}")
        queries = Queries(
            shards=ManyShards(self.views, PARTS), index=PlainIndex(), ruleset=self.place.ruleset, generation="g"
        )
        ids = inputs.ids()

        async def look(values: Values) -> None:
            for name, walk in zip(ids, await values.walk(ids), strict=True):
                if (walk is not None) != (name in known.corpus):
                    raise Violation(f"{name} is {'here' if walk is not None else 'not here'}")
                if walk is not None and {entry.id for entry in walk.controlling} != known.controlling(name):
                    raise Violation(f"{name} is controlled by {walk.controlling}, not {known.controlling(name)}")
                if walk is not None and walk.is_active != (name in known.active):
                    raise Violation(f"{name} is {'active' if walk.is_active else 'void'}")
            for scope in scopes:
                found = await values.scope(scope)
                held = await values.with_pages(lambda found=found: holding(found, values))  # type: ignore[misc]
                if {entry.id for entry in held} != known.frontier(scope):
                    raise Violation(f"in {scope} hold {held}")

        await queries.steadily(None, look)
        return Verdict(sum(map(len, records)), changes, repeats, len(await self._all("rejected", 0)))

    async def _all(self, topic: str, partition: int) -> list[Record]:
        found: list[Record] = []
        _, end = await self.logs[topic].range(partition)
        while len(found) < end:
            found += await self.logs[topic].fetch(partition, len(found), 1000)
        return found

    async def _events(self, p: int) -> tuple[list[Event], int]:
        """The changes as first told, and how often one was repeated. Raises `Violation` if they are not the fold's."""
        reference = Reference(FrontierFold(self.place.ruleset, PARTS, shard=p), await self._all("placements", p))
        last = repeats = 0
        for record in await self._all("changes", p):
            name = dict(record.headers)["ce_id"].decode()
            generation, shard, number = name.split("/")
            oseq = int(number)
            expected = reference.event(oseq)
            if (generation, int(shard)) != (self.generation, p) or expected is None:
                raise Violation(f"change {name} has no cause in the log")
            if (record.key, record.value) != (expected.key, expected.value):
                raise Violation(f"change {name} says {record.value!r}, not {expected.value!r}")
            if oseq > last + 1:
                raise Violation(f"change {name} follows change {last}")
            repeats += oseq <= last
            last = max(last, oseq)
        reference.at(len(reference.records))
        if last != len(reference.events):
            raise Violation(f"shard {p} told {last} changes, not {len(reference.events)}")
        return reference.events, repeats


async def until(is_so: Callable[[], bool], timeout_s: float, otherwise: str) -> None:
    """Returns when it is so; looks often."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise Violation(otherwise)
        await asyncio.sleep(0.05)
