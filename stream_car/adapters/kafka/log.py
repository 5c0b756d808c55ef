"""A topic as a log: implements `ports.Log`.

Promise: records come from exactly the offset asked for. What the client skips is asked for again; what the
broker itself does not have (the end markers of a publisher's transactions) is filled with ticks, so that
every reader counts alike. A position outside of the topic halts with a reason and is never reset. Nothing
for `stall_s` though there are records is `Unavailable`: clients of Kafka fall silent without an error.
Append times are the broker's; should its clock step back, so do they, and the fold goes by the greatest.
Cost: one fetch ahead; at the end of the log a wait of `wait_ms`, and a request now and then.
"""

import time
from collections.abc import Sequence

from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from stream_car.adapters.kafka.errors import translated
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.errors import Halted, Unavailable
from stream_car.ports import Message, Record
from stream_car.processing.fold import TICK

STALL_S = 30.0
AGAIN_MS = 200
WAITED_MS = 500  # who has waited so long has heard the broker's latest answer
VERIFY_S = 5.0  # between questions whether that is so: a client that fell silent has no answer
LOG_APPEND_TIME = 1


class KafkaLog:
    """One topic, read through a `Snapshot` that logs may share."""

    def __init__(
        self, reader: Reader, sender: Sender, topic: str, *, wait_ms: int = 0, stall_s: float = STALL_S
    ) -> None:
        self.topic = topic
        self._reader = reader
        self._sender = sender
        self._wait_ms = wait_ms
        self._stall_s = stall_s
        self._verified: dict[TopicPartition, float] = {}  # when the broker was last asked where the log ends

    async def append(self, partition: int, messages: Sequence[Message]) -> int:
        """Keep the messages durably; the offset of the first. An empty batch returns the end.

        All or none holds for what fits into one record batch, about 1 MB; beyond it, others' records may come
        between, and a failure can leave the first ones behind.
        """
        if not messages:
            return (await self.range(partition))[1]
        return (await self._sender.send(self.topic, partition, messages))[0]

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        """Up to `max_records` records from exactly `from_offset` on; none at the end."""
        if max_records <= 0:
            return ()
        place = TopicPartition(self.topic, partition)
        with translated(f"topic {self.topic}"):
            found, reached = await self._found(place, from_offset, max_records)
            if (found[0].offset if found else reached) != from_offset:  # is that the client, or the broker?
                self._reader.delete_up_to(place)
                found, reached = await self._found(place, from_offset, max_records)
        if found and found[0].timestamp_type != LOG_APPEND_TIME:
            raise Halted(
                "append_time",
                f"message.timestamp.type of topic {self.topic} is CreateTime; it must be LogAppendTime: "
                "`stream-car topics check`",
            )
        return _filled(found, from_offset, reached)[:max_records]

    async def range(self, partition: int) -> tuple[int, int]:
        """The first offset kept, and the offset that the next record will get."""
        with translated(f"topic {self.topic}"):
            return await self._reader.range(TopicPartition(self.topic, partition))

    async def _found(
        self, place: TopicPartition, from_offset: int, max_records: int
    ) -> tuple[list[ConsumerRecord], int]:
        """Records from the offset on, or from a later one, and how far they reach; none at the end."""
        wait_ms = self._wait_ms
        deadline = time.monotonic() + self._stall_s
        while True:
            try:
                records, reached = await self._reader.get(place, from_offset, max_records, wait_ms)
            except OffsetOutOfRangeError:
                records, reached = [], from_offset
            if reached > from_offset or await self._is_end(place, from_offset):
                return records, reached
            if time.monotonic() > deadline:
                self._reader.delete_up_to(place)
                raise Unavailable(f"topic {self.topic} has records at {from_offset}, but none came for a while")
            wait_ms = AGAIN_MS

    async def _is_end(self, place: TopicPartition, offset: int) -> bool:
        """Whether the log ends there. Raises `Halted` where the offset is not in the log."""
        is_fresh = time.monotonic() - self._verified.get(place, 0.0) < VERIFY_S
        if self._wait_ms >= WAITED_MS and is_fresh and self._reader.is_at_end(place, offset):
            return True
        first, end = await self._reader.range(place)
        self._verified[place] = time.monotonic()
        name = f"partition {place.partition} of topic {place.topic}"
        if offset > end:
            raise Halted("ahead", f"record {offset} was asked for, but {name} ends at {end}: it has lost its end")
        if offset < first:
            raise Halted("lost_history", f"record {offset} was asked for, but {name} begins at {first}")
        return offset == end


def record_of(one: ConsumerRecord) -> Record:
    """A record as the client gives it, as the log's."""
    return Record(
        offset=one.offset,
        append_time=one.timestamp * 1000,
        value=one.value,
        key=one.key,
        headers=tuple(one.headers),
    )


def _filled(found: Sequence[ConsumerRecord], start: int, end: int) -> list[Record]:
    """The records, with a tick in each place that the broker has no record for."""
    records: list[Record] = []
    for one in found:
        records += map(_hole, range(start + len(records), one.offset))
        records.append(record_of(one))
    records += map(_hole, range(start + len(records), end))
    return records


def _hole(offset: int) -> Record:
    return Record(offset=offset, append_time=0, value=None, headers=(TICK,))
