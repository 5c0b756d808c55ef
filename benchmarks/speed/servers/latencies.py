"""Latencies: from a document to its change, and of Stage 2."""

import asyncio
import time
from collections.abc import Sequence
from random import Random

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.speed.event_stream import START, event
from benchmarks.speed.report import Figure, quantile
from benchmarks.speed.servers.testbed import Testbed
from stream_car.adapters.kafka.reader import READING
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.ports import Message
from stream_car.queries.shards import ManyShards
from stream_car.queries.snapshot import Snapshot

ROUNDS = 400
PAUSE_S = 0.05
ANCHORS = 10
CHANGE_MS = (20.0, 100.0)
STAGE_2_MS = (2.0, 10.0)


async def measure_changes(testbed: Testbed) -> list[Figure]:
    """Publish one document after the other, each after the change of the previous one was received."""
    consumer = AIOKafkaConsumer(**testbed.connections.plan.kafka.options(), **READING, group_id=None)
    await consumer.start()
    try:
        topic = testbed.connections.layout.full_name("changes")
        partitions = [TopicPartition(topic, number) for number in range(testbed.connections.layout.frontiers)]
        consumer.assign(partitions)
        await consumer.seek_to_end(*partitions)
        times = [await _until_change(testbed, consumer, number) for number in range(ROUNDS)]
    finally:
        await consumer.stop()
    return [
        Figure(name="publish to change, p50", value=quantile(times, 0.5), unit="ms", at_most=CHANGE_MS[0]),
        Figure(name="publish to change, p99", value=quantile(times, 0.99), unit="ms", at_most=CHANGE_MS[1]),
        Figure(name="publish to change, largest", value=max(times), unit="ms"),
    ]


async def _until_change(testbed: Testbed, consumer: AIOKafkaConsumer, number: int) -> float:
    name = f"single-{number}"
    begin = time.perf_counter()
    await testbed.publish([single(name, number)])
    while True:
        received = await consumer.getmany(timeout_ms=1000)
        seconds = time.perf_counter() - begin
        if any(f'"{name}"'.encode() in record.value for records in received.values() for record in records):
            await asyncio.sleep(PAUSE_S)
            return seconds * 1e3


def single(name: str, number: int) -> Message:
    """Return a document with its own scope, so that it causes one change."""
    document = event(name, "pre_clearance_approved", START, employee=900_000 + number, ticker="ONE")
    return Message(value=encode(document), key=name.encode())


async def measure_stage_2(testbed: Testbed, known: Sequence[Document]) -> list[Figure]:
    """Walk from ten random documents, several times."""
    random = Random(5)
    times: list[float] = []
    rounds: list[float] = []
    keys: list[float] = []
    for _ in range(ROUNDS):
        anchors = [random.choice(known).id for _ in range(ANCHORS)]
        reader = Snapshot(
            ManyShards(testbed.views, testbed.connections.partitions).source(), testbed.connections.plan.ruleset
        )
        begin = time.perf_counter()
        walked = await reader.walk(anchors)
        times.append((time.perf_counter() - begin) * 1e3)
        rounds.append(reader.rounds)
        keys.append(reader.lookups)
        assert all(walk is not None for walk in walked)
    return [
        Figure(name=f"stage 2, {ANCHORS} anchors, p50", value=quantile(times, 0.5), unit="ms", at_most=STAGE_2_MS[0]),
        Figure(name=f"stage 2, {ANCHORS} anchors, p99", value=quantile(times, 0.99), unit="ms", at_most=STAGE_2_MS[1]),
        Figure(name="rounds of reads, p50", value=quantile(rounds, 0.5), unit=""),
        Figure(name="rounds of reads, largest", value=max(rounds), unit=""),
        Figure(name="keys read, p50", value=quantile(keys, 0.5), unit=""),
    ]
