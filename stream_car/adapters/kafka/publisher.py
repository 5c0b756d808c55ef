"""Publishing documents: each to the partition of its id, acknowledged when `publish` returns.

Promise: messages of one id keep their order. After an error some may have been kept: publish all again,
repeats are counted as duplicates and change nothing. Cost: one batch for every partition.
"""

import asyncio
from collections.abc import Callable, Sequence

from stream_car.adapters.kafka.sender import Sender
from stream_car.ports import Message


class KafkaPublisher:
    """Writes to one topic; `place` says which partition a key belongs to."""

    def __init__(self, sender: Sender, topic: str, place: Callable[[bytes], int]) -> None:
        self._sender = sender
        self._topic = topic
        self._place = place

    async def publish(self, messages: Sequence[Message]) -> list[tuple[int, int]]:
        """Where each message lies now: partition and offset, in the order given. Messages need a key, or go to 0."""
        batches: dict[int, list[int]] = {}
        for at, message in enumerate(messages):
            partition = 0 if message.key is None else self._place(message.key)
            batches.setdefault(partition, []).append(at)
        lists = await asyncio.gather(
            *(self._sender.send(self._topic, p, [messages[at] for at in ats]) for p, ats in batches.items())
        )
        placed: dict[int, tuple[int, int]] = {}
        for (partition, ats), offsets in zip(batches.items(), lists, strict=True):
            placed |= {at: (partition, offset) for at, offset in zip(ats, offsets, strict=True)}
        return [placed[at] for at in range(len(messages))]
