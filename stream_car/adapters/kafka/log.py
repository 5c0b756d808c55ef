"""A topic as a log: implements `ports.Log`.

Promise: records come from exactly the requested offset. What the client skips is requested again. What the broker
itself does not have (the end markers of a publisher's transactions) is filled with ticks, so that every reader counts
alike. A position outside of the topic halts with a reason and is never reset. If there are records but none arrive for
`stall_s` seconds, that is `Unavailable`: Kafka clients can fall silent without an error. Append times are the broker's;
if its clock steps back so do they, and the fold uses the greatest so far.
Cost: one fetch ahead. At the end of the log, a wait of `wait_ms` milliseconds and an occasional request.
"""

import time
from collections.abc import Sequence

from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.errors import OffsetOutOfRangeError

from stream_car.adapters.kafka.errors import translate_errors
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.errors import Halted, Unavailable
from stream_car.ports import Message, Record
from stream_car.processing.fold import TICK, UNREADABLE

STALL_S = 30.0
RETRY_WAIT_MS = 200
FRESH_WAIT_MS = 500  # after a wait this long the client has the broker's latest response
VERIFY_S = 5.0  # between requests for the end of the log: a client that fell silent has no recent response
LOG_APPEND_TIME = 1


class KafkaLog:
    """One topic, read through a `Reader` that several logs may share."""

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
        """Append as `ports.Log` promises, except that only one record batch, about 1 MB, is kept whole or not at all.

        Records of others may come between larger batches, and a failure can leave the first of them in the topic.
        """
        if not messages:
            return (await self.range(partition))[1]
        return (await self._sender.send(self.topic, partition, messages))[0]

    async def fetch(self, partition: int, from_offset: int, max_records: int) -> Sequence[Record]:
        if max_records <= 0:
            return ()
        source = TopicPartition(self.topic, partition)
        with translate_errors(f"topic {self.topic}"):
            try:
                records, reached = await self._read(source, from_offset, max_records)
            except UnicodeDecodeError:  # the client gives none of the records that it has read
                return [await self._read_alone(source, from_offset)]
            if (records[0].offset if records else reached) != from_offset:
                self._reader.forget_position(source)  # read again: was it the client that skipped, or the broker?
                records, reached = await self._read(source, from_offset, max_records)
        if records and records[0].timestamp_type != LOG_APPEND_TIME:
            raise Halted(
                "append_time",
                f"Set message.timestamp.type of topic {self.topic} to LogAppendTime (it is CreateTime). "
                "Check the other settings with `stream-car topics check`.",
            )
        return _fill_holes(records, from_offset, reached)[:max_records]

    async def range(self, partition: int) -> tuple[int, int]:
        with translate_errors(f"topic {self.topic}"):
            return await self._reader.range(TopicPartition(self.topic, partition))

    async def _read_alone(self, source: TopicPartition, offset: int) -> Record:
        """Return one record; if a header's name is not UTF-8, which the client cannot read, one that says so.

        The records after it in its batch, which came from the same publisher, cannot be read either.
        """
        self._reader.forget_position(source)
        try:
            records, _ = await self._read(source, offset, 1)
        except UnicodeDecodeError:
            self._reader.forget_position(source)
            return Record(offset=offset, append_time=0, value=None, headers=(UNREADABLE,))
        return to_record(records[0])

    async def _read(
        self, source: TopicPartition, from_offset: int, max_records: int
    ) -> tuple[list[ConsumerRecord], int]:
        """Return records from the offset on, or from a later one, and the offset that they reach; none at the end."""
        wait_ms = self._wait_ms
        deadline = time.monotonic() + self._stall_s
        while True:
            try:
                records, reached = await self._reader.get(source, from_offset, max_records, wait_ms)
            except OffsetOutOfRangeError:
                records, reached = [], from_offset
            if reached > from_offset or await self._is_end(source, from_offset):
                return records, reached
            if time.monotonic() > deadline:
                self._reader.forget_position(source)
                waited = f"none arrived within {self._stall_s:g} s. Try again later."
                raise Unavailable(f"Topic {self.topic} has records at offset {from_offset}, but {waited}")
            wait_ms = RETRY_WAIT_MS

    async def _is_end(self, source: TopicPartition, offset: int) -> bool:
        """Return whether the log ends at the offset. Raises `Halted` if the offset is not in the log."""
        is_fresh = time.monotonic() - self._verified.get(source, 0.0) < VERIFY_S
        if self._wait_ms >= FRESH_WAIT_MS and is_fresh and self._reader.is_at_end(source, offset):
            return True
        first, end = await self._reader.range(source)
        self._verified[source] = time.monotonic()
        name = f"partition {source.partition} of topic {source.topic}"
        if offset > end:
            lost = f"ends at {end}: it has lost its end. deploy/runbook.md has the steps to take."
            raise Halted("ahead", f"Record {offset} was requested, but {name} {lost}")
        if offset < first:
            lost = f"begins at {first}: retention deleted what came before. deploy/runbook.md has the steps to take."
            raise Halted("lost_history", f"Record {offset} was requested, but {name} {lost}")
        return offset == end


def to_record(record: ConsumerRecord) -> Record:
    """Return a record of the client as a record of a log."""
    return Record(
        offset=record.offset,
        append_time=record.timestamp * 1000,
        value=record.value,
        key=record.key,
        headers=tuple([(name, value or b"") for name, value in record.headers]) if record.headers else (),
    )


def _fill_holes(records: Sequence[ConsumerRecord], start: int, end: int) -> list[Record]:
    """Return the records, with a tick at every offset for which the broker has no record."""
    if len(records) == end - start:  # nearly always
        return list(map(to_record, records))
    filled: list[Record] = []
    for record in records:
        filled += map(_tick, range(start + len(filled), record.offset))
        filled.append(to_record(record))
    filled += map(_tick, range(start + len(filled), end))
    return filled


def _tick(offset: int) -> Record:
    return Record(offset=offset, append_time=0, value=None, headers=(TICK,))
