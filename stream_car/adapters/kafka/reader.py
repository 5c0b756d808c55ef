"""A Kafka consumer that reads from the offset that it is given.

Promise: records come from the requested offset on; the committed offsets of the group are never used. What was fetched
ahead is returned without a request. One reader serves one assignment: after a rebalance, make another one.
"""

import asyncio
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from stream_car.adapters.kafka.errors import translate_errors
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.errors import ClaimLost, StreamCarError

FETCH_BYTES = 2 << 20
STOP_S = 5.0
FETCH_WAIT_MS = 100  # a longer wait starves busy partitions that share a broker with idle ones
READING: dict[str, object] = {
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "fetch_max_wait_ms": FETCH_WAIT_MS,
    "max_partition_fetch_bytes": FETCH_BYTES,
    "check_crcs": True,
}


async def open_consumer(server: KafkaServer, **reading: object) -> AIOKafkaConsumer:
    """Return a connected consumer without a group. `reading` replaces options of `READING`. Stop it."""
    with translate_errors(f"Kafka at {server.address}"):
        consumer = AIOKafkaConsumer(
            **server.options(), **{**READING, **reading}, group_id=None, request_timeout_ms=server.timeout_ms
        )
        try:
            await consumer.start()
        except BaseException:
            await consumer.stop()
            raise
    return consumer


async def stop_consumer(consumer: AIOKafkaConsumer) -> None:
    """Close the connections of a consumer. If it hangs, leave it alone after `STOP_S` seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_S):
            await consumer.stop()


class Reader:
    """Reads any partition; with `in_group`, only partitions that the group has assigned to this consumer."""

    def __init__(self, consumer: AIOKafkaConsumer, *, in_group: bool = False) -> None:
        self._consumer = consumer
        self._in_group = in_group
        self._positions: dict[TopicPartition, int] = {}

    @classmethod
    async def open(cls, server: KafkaServer) -> "Reader":
        """Return a reader with a connection of its own. Close it."""
        return cls(await open_consumer(server))

    async def close(self) -> None:
        """Close the connection. Further calls do nothing."""
        await stop_consumer(self._consumer)

    async def get(
        self, source: TopicPartition, offset: int, max_records: int, wait_ms: int
    ) -> tuple[list[ConsumerRecord], int]:
        """Wait at most `wait_ms` for records from the offset on. Return them and the offset that they reach.

        If that is beyond the last record, the broker has nothing for consumers in between.
        """
        self._seek(source, offset)
        batches: dict[TopicPartition, list[ConsumerRecord]] = await self._consumer.getmany(
            source, timeout_ms=wait_ms, max_records=max_records
        )
        records = batches.get(source, [])
        reached = records[-1].offset + 1 if records else int(await self._consumer.position(source))
        self._positions[source] = reached
        return records, reached

    async def range(self, source: TopicPartition) -> tuple[int, int]:
        """Return the first offset that the partition still has, and the offset that the next record will get."""
        first, end = await asyncio.gather(
            self._consumer.beginning_offsets([source]), self._consumer.end_offsets([source])
        )  # together, because each may wait for a fetch that is on its way
        return int(first[source]), int(end[source])

    def is_at_end(self, source: TopicPartition, offset: int) -> bool:
        """Return whether the log ended at the offset in the broker's latest response; `False` if it did not say."""
        return source in self._consumer.assignment() and self._consumer.highwater(source) == offset

    def forget_position(self, source: TopicPartition) -> None:
        """Drop what was fetched ahead of a partition, so that the broker is asked again."""
        self._positions.pop(source, None)

    async def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic. Raises `StreamCarError` if it does not exist."""
        with translate_errors(f"topic {topic}"):
            if topic not in await self._consumer.topics():
                raise StreamCarError(f"Kafka does not have topic {topic}. Create it with `stream-car topics apply`.")
            return len(self._consumer.partitions_for_topic(topic) or ())

    def _seek(self, source: TopicPartition, offset: int) -> None:
        """Move the client to the offset, unless it is there: seeking throws away what was fetched ahead."""
        if source not in self._consumer.assignment():
            if self._in_group:
                raise ClaimLost(f"Partition {source.partition} of {source.topic} belongs to another worker now.")
            self._consumer.assign([*self._positions, source])  # replaces: partitions without a position are dropped
            for other, position in self._positions.items():
                self._consumer.seek(other, position)
        if self._positions.get(source) != offset:
            self._consumer.seek(source, offset)
            self._positions[source] = offset
