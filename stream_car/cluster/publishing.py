"""Publishing through a query worker: documents go to Kafka, and receipts report what the intake workers decided.

Promise: a publication is answered when Kafka has it on all in-sync replicas, its intake shard has applied it and the
index has it. The outcomes are those that the worker stored with its state. Every later answer of this process has seen
it, or says that it has not (`in_flight`). What is not applied and indexed within `APPLIED_S` is `Unavailable`: publish
it again, because repeats change nothing. Of a large publication, the next `PART_MAX` documents follow once the earlier
ones are applied, so that their outcomes are never overwritten unread.
Cost: one batch per partition, and one read of the outcomes, per part.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from stream_car.cluster.connections import Connections
from stream_car.cluster.indexer import Indexer
from stream_car.errors import Unavailable
from stream_car.ports import Message, Record, ShardId, SnapshotReader
from stream_car.processing.effects import DecodedRecord
from stream_car.processing.fold import Fold
from stream_car.processing.outcomes import OutcomePage, outcome_in, outcome_keys
from stream_car.processing.receipts import Receipt, receipt_of
from stream_car.processing.state import decode_value
from stream_car.queries.shards import ManyShards

APPLIED_S = 10.0
PART_MAX = 4000  # documents; far fewer than outcomes are stored


class _Prepared(NamedTuple):
    """A message to publish, its partition and its content."""

    partition: int
    message: Message
    decoded: DecodedRecord


class Publisher:
    """Publishes for the callers of one query worker."""

    def __init__(
        self, connections: Connections, snapshots: SnapshotReader, indexer: Indexer, shards: ManyShards
    ) -> None:
        self._partitions = connections.partitions
        self._fold = Fold(connections.plan.ruleset)
        self._topic = connections.topic("intake")
        self._sender = connections.sender
        self._snapshots = snapshots
        self._indexer = indexer
        self._shards = shards

    async def publish(self, messages: Sequence[Message]) -> list[Receipt]:
        """Store messages durably, wait until they are applied, and return their receipts in order."""
        receipts: list[Receipt] = []
        for start in range(0, len(messages), PART_MAX):
            receipts += await self._publish_part(messages[start : start + PART_MAX])
        return receipts

    async def _publish_part(self, messages: Sequence[Message]) -> list[Receipt]:
        prepared = [self._prepare(message) for message in messages]
        batches: dict[int, list[int]] = {}
        for number, item in enumerate(prepared):
            batches.setdefault(item.partition, []).append(number)
        sent = await asyncio.gather(
            *(
                self._sender.send(self._topic, partition, [prepared[number].message for number in numbers])
                for partition, numbers in batches.items()
            )
        )
        offsets = {
            number: offset
            for numbers, batch in zip(batches.values(), sent, strict=True)
            for number, offset in zip(numbers, batch, strict=True)
        }
        ends = {partition: offsets[numbers[-1]] for partition, numbers in batches.items()}
        if not await self._indexer.wait_for(ends, time.monotonic() + APPLIED_S):
            raise Unavailable(
                f"Kafka has the documents, but they were not applied and indexed within {APPLIED_S:g} s. Check that "
                "`stream-car worker` is running, and publish them again. Repeats change nothing."
            )
        pages = await self._outcome_pages(
            {partition: [offsets[number] for number in numbers] for partition, numbers in batches.items()}
        )
        receipts = [self._receipt(offsets[number], item, pages[item.partition]) for number, item in enumerate(prepared)]
        self._shards.require({partition: offset + 1 for partition, offset in ends.items()})
        return receipts

    def _receipt(self, offset: int, item: _Prepared, pages: Mapping[bytes, OutcomePage]) -> Receipt:
        outcome, rejection = outcome_in(pages, offset)
        return receipt_of(offset, item.decoded, outcome, rejection, self._fold.ruleset)

    def _prepare(self, message: Message) -> _Prepared:
        """Decode a message. Without a readable id it goes to the first partition."""
        decoded = self._fold.read(
            Record(offset=0, append_time=0, value=message.value, key=message.key, headers=message.headers)
        )
        if decoded.name is None:
            return _Prepared(0, message, decoded)
        return _Prepared(self._partitions.of_id(decoded.name), replace(message, key=decoded.name.encode()), decoded)

    async def _outcome_pages(self, offsets: Mapping[int, Sequence[int]]) -> dict[int, dict[bytes, OutcomePage]]:
        """Return the pages with the outcomes of these records, by partition."""
        keys = {ShardId("intake", partition): outcome_keys(numbers) for partition, numbers in offsets.items()}
        snapshot = await self._snapshots.peek(keys)
        pages: dict[int, dict[bytes, OutcomePage]] = {}
        for shard, (_, values) in snapshot.items():
            decoded = {key: decode_value(key, value) for key, value in values.items()}
            pages[shard.shard] = {key: page for key, page in decoded.items() if isinstance(page, OutcomePage)}
        return pages
