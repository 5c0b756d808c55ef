"""Follows a topic: the records of all its partitions, as they arrive.

Promise: from the given offsets on, the records of each partition in order. Nothing is remembered: a caller that needs
every record must number them, and start again if one is missing. Cost: one connection; without new records, one request
every `FETCH_WAIT_MS`.
"""

from collections.abc import Mapping, Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from stream_car.adapters.kafka.errors import translate_errors
from stream_car.adapters.kafka.log import to_record
from stream_car.adapters.kafka.reader import READING, stop_consumer
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
        """Start at these offsets, one per partition."""
        with translate_errors(f"topic {topic}"):
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
        """Return new records by partition as soon as there are some; none after `WAIT_MS`."""
        with translate_errors(f"topic {self._topic}"):
            batches: dict[TopicPartition, list[ConsumerRecord]] = await self._consumer.getmany(
                timeout_ms=WAIT_MS, max_records=RECORDS_MAX
            )
        return {source.partition: [to_record(record) for record in records] for source, records in batches.items()}

    async def close(self) -> None:
        """Close the connection. Further calls do nothing."""
        await stop_consumer(self._consumer)
