"""A consumer of Kafka, told where to read.

Promise: what comes is from the offset asked for on; the group's committed offsets are never used. Asking
for what comes next costs no request where it was fetched ahead. One reader serves one assignment: make
another one after a rebalance.
"""

import asyncio
from contextlib import suppress

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from stream_car.adapters.kafka.errors import translated
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.errors import ClaimLost, StreamCarError

FETCH_BYTES = 2 << 20
STOP_S = 5.0
FETCH_WAIT_MS = 100  # a larger one starves busy partitions that share a broker with idle ones
READING: dict[str, object] = {
    "enable_auto_commit": False,
    "auto_offset_reset": "none",
    "fetch_max_wait_ms": FETCH_WAIT_MS,
    "max_partition_fetch_bytes": FETCH_BYTES,
    "check_crcs": True,
}


async def stopped(consumer: AIOKafkaConsumer) -> None:
    """Let a consumer's connections go; one that hangs over it is left alone after a while."""
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_S):
            await consumer.stop()


class Reader:
    """Reads what is asked for; `in_group`: only what the group has assigned to this consumer."""

    def __init__(self, consumer: AIOKafkaConsumer, *, in_group: bool = False) -> None:
        self._consumer = consumer
        self._in_group = in_group
        self._positions: dict[TopicPartition, int] = {}

    @classmethod
    async def open(cls, server: KafkaServer) -> "Reader":
        """A reader with a connection of its own. Close it."""
        with translated(f"Kafka at {server.address}"):
            consumer = AIOKafkaConsumer(
                **server.options(), **READING, group_id=None, request_timeout_ms=server.timeout_ms
            )
            try:
                await consumer.start()
            except BaseException:
                await consumer.stop()
                raise
        return cls(consumer)

    async def close(self) -> None:
        """Let the connection go; again is harmless."""
        await stopped(self._consumer)

    async def get(
        self, place: TopicPartition, offset: int, max_records: int, wait_ms: int
    ) -> tuple[list[ConsumerRecord], int]:
        """Records from the offset on, as soon as there are some or the wait is over, and how far they reach.

        Where they reach beyond the last one, the broker had nothing there for consumers.
        """
        self._go(place, offset)
        got: dict[TopicPartition, list[ConsumerRecord]] = await self._consumer.getmany(
            place, timeout_ms=wait_ms, max_records=max_records
        )
        records = got.get(place, [])
        reached = records[-1].offset + 1 if records else int(await self._consumer.position(place))
        self._positions[place] = reached
        return records, reached

    async def range(self, place: TopicPartition) -> tuple[int, int]:
        """The first offset kept, and the offset that the next record will get."""
        first, end = await asyncio.gather(
            self._consumer.beginning_offsets([place]), self._consumer.end_offsets([place])
        )  # each may wait for a fetch that is on its way
        return int(first[place]), int(end[place])

    def is_at_end(self, place: TopicPartition, offset: int) -> bool:
        """Whether the broker's last answer said that the log ends there; `False` where it did not say."""
        return place in self._consumer.assignment() and self._consumer.highwater(place) == offset

    def delete_up_to(self, place: TopicPartition) -> None:
        """Ask the broker again for what comes next."""
        self._positions.pop(place, None)

    async def partitions(self, topic: str) -> int:
        """How many partitions a topic has. Raises `StreamCarError` where it does not exist."""
        with translated(f"topic {topic}"):
            if topic not in await self._consumer.topics():
                raise StreamCarError(f"topic {topic} does not exist in Kafka; `stream-car topics apply` makes it")
            return len(self._consumer.partitions_for_topic(topic) or ())

    def _go(self, place: TopicPartition, offset: int) -> None:
        """Only where the client is elsewhere: seeking throws away what was fetched ahead."""
        if place not in self._consumer.assignment():
            if self._in_group:
                raise ClaimLost(f"partition {place.partition} of {place.topic} belongs to another worker now")
            self._consumer.assign([*self._positions, place])  # replaces: those without a position are dropped
            for other, position in self._positions.items():
                self._consumer.seek(other, position)
        if self._positions.get(place) != offset:
            self._consumer.seek(place, offset)
            self._positions[place] = offset
