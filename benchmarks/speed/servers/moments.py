"""How long one thing takes: a document to its change, Stage 2, a dead worker's shards to move again."""

import asyncio
import time
from collections.abc import Sequence
from random import Random

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.speed.feed import START, event
from benchmarks.speed.report import Figure, quantile
from benchmarks.speed.servers.place import Measured
from stream_car.adapters.kafka.reader import READING
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.ports import Message, ShardId
from stream_car.queries.shards import ManyShards
from stream_car.queries.snapshot import Snapshot

ROUNDS = 400
PAUSE_S = 0.05
ANCHORS = 10
DEATHS = 6
DROP_S = 0.2
CHANGE_MS = (20.0, 100.0)
STAGE_2_MS = (2.0, 10.0)
MOVED_S = 10.0


async def changes(here: Measured) -> list[Figure]:
    """One document after the other, each until its change is heard."""
    consumer = AIOKafkaConsumer(**here.works.plan.kafka.options(), **READING, group_id=None)
    await consumer.start()
    try:
        topic = here.works.layout.named("changes")
        places = [TopicPartition(topic, p) for p in range(here.works.layout.frontiers)]
        consumer.assign(places)
        await consumer.seek_to_end(*places)
        times = [await _heard(here, consumer, number) for number in range(ROUNDS)]
    finally:
        await consumer.stop()
    return [
        Figure(name="publish to change, p50", value=quantile(times, 0.5), unit="ms", most=CHANGE_MS[0]),
        Figure(name="publish to change, p99", value=quantile(times, 0.99), unit="ms", most=CHANGE_MS[1]),
        Figure(name="publish to change, largest", value=max(times), unit="ms"),
    ]


async def _heard(here: Measured, consumer: AIOKafkaConsumer, number: int) -> float:
    name = f"single-{number}"
    begin = time.perf_counter()
    await here.publish([_single(name, number)])
    while True:
        found = await consumer.getmany(timeout_ms=1000)
        took = time.perf_counter() - begin
        if any(f'"{name}"'.encode() in record.value for records in found.values() for record in records):
            await asyncio.sleep(PAUSE_S)
            return took * 1e3


def _single(name: str, number: int) -> Message:
    """A document with a scope of its own, so that it makes one change."""
    said = event(name, "pre_clearance_approved", START, employee=900_000 + number, ticker="ONE")
    return Message(value=encode(said), key=name.encode())


async def second_stage(here: Measured, known: Sequence[Document]) -> list[Figure]:
    """The walks from ten documents, chosen anew each time."""
    random = Random(5)
    times: list[float] = []
    rounds: list[float] = []
    keys: list[float] = []
    for _ in range(ROUNDS):
        anchors = [random.choice(known).id for _ in range(ANCHORS)]
        reader = Snapshot(ManyShards(here.views, here.works.partitions).source(), here.works.plan.ruleset)
        begin = time.perf_counter()
        walked = await reader.walk(anchors)
        times.append((time.perf_counter() - begin) * 1e3)
        rounds.append(reader.rounds)
        keys.append(reader.lookups)
        assert all(one is not None for one in walked)
    return [
        Figure(name=f"stage 2, {ANCHORS} anchors, p50", value=quantile(times, 0.5), unit="ms", most=STAGE_2_MS[0]),
        Figure(name=f"stage 2, {ANCHORS} anchors, p99", value=quantile(times, 0.99), unit="ms", most=STAGE_2_MS[1]),
        Figure(name="rounds of reads, p50", value=quantile(rounds, 0.5), unit=""),
        Figure(name="rounds of reads, most", value=max(rounds), unit=""),
        Figure(name="keys read, p50", value=quantile(keys, 0.5), unit=""),
    ]


async def moved_again(here: Measured) -> list[Figure]:
    """Workers are killed one after the other, while documents arrive for every shard."""
    times: list[float] = []
    arriving = asyncio.create_task(_dropping(here))
    try:
        for _ in range(DEATHS):
            victim = here.workers.pop(0)
            shards = victim.shards()
            victim.process.kill()
            victim.process.wait()
            times += await _moving(here, shards)
            await here.work(1)
    finally:
        arriving.cancel()
        await asyncio.gather(arriving, return_exceptions=True)
    return [
        Figure(name="a dead worker's shards move again, p50", value=quantile(times, 0.5), unit="s"),
        Figure(name="a dead worker's shards move again, p99", value=quantile(times, 0.99), unit="s", most=MOVED_S),
    ]


async def _moving(here: Measured, shards: list[ShardId]) -> list[float]:
    begin, stood, times = time.perf_counter(), await here.stands(), []
    waited = set(shards)
    while waited:
        await asyncio.sleep(0.02)
        stands = await here.stands()
        moving = {place for place in waited if stands[place] > stood[place]}
        times += [time.perf_counter() - begin] * len(moving)
        waited -= moving
    return times


async def _dropping(here: Measured) -> None:
    """A document for every intake shard, each with scopes in many frontier shards, a few times a second."""
    number = 0
    while True:
        await here.publish([_single(f"drop-{number + at}", number + at) for at in range(64)])
        number += 64
        await asyncio.sleep(DROP_S)
