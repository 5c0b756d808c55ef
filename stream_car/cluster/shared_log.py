"""How the parts of a query worker read Kafka: the feeder with a connection of its own, all others in turn.

Promise: whoever reads far back holds up nobody for longer than one fetch. Cost: two connections.
"""

import asyncio
from collections.abc import Sequence

from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.cluster.connections import Works
from stream_car.ports import Message, Record


class Reading:
    """The topics of an installation, to read. Close it."""

    def __init__(self, works: Works, feeding: Reader) -> None:
        self._works = works
        self._feeding = feeding
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, works: Works) -> "Reading":
        """Beside the connections that the process has."""
        return cls(works, await Reader.open(works.plan.kafka))

    async def close(self) -> None:
        """Let the connection go."""
        await self._feeding.close()

    def feeding(self, topic: str) -> KafkaLog:
        """A topic that one task reads on and on."""
        return KafkaLog(self._feeding, self._works.sender, self._works.layout.named(topic))

    def log(self, topic: str) -> "SharedLog":
        """A topic that many read."""
        return SharedLog(self._works.log(topic), self._turn)


class SharedLog:
    """Implements `ports.Log`: one fetch at a time."""

    def __init__(self, log: KafkaLog, turn: asyncio.Lock) -> None:
        self.topic = log.topic
        self._log = log
        self._turn = turn

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        """As the log does."""
        return await self._log.append(partition, messages)

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        """As the log does."""
        async with self._turn:
            return await self._log.fetch(partition, from_offset, max_records)

    async def range(self, partition: int) -> tuple[int, int]:
        """As the log does; nobody has to wait for it."""
        return await self._log.range(partition)
