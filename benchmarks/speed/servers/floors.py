"""What servers and their clients cost without Stream-CAR: reading Kafka, writing to Kafka, writing to Redis."""

import os
import time
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.speed.report import Figure
from benchmarks.speed.servers.testbed import Testbed, cpu_seconds
from stream_car.adapters.kafka.reader import READING
from stream_car.ports import Message

BATCH = 100
VALUE = 180  # bytes that intake keeps of a document
PLACEMENT = 350  # bytes


async def measure_floors(testbed: Testbed, messages: Sequence[Message]) -> list[Figure]:
    """Measure microseconds of processor time per record or value."""
    placements = [Message(value=os.urandom(PLACEMENT), key=message.key) for message in messages]
    return [
        *await _measure_read(testbed),
        *await _measure_write(testbed, placements),
        *await _measure_redis(testbed, len(messages)),
    ]


async def _measure_read(testbed: Testbed) -> list[Figure]:
    """Read all documents with aiokafka's own consumer, in batches of the size that it chooses."""
    topic = testbed.connections.layout.full_name("documents")
    consumer = AIOKafkaConsumer(**testbed.connections.plan.kafka.options(), **READING, group_id=None)
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, number) for number in range(testbed.connections.layout.intakes)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        total = remaining = sum((await consumer.end_offsets(partitions)).values())
        begin, cpu = time.perf_counter(), time.process_time()
        while remaining > 0:
            remaining -= sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    finally:
        await consumer.stop()
    return [
        Figure(name="aiokafka, reading records of 1 KB", value=cpu / total * 1e6, unit="us"),
        Figure(name="the same, wall-clock rate", value=total / wall, unit="records/s"),
    ]


async def _measure_write(testbed: Testbed, records: Sequence[Message]) -> list[Figure]:
    """Write to one partition of the topic for rejected records, which nothing reads."""
    topic = testbed.connections.layout.full_name("rejected")
    own, server = time.process_time(), cpu_seconds(testbed.kafka.pid)
    for start in range(0, len(records), BATCH):
        await testbed.connections.sender.send(topic, 0, records[start : start + BATCH])
    own, server = time.process_time() - own, cpu_seconds(testbed.kafka.pid) - server
    return [
        Figure(
            name=f"aiokafka, writing {PLACEMENT} bytes, {BATCH} per batch", value=own / len(records) * 1e6, unit="us"
        ),
        Figure(name="the same, Kafka", value=server / len(records) * 1e6, unit="us"),
    ]


async def _measure_redis(testbed: Testbed, count: int) -> list[Figure]:
    """Write fields of one hash with plain commands."""
    client, value = testbed.connections.client, os.urandom(VALUE)
    own, server = time.process_time(), cpu_seconds(testbed.redis.pid)
    for start in range(0, count, BATCH):
        pairs = [word for at in range(start, start + BATCH) for word in (at.to_bytes(16, "big"), value)]
        await client.execute_command("HSET", "floor", *pairs)
    own, server = time.process_time() - own, cpu_seconds(testbed.redis.pid) - server
    await client.execute_command("UNLINK", "floor")
    return [
        Figure(
            name=f"redis-py, HSET of {BATCH} values of {VALUE} bytes, per value", value=own / count * 1e6, unit="us"
        ),
        Figure(name="the same, Redis", value=server / count * 1e6, unit="us"),
    ]
