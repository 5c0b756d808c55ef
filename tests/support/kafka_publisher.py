"""Publishes messages to Kafka, each to the partition of its key; acknowledged when `publish` returns.

Promise: messages with the same key keep their order. After an error some messages may have been stored: publish all of
them again; repeats are counted as duplicates and change nothing. Cost: one record batch per partition.
"""

import asyncio
from collections.abc import Callable, Sequence

from stream_car.adapters.kafka.sender import Sender
from stream_car.ports import Message


class KafkaPublisher:
    """Writes to one topic. `place` returns the partition of a key."""

    def __init__(self, sender: Sender, topic: str, place: Callable[[bytes], int]) -> None:
        self._sender = sender
        self._topic = topic
        self._place = place

    async def publish(self, messages: Sequence[Message]) -> list[tuple[int, int]]:
        """Return the partition and offset of each message, in the order given. Messages without a key go to 0."""
        batches: dict[int, list[int]] = {}
        for number, message in enumerate(messages):
            partition = 0 if message.key is None else self._place(message.key)
            batches.setdefault(partition, []).append(number)
        offset_lists = await asyncio.gather(
            *(self._sender.send(self._topic, p, [messages[n] for n in numbers]) for p, numbers in batches.items())
        )
        placed: dict[int, tuple[int, int]] = {}
        for (partition, numbers), offsets in zip(batches.items(), offset_lists, strict=True):
            placed |= {number: (partition, offset) for number, offset in zip(numbers, offsets, strict=True)}
        return [placed[number] for number in range(len(messages))]
