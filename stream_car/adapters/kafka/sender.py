"""Writing to Kafka: acknowledged by all in-sync replicas before it returns.

Promise: idempotent, in order within a partition, awaited. After any error the producer is thrown away and
the next call makes another: a producer that lost its place never finds it again. What was sent when the
error came may have been kept; a repeat is told apart by whoever reads it. Cost: one record batch a call
where the messages fit into one, else several, one after the other.
"""

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from stream_car.adapters.kafka.errors import translated
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.ports import Message

BATCH_BYTES = 1_000_000  # below max.message.bytes, which is 1 MiB unless a topic says otherwise


class _Connection:
    """A producer, and whether it is of no more use."""

    def __init__(self, producer: AIOKafkaProducer) -> None:
        self.producer = producer
        self.broken = asyncio.get_running_loop().create_future()


class Sender:
    """One connection for writing, shared by the logs of a process. Close it."""

    def __init__(self, server: KafkaServer, *, batch_bytes: int = BATCH_BYTES) -> None:
        self._server = server
        self._batch_bytes = batch_bytes
        self._connection: _Connection | None = None
        self._starting = asyncio.Lock()

    async def send(self, topic: str, partition: int, messages: Sequence[Message]) -> list[int]:
        """The messages' offsets, once all are acknowledged. What fits into a batch is kept whole or not at all."""
        offsets: list[int] = []
        with translated(f"topic {topic}"):
            connection = await self._ready()
            try:
                while len(offsets) < len(messages):
                    first, count = await self._batch(connection, topic, partition, messages, len(offsets))
                    offsets += range(first, first + count)
            except asyncio.CancelledError:
                raise  # what was sent is on its way, and others use the connection
            except BaseException:
                await self._throw_away(connection)
                raise
        return offsets

    async def close(self) -> None:
        """Let the connection go; again is harmless."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.producer.stop()

    async def _batch(
        self, connection: _Connection, topic: str, partition: int, messages: Sequence[Message], start: int
    ) -> tuple[int, int]:
        batch = connection.producer.create_batch()
        count = 0
        for message in messages[start:] if start else messages:
            headers = list(message.headers)
            if batch.append(key=message.key, value=message.value, timestamp=None, headers=headers) is None:
                break
            count += 1
        async with asyncio.timeout(self._server.timeout_ms / 1000):  # an idempotent producer itself never gives up
            sent = await connection.producer.send_batch(batch, topic, partition=partition)
            await asyncio.wait({sent, connection.broken}, return_when=asyncio.FIRST_COMPLETED)
        if not sent.done():
            raise KafkaConnectionError("another record of this connection failed")
        return sent.result().offset, count

    async def _ready(self) -> _Connection:
        async with self._starting:
            if self._connection is not None:
                return self._connection
            producer = AIOKafkaProducer(
                **self._server.options(),
                enable_idempotence=True,
                acks="all",
                max_batch_size=self._batch_bytes,
                max_request_size=self._batch_bytes + (1 << 20),
                request_timeout_ms=self._server.timeout_ms,
            )
            try:
                await producer.start()
            except BaseException:
                await producer.stop()
                raise
            self._connection = _Connection(producer)
            return self._connection

    async def _throw_away(self, connection: _Connection) -> None:
        if self._connection is connection:
            self._connection = None
        if not connection.broken.done():
            connection.broken.set_result(None)
        sending = connection.producer._sender.sender_task
        if sending is not None:
            sending.cancel()  # else stopping waits for a delivery that may come hours later
        await connection.producer.stop()
