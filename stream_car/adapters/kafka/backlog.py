"""What is still to be read of some partitions, measured beside those who read them.

Promise: nothing is read from a group and no position moves. Cost: one connection; per measurement two requests, and one
fetch of a record for each partition that has something to be read.
"""

from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError
from msgspec import Struct

from stream_car.adapters.kafka.errors import translate_errors
from stream_car.adapters.kafka.reader import open_consumer, stop_consumer
from stream_car.adapters.kafka.settings import KafkaServer

FETCH_BYTES = 1  # a broker returns whole batches, so this means one of them
WAIT_MS = 1000


class Backlog(Struct, frozen=True):
    """Where a partition begins and ends, and when its first record from the position on was appended."""

    first: int
    end: int
    oldest_ms: int | None


class BacklogReader:
    """Measures backlogs. Close it."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer

    @classmethod
    async def open(cls, server: KafkaServer) -> "BacklogReader":
        """Return a reader with a connection of its own."""
        return cls(await open_consumer(server, max_partition_fetch_bytes=FETCH_BYTES))

    async def close(self) -> None:
        """Close the connection. Further calls do nothing."""
        await stop_consumer(self._consumer)

    async def measure(self, positions: Mapping[TopicPartition, int]) -> dict[TopicPartition, Backlog]:
        """Return the backlog of each partition from a position on. Raises `Unavailable`."""
        with translate_errors("the ends of the topics"):
            firsts = await self._consumer.beginning_offsets(list(positions))
            ends = await self._consumer.end_offsets(list(positions))
            return {
                source: Backlog(
                    int(firsts[source]),
                    int(ends[source]),
                    await self._oldest_ms(source, max(position, int(firsts[source])))
                    if position < ends[source]
                    else None,
                )
                for source, position in positions.items()
            }

    async def _oldest_ms(self, source: TopicPartition, position: int) -> int | None:
        self._consumer.assign([source])
        self._consumer.seek(source, position)
        try:
            batches = await self._consumer.getmany(source, timeout_ms=WAIT_MS, max_records=1)
        except OffsetOutOfRangeError:
            return None
        records = batches.get(source)
        return int(records[0].timestamp) if records else None
