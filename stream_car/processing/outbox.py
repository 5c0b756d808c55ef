"""Where an intake shard's events go: placements by scope, forwarded documents by id, what is rejected.

Promise: when `publish` returns, every log has acknowledged; each partition gets its records in the
order of the events. A repeat is appended again: whoever reads drops it by its `oseq` or origin.
A mark is written only for what the shard has published, so it is true whoever writes it and however
late. Cost: one append for every partition that the events touch.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from stream_car.codec.placements import encode_watermark
from stream_car.ports import Concurrency, Emission, Log, Message
from stream_car.processing.effects import Effects
from stream_car.processing.fold import REJECTED
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import DOCUMENTS, PLACEMENTS, IntakeRecord, message_of_emission


async def sequentially(*requests: Callable[[], Awaitable[object]]) -> None:
    """Implements `ports.Concurrency` for logs that do not wait."""
    for request in requests:
        await request()


class IntakeOutbox:
    """Implements `ports.EventSink` over logs; `concurrently` lets the partitions be written at once."""

    def __init__(
        self,
        partitions: Partitions,
        *,
        placements: Log,
        documents: Log,
        rejected: Log,
        concurrently: Concurrency = sequentially,
    ) -> None:
        self.partitions = partitions
        self.logs = {PLACEMENTS: placements, DOCUMENTS: documents, REJECTED: rejected}
        self.concurrently = concurrently

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Append each event to its partition and wait until all are acknowledged."""
        batches: dict[tuple[str, int], list[Message]] = {}
        for event in events:
            batches.setdefault((event.stream, self._partition(event)), []).append(message_of_emission(event))
        await self.concurrently(
            *(partial(self.logs[stream].append, partition, batch) for (stream, partition), batch in batches.items())
        )

    def _partition(self, event: Emission) -> int:
        if event.stream == PLACEMENTS:
            return self.partitions.of_scope(event.key)
        return self.partitions.of_id(event.key.decode()) if event.stream == DOCUMENTS else 0

    async def last(self, shard: int) -> int:
        """Nothing is known to need no repeat: an intake shard that lost its state publishes all again."""
        return 0

    async def emit_watermark(self, value: bytes) -> None:
        """Append a mark to every partition of placements."""
        log = self.logs[PLACEMENTS]
        message = [Message(value=value)]
        await self.concurrently(
            *(partial(log.append, partition, message) for partition in range(self.partitions.frontiers))
        )


class WatermarkEmitter:
    """Tells the frontier shards how far one intake shard has come. Ask after batches, at most every 100 ms."""

    def __init__(self, shard: Shard[IntakeRecord, Effects], outbox: IntakeOutbox) -> None:
        self.shard = shard
        self.outbox = outbox
        self.emitted = 0

    async def emit(self) -> bool:
        """Write a mark if all events are published and the shard has moved since the last one."""
        settled = self.shard.settled
        if settled is None or settled == self.emitted:
            return False
        await self.outbox.emit_watermark(
            encode_watermark(generation=self.shard.generation, shard=self.shard.shard, next_offset=settled)
        )
        self.emitted = settled
        return True
