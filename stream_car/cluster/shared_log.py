"""How the parts of a query worker read Kafka: the indexer with a connection of its own, all others in turn.

Promise: a reader of old records delays the others by one fetch at most. Cost: two connections.
"""

import asyncio
from collections.abc import Sequence

from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.cluster.connections import Connections
from stream_car.ports import Message, Record


class KafkaReaders:
    """The topics of an installation, for reading. Close it."""

    def __init__(self, connections: Connections, dedicated: Reader) -> None:
        self._connections = connections
        self._dedicated = dedicated
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, connections: Connections) -> "KafkaReaders":
        """Open one more connection, beside those that the process has."""
        return cls(connections, await Reader.open(connections.plan.kafka))

    async def close(self) -> None:
        """Close the connection."""
        await self._dedicated.close()

    def dedicated(self, topic: str) -> KafkaLog:
        """A topic that one task reads all the time."""
        return KafkaLog(self._dedicated, self._connections.sender, self._connections.layout.full_name(topic))

    def shared(self, topic: str) -> "SharedLog":
        """A topic that many read."""
        return SharedLog(self._connections.log(topic), self._turn)


class SharedLog:
    """Implements `ports.Log`: one fetch at a time."""

    def __init__(self, log: KafkaLog, turn: asyncio.Lock) -> None:
        self.topic = log.topic
        self._log = log
        self._turn = turn

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        return await self._log.append(partition, messages)

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        async with self._turn:
            return await self._log.fetch(partition, from_offset, max_records)

    async def range(self, partition: int) -> tuple[int, int]:
        """As in `ports.Log`; nothing waits for it."""
        return await self._log.range(partition)
