"""Writes to Kafka; acknowledged by all in-sync replicas when `send` returns.

Promise: idempotent and in order within a partition. After any error the producer is discarded and the next call makes
another, because a producer that lost its sequence never recovers. What was being sent when the error came may have been
stored; readers recognise repeats. Calls for one partition wait for each other as long as the server makes progress.
Cost: one record batch per call if the messages fit into one, else several, one after the other.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from stream_car.adapters.kafka.errors import translate_errors
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.ports import Message

BATCH_BYTES = 1_000_000  # below max.message.bytes, which is 1 MiB unless a topic sets another limit
BROKEN = "another record of this connection failed"


class _Connection:
    """A producer, and a future that is done when the producer is of no more use."""

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
        # aiokafka counts the time of calls that wait for the same partition several times over, and gives up too early.
        self._turns: defaultdict[tuple[str, int], asyncio.Lock] = defaultdict(asyncio.Lock)

    async def send(self, topic: str, partition: int, messages: Sequence[Message]) -> list[int]:
        """Return the offsets of the messages once all are acknowledged.

        Messages that fit into one batch are stored together or not at all.
        """
        offsets: list[int] = []
        with translate_errors(f"topic {topic}"):
            connection = await self._connect()
            try:
                while len(offsets) < len(messages):
                    first, count = await self._send_batch(connection, topic, partition, messages, len(offsets))
                    offsets += range(first, first + count)
            except asyncio.CancelledError:
                raise  # what was sent is on its way, and other calls use the connection
            except BaseException:
                await self._discard(connection)
                raise
        return offsets

    async def close(self) -> None:
        """Close the connection. Further calls do nothing."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.producer.stop()

    async def _send_batch(
        self, connection: _Connection, topic: str, partition: int, messages: Sequence[Message], start: int
    ) -> tuple[int, int]:
        """Send as many messages from `start` on as fit into a batch. Returns the first offset and their number."""
        batch = connection.producer.create_batch()
        count = 0
        for message in messages[start:] if start else messages:
            headers = list(message.headers)
            if batch.append(key=message.key, value=message.value, timestamp=None, headers=headers) is None:
                break
            count += 1
        async with self._turns[topic, partition]:
            if connection.broken.done():
                raise KafkaConnectionError(BROKEN)
            deadline = asyncio.get_running_loop().time() + self._server.timeout_ms / 1000
            async with asyncio.timeout_at(deadline):
                sent = await connection.producer.send_batch(batch, topic, partition=partition)
        async with asyncio.timeout_at(deadline):  # an idempotent producer itself never gives up
            await asyncio.wait({sent, connection.broken}, return_when=asyncio.FIRST_COMPLETED)
        if not sent.done():
            raise KafkaConnectionError(BROKEN)
        return sent.result().offset, count

    async def _connect(self) -> _Connection:
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

    async def _discard(self, connection: _Connection) -> None:
        if self._connection is connection:
            self._connection = None
        if not connection.broken.done():
            connection.broken.set_result(None)
        sending = connection.producer._sender.sender_task
        if sending is not None:
            sending.cancel()  # otherwise stopping waits for a delivery that may come hours later
        await connection.producer.stop()
