"""Publish an intake shard's emissions: placements by scope, forwarded documents by id, rejected records.

Promise: when `publish` returns, every log has acknowledged, and each partition has its records in the order of the
emissions. Every record is signed. A repeat is appended again, and readers drop it by its `oseq` or its origin. A
watermark is written only for what the shard has published, so it is true no matter which worker writes it and how late.
Cost: one append per partition that the emissions touch.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from stream_car.codec.placements import encode_watermark
from stream_car.ports import Concurrency, Emission, Log, Message
from stream_car.processing.effects import Effects
from stream_car.processing.fold import REJECTED
from stream_car.processing.partitions import Partitions
from stream_car.processing.shard import Shard
from stream_car.processing.signatures import Signatures
from stream_car.processing.two_hop import DOCUMENTS, PLACEMENTS, IntakeRecord, emission_message


async def run_sequentially(*requests: Callable[[], Awaitable[object]]) -> None:
    """Implement `ports.Concurrency` for logs that do not wait: run one request after another."""
    for request in requests:
        await request()


class IntakeOutbox:
    """Implements `ports.EventSink` over logs. `concurrently` can write all partitions at the same time."""

    def __init__(
        self,
        partitions: Partitions,
        *,
        signatures: Signatures,
        placements: Log,
        documents: Log,
        rejected: Log,
        concurrently: Concurrency = run_sequentially,
    ) -> None:
        self.partitions = partitions
        self.signatures = signatures
        self.logs = {PLACEMENTS: placements, DOCUMENTS: documents, REJECTED: rejected}
        self.concurrently = concurrently

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Append each emission to its partition, and return when all are acknowledged."""
        batches: dict[tuple[str, int], list[Message]] = {}
        for event in events:
            batches.setdefault((event.stream, self._partition(event)), []).append(self._message(event))
        await self.concurrently(
            *(partial(self.logs[stream].append, partition, batch) for (stream, partition), batch in batches.items())
        )

    def _message(self, event: Emission) -> Message:
        """Return the signed message of an emission."""
        return self.signatures.sign(event.stream, emission_message(event))

    def _partition(self, event: Emission) -> int:
        if event.stream == PLACEMENTS:
            return self.partitions.of_scope(event.key)
        return self.partitions.of_id(event.key.decode()) if event.stream == DOCUMENTS else 0

    async def last(self, shard: int) -> int:
        """Return 0, because an intake shard that lost its state publishes everything again."""
        return 0

    async def emit_watermarks(self, values: Sequence[bytes]) -> bool:
        """Append watermark records to every partition of the placements log. Return whether there were any."""
        log = self.logs[PLACEMENTS]
        messages = [self.signatures.sign(PLACEMENTS, Message(value=value)) for value in values]
        if messages:
            await self.concurrently(
                *(partial(log.append, partition, messages) for partition in range(self.partitions.frontiers))
            )
        return bool(messages)


class WatermarkEmitter:
    """Writes the watermarks of one intake shard, which report its progress to the frontier shards."""

    def __init__(self, shard: Shard[IntakeRecord, Effects], outbox: IntakeOutbox) -> None:
        self.shard = shard
        self.outbox = outbox
        self.emitted = 0

    @property
    def due(self) -> int | None:
        """The offset of the next watermark: all emissions are published, and the shard has moved since the last one."""
        settled = self.shard.published_offset
        return None if settled == self.emitted else settled

    async def emit(self) -> bool:
        """Write a watermark if one is due. Return whether one was written."""
        return await emit_watermarks([self])


async def emit_watermarks(emitters: Sequence[WatermarkEmitter]) -> bool:
    """Write the watermarks that are due. Return whether any was written.

    The outbox of the first shard writes those of all: each shard of a process has its own, all over the same log. Call
    it after batches, at most every 100 ms. Cost: one append per partition of the placements log, no matter how many
    shards have moved.
    """
    due = [(emitter, settled) for emitter in emitters if (settled := emitter.due) is not None]
    if not due:
        return False
    records = [
        encode_watermark(generation=emitter.shard.generation, shard=emitter.shard.shard, next_offset=settled)
        for emitter, settled in due
    ]
    await due[0][0].outbox.emit_watermarks(records)
    for emitter, settled in due:
        emitter.emitted = settled
    return True
