"""Follows a topic: the records of all its partitions, as they arrive.

Promise: from the given offsets on, the records of each partition in order. Nothing is remembered: a caller that needs
every record must number them, and start again if one is missing. A record with a header whose name is not UTF-8, which
the client cannot read, is skipped: Stream-CAR writes none. Cost: one connection; without new records, one request
every `FETCH_WAIT_MS`.
"""

from collections.abc import Mapping, Sequence

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from stream_car.adapters.kafka.errors import translate_errors
from stream_car.adapters.kafka.log import to_record
from stream_car.adapters.kafka.reader import open_consumer, stop_consumer
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.ports import Record

WAIT_MS = 500
RECORDS_MAX = 2000


class KafkaTail:
    """Follows one topic. Close it."""

    def __init__(self, consumer: AIOKafkaConsumer, topic: str, offsets: Sequence[int]) -> None:
        self._consumer = consumer
        self._topic = topic
        self._offsets = {TopicPartition(topic, partition): offset for partition, offset in enumerate(offsets)}

    @classmethod
    async def open(cls, server: KafkaServer, topic: str, offsets: Sequence[int]) -> "KafkaTail":
        """Start at these offsets, one per partition."""
        consumer = await open_consumer(server)
        tail = cls(consumer, topic, offsets)
        consumer.assign(list(tail._offsets))
        tail._seek()
        return tail

    async def next(self) -> Mapping[int, list[Record]]:
        """Return new records by partition as soon as there are some; none after `WAIT_MS`."""
        with translate_errors(f"topic {self._topic}"):
            try:
                batches = await self._get(WAIT_MS, RECORDS_MAX)
            except UnicodeDecodeError:  # the client gives none of the records that it has read
                batches = await self._get_one_each()
        return {source.partition: [to_record(record) for record in records] for source, records in batches.items()}

    async def _get(
        self, wait_ms: int, max_records: int, *sources: TopicPartition
    ) -> dict[TopicPartition, list[ConsumerRecord]]:
        batches: dict[TopicPartition, list[ConsumerRecord]] = await self._consumer.getmany(
            *sources, timeout_ms=wait_ms, max_records=max_records
        )
        for source, records in batches.items():
            if records:
                self._offsets[source] = records[-1].offset + 1
        return batches

    async def _get_one_each(self) -> dict[TopicPartition, list[ConsumerRecord]]:
        """Return the next record of each partition, or skip it if it cannot be read."""
        self._seek()
        batches: dict[TopicPartition, list[ConsumerRecord]] = {}
        for source in self._offsets:
            try:
                batches |= await self._get(WAIT_MS, 1, source)
            except UnicodeDecodeError:
                self._offsets[source] += 1
        self._seek()
        return batches

    def _seek(self) -> None:
        for source, offset in self._offsets.items():
            self._consumer.seek(source, offset)

    async def close(self) -> None:
        """Close the connection. Further calls do nothing."""
        await stop_consumer(self._consumer)
