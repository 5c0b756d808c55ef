"""A shard's events in topics, one topic per stream, in the partition of the shard: implements `ports.ChangeLog`.

Promise: a repeated event is appended again, and recognised when it is read, so readers see every event once and in
order. Each record is a CloudEvent in binary mode with the id `generation/shard/oseq`, and is signed; records of other
generations and of other programs are skipped. What the retention of a topic has deleted shows in `deleted_up_to`.
Cost: to continue where a read stopped takes one fetch; to start elsewhere takes a binary search over the topic. To find
the events of one key, all events are read.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

from stream_car.ports import Emission, Log, Message, Record
from stream_car.processing.signatures import Signatures

NEWEST = 50  # records that are read first to learn the last number: a take-over waits for it
BATCH = 500
STALE_MAX = 5000  # events that a stalled worker can publish late: as many as an outbox may hold
TYPES = {"changes": b"streamcar.frontier.changed", "rejected": b"streamcar.document.rejected"}
RESUME_OFFSETS_MAX = 1000
NUMBER_DIGITS = 18


class KafkaJournal:
    """The events of one generation. `logs` has the topic of each stream."""

    def __init__(self, logs: Mapping[str, Log], generation: str, signatures: Signatures) -> None:
        self._logs = logs
        self._signatures = signatures
        self._generation = generation
        self._resume_offsets: dict[tuple[int, str, int], int] = {}  # where to continue after an event

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        for stream in dict.fromkeys(event.stream for event in events):
            messages = [self._message(shard, event) for event in events if event.stream == stream]
            await self._logs[stream].append(shard, messages)

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        events: list[Emission] = []
        last = after
        async for record in self._records(shard, stream, await self._start_offset(shard, stream, after)):
            event = self.event(shard, stream, record)
            if event is None or event.oseq <= last:
                continue
            last = event.oseq
            if key is None or event.key == key:
                events.append(event)
                if len(events) >= limit:
                    self._remember_offset(shard, stream, last, record.offset + 1)
                    break
        return events

    def event(self, shard: int, stream: str, record: Record) -> Emission | None:
        """Return the event in a record of a stream's topic; `None` if it is of another generation or shard."""
        oseq = self._oseq(shard, stream, record)
        return Emission(oseq=oseq, stream=stream, key=record.key or b"", value=record.value or b"") if oseq else None

    async def last(self, shard: int) -> int:
        """Return the highest `oseq`, 0 if there is none. If a stalled worker's repeats came last, it may be too low.

        If the newest events are numbered consecutively, no repeat is among them, and nothing else is read. Otherwise
        as many records are read as a stalled worker can have repeated.
        """
        return max([await self._last_of(shard, stream) for stream in self._logs], default=0)

    async def _last_of(self, shard: int, stream: str) -> int:
        first, end = await self._logs[stream].range(shard)
        numbers: list[int] = []
        for window in (NEWEST, BATCH, STALE_MAX):
            start = max(first, end - window)
            numbers = [
                oseq
                async for record in self._records(shard, stream, start)
                if (oseq := self._oseq(shard, stream, record))
            ]
            if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
                break
        return max(numbers, default=0)

    async def deleted_up_to(self, shard: int) -> int:
        """Return the number up to which events may be missing because retention deleted them; 0 if none are.

        Repeats of deleted events may still be there. What counts is the number from which on none is missing. If no
        event is left, the result is a number that no deleted event exceeds.
        """
        deleted = 0
        for stream, log in self._logs.items():
            first, _ = await log.range(shard)
            if not first:
                continue
            last = count = 0
            async for record in self._records(shard, stream, first):
                oseq = self._oseq(shard, stream, record)
                if oseq > last:
                    deleted = max(deleted, oseq - 1) if oseq != last + 1 else deleted
                    last = oseq
                count += 1
                if count > STALE_MAX:
                    break
            else:
                deleted = deleted if last else max(deleted, first)
        return deleted

    async def _records(self, shard: int, stream: str, offset: int) -> AsyncIterator[Record]:
        while records := await self._logs[stream].fetch(shard, offset, BATCH):
            for record in records:
                yield record
            offset = records[-1].offset + 1

    async def _start_offset(self, shard: int, stream: str, after: int) -> int:
        """Return an offset before which no event with `oseq > after` appears for the first time.

        Numbers rise along the topic except for repeats, which begin with an older event and go on to the newest. Only
        the repeats of a stalled worker stop earlier. There are at most `STALE_MAX` of them, as many as an outbox holds,
        so the result is that many records before the offset that the binary search returns.
        """
        log = self._logs[stream]
        remembered = self._resume_offsets.get((shard, stream, after))
        if remembered is not None:
            return remembered
        first, end = await log.range(shard)
        low, high = first, end
        while after and high - low > BATCH:
            middle = (low + high) // 2
            if await self._is_read(shard, stream, middle, after):
                low = middle
            else:
                high = middle
        return max(first, low - STALE_MAX) if after else first

    async def _is_read(self, shard: int, stream: str, offset: int, after: int) -> bool:
        """Return whether the first event of this generation from the offset on has `oseq <= after`."""
        async for record in self._records(shard, stream, offset):
            oseq = self._oseq(shard, stream, record)
            if oseq:
                return oseq <= after
        return False

    def _remember_offset(self, shard: int, stream: str, oseq: int, offset: int) -> None:
        if len(self._resume_offsets) >= RESUME_OFFSETS_MAX:
            del self._resume_offsets[next(iter(self._resume_offsets))]
        self._resume_offsets[shard, stream, oseq] = offset

    def _message(self, shard: int, event: Emission) -> Message:
        headers = (
            ("ce_specversion", b"1.0"),
            ("ce_id", f"{self._generation}/{shard}/{event.oseq}".encode()),
            ("ce_source", b"stream-car"),
            ("ce_subject", event.key),
            ("ce_type", TYPES.get(event.stream, event.stream.encode())),
            ("content-type", b"application/json"),
        )
        return self._signatures.sign(event.stream, Message(value=event.value, key=event.key, headers=headers))

    def _oseq(self, shard: int, stream: str, record: Record) -> int:
        """Return the number of an event of this generation and shard; 0 for any other record."""
        event_id = next((value for header, value in record.headers if header == "ce_id"), b"")
        prefix = f"{self._generation}/{shard}/".encode()
        number = event_id[len(prefix) :]
        if not (event_id.startswith(prefix) and number.isdigit() and len(number) <= NUMBER_DIGITS):
            return 0
        return int(number) if self._signatures.is_genuine(stream, shard, record) else 0
