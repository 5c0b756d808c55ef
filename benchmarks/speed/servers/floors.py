"""What servers and their clients cost without us: reading Kafka, writing to Kafka, writing to Redis."""

import os
import time
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, TopicPartition

from benchmarks.speed.report import Figure
from benchmarks.speed.servers.place import Measured, cpu
from stream_car.adapters.kafka.reader import READING
from stream_car.ports import Message

BATCH = 100
VALUE = 180  # bytes: what intake keeps of a document
PLACEMENT = 350


async def floors(here: Measured, sent: Sequence[Message]) -> list[Figure]:
    """Microseconds of the processor a record or value."""
    return [
        *await _read(here),
        *await _written(here, [Message(value=os.urandom(PLACEMENT), key=one.key) for one in sent]),
        *await _kept(here, len(sent)),
    ]


async def _read(here: Measured) -> list[Figure]:
    """All documents by aiokafka's own consumer, as many at once as it gives."""
    topic = here.works.layout.named("documents")
    consumer = AIOKafkaConsumer(**here.works.plan.kafka.options(), **READING, group_id=None)
    await consumer.start()
    try:
        places = [TopicPartition(topic, q) for q in range(here.works.layout.intakes)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        left = sum((await consumer.end_offsets(places)).values())
        count, begin, spent = left, time.perf_counter(), time.process_time()
        while left > 0:
            left -= sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
        took, spent = time.perf_counter() - begin, time.process_time() - spent
    finally:
        await consumer.stop()
    return [
        Figure(name="aiokafka, reading records of 1 KB", value=spent / count * 1e6, unit="us"),
        Figure(name="the same, by the clock", value=count / took, unit="records/s"),
    ]


async def _written(here: Measured, records: Sequence[Message]) -> list[Figure]:
    """To one partition of the rejected, which nobody reads."""
    topic = here.works.layout.named("rejected")
    own, server = time.process_time(), cpu(here.kafka.pid)
    for start in range(0, len(records), BATCH):
        await here.works.sender.send(topic, 0, records[start : start + BATCH])
    own, server = time.process_time() - own, cpu(here.kafka.pid) - server
    return [
        Figure(
            name=f"aiokafka, writing {PLACEMENT} bytes, {BATCH} in a batch", value=own / len(records) * 1e6, unit="us"
        ),
        Figure(name="the same, Kafka", value=server / len(records) * 1e6, unit="us"),
    ]


async def _kept(here: Measured, count: int) -> list[Figure]:
    """Fields of one hash, by plain commands."""
    client, value = here.works.client, os.urandom(VALUE)
    own, server = time.process_time(), cpu(here.redis.pid)
    for start in range(0, count, BATCH):
        pairs = [word for at in range(start, start + BATCH) for word in (at.to_bytes(16, "big"), value)]
        await client.execute_command("HSET", "floor", *pairs)
    own, server = time.process_time() - own, cpu(here.redis.pid) - server
    await client.execute_command("UNLINK", "floor")
    return [
        Figure(name=f"redis-py, HSET of {BATCH} values of {VALUE} bytes, a value", value=own / count * 1e6, unit="us"),
        Figure(name="the same, Redis", value=server / count * 1e6, unit="us"),
    ]
