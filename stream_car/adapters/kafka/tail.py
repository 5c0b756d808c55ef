"""What comes into a topic, all partitions together, as it comes.

Promise: from the given offsets on, each partition's records in their order. Nothing is remembered: whoever
needs every record numbers them, and begins anew where one is missing. Cost: one connection; at rest one
request every `FETCH_WAIT_MS`.
"""

from collections.abc import Mapping, Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from stream_car.adapters.kafka.errors import translated
from stream_car.adapters.kafka.log import record_of
from stream_car.adapters.kafka.reader import READING, stopped
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.ports import Record

WAIT_MS = 500
RECORDS_MAX = 2000


class KafkaTail:
    """Follows one topic. Close it."""

    def __init__(self, consumer: AIOKafkaConsumer, topic: str) -> None:
        self._consumer = consumer
        self._topic = topic

    @classmethod
    async def open(cls, server: KafkaServer, topic: str, offsets: Sequence[int]) -> "KafkaTail":
        """From these offsets on, one for each partition."""
        with translated(f"topic {topic}"):
            consumer = AIOKafkaConsumer(
                **server.options(), **READING, group_id=None, request_timeout_ms=server.timeout_ms
            )
            try:
                await consumer.start()
                consumer.assign([TopicPartition(topic, partition) for partition in range(len(offsets))])
                for partition, offset in enumerate(offsets):
                    consumer.seek(TopicPartition(topic, partition), offset)
            except BaseException:
                await consumer.stop()
                raise
        return cls(consumer, topic)

    async def next(self) -> Mapping[int, list[Record]]:
        """New records by partition, as soon as there are some; none after `WAIT_MS`."""
        with translated(f"topic {self._topic}"):
            found: dict[TopicPartition, list[ConsumerRecord]] = await self._consumer.getmany(
                timeout_ms=WAIT_MS, max_records=RECORDS_MAX
            )
        return {place.partition: [record_of(one) for one in records] for place, records in found.items()}

    async def close(self) -> None:
        """Let the connection go; again is harmless."""
        await stopped(self._consumer)
