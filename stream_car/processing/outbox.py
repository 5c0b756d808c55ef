"""Where an intake shard's events go: placements by scope, forwarded documents by id, what is rejected.

Promise: when `publish` returns, every log has acknowledged; each partition gets its records in the
order of the events. A repeat is appended again: whoever reads drops it by its `oseq` or origin.
A mark is written only for what the shard has published, so it is true whoever writes it and however
late. Cost: one append for every partition that the events touch.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from stream_car.codec.placements import encode_mark
from stream_car.ports import Event, Log, Message, Together
from stream_car.processing.effects import Effects
from stream_car.processing.fold import REJECTED
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.two_hop import DOCUMENTS, PLACEMENTS, Arrival, carried


async def one_by_one(*requests: Callable[[], Awaitable[object]]) -> None:
    """Implements `ports.Together` for logs that do not wait."""
    for request in requests:
        await request()


class IntakeOutlet:
    """Implements `ports.Outlet` over logs; `together` lets the partitions be written at once."""

    def __init__(
        self,
        partitions: Partitions,
        *,
        placements: Log,
        documents: Log,
        rejected: Log,
        together: Together = one_by_one,
    ) -> None:
        self.partitions = partitions
        self.logs = {PLACEMENTS: placements, DOCUMENTS: documents, REJECTED: rejected}
        self.together = together

    async def publish(self, shard: int, events: Sequence[Event]) -> None:
        """Append each event to its partition and wait until all are acknowledged."""
        batches: dict[tuple[str, int], list[Message]] = {}
        for event in events:
            batches.setdefault((event.stream, self._partition(event)), []).append(carried(event))
        await self.together(
            *(partial(self.logs[stream].append, partition, batch) for (stream, partition), batch in batches.items())
        )

    def _partition(self, event: Event) -> int:
        if event.stream == PLACEMENTS:
            return self.partitions.of_scope(event.key)
        return self.partitions.of_id(event.key.decode()) if event.stream == DOCUMENTS else 0

    async def last(self, shard: int) -> int:
        """Nothing is known to need no repeat: an intake shard that lost its state publishes all again."""
        return 0

    async def mark(self, value: bytes) -> None:
        """Append a mark to every partition of placements."""
        log = self.logs[PLACEMENTS]
        message = [Message(value=value)]
        await self.together(
            *(partial(log.append, partition, message) for partition in range(self.partitions.frontiers))
        )


class Marks:
    """Tells the frontier shards how far one intake shard has come. Ask after batches, at most every 100 ms."""

    def __init__(self, shard: Shard[Arrival, Effects], outlet: IntakeOutlet) -> None:
        self.shard = shard
        self.outlet = outlet
        self.marked = 0

    async def mark(self) -> bool:
        """Write a mark if all events are published and the shard has moved since the last one."""
        settled = self.shard.settled
        if settled is None or settled == self.marked:
            return False
        await self.outlet.mark(
            encode_mark(generation=self.shard.generation, shard=self.shard.shard, next_offset=settled)
        )
        self.marked = settled
        return True
