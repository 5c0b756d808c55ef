"""A shard's events in topics, one for each stream, the shard's partition of each: implements `ports.ChangeLog`.

Promise: a repeat is appended again and told apart by its number when it is read, so readers see every event
once and in order. Each record is a CloudEvent in binary mode whose id is `generation/shard/oseq`; records of
other generations are passed over. A retention that is set on the topic shows in `forgotten`. Cost: reading on
from where a reader stopped is one fetch; from elsewhere a binary search over the topic; a key is found by
reading all.
"""

from collections.abc import AsyncIterator, Mapping, Sequence

from stream_car.ports import Emission, Log, Message, Record

BATCH = 500
STALE_MAX = 5000  # events that a stalled worker can publish late: what an outbox may hold
TYPES = {"changes": b"streamcar.frontier.changed", "rejected": b"streamcar.document.rejected"}
PLACES_MAX = 1000


class KafkaJournal:
    """Events of one generation; `logs` names the topic of each stream."""

    def __init__(self, logs: Mapping[str, Log], generation: str) -> None:
        self._logs = logs
        self._generation = generation
        self._places: dict[tuple[int, str, int], int] = {}  # where reading goes on after an event

    async def publish(self, shard: int, events: Sequence[Emission]) -> None:
        """Keep the events, in order within each stream; repeats are told apart when they are read."""
        for stream in dict.fromkeys(event.stream for event in events):
            messages = [self._message(shard, event) for event in events if event.stream == stream]
            await self._logs[stream].append(shard, messages)

    async def read(
        self, shard: int, stream: str, *, after: int = 0, limit: int = 1000, key: bytes | None = None
    ) -> Sequence[Emission]:
        """Events of a stream with `oseq > after`, oldest first; with a key only that key's."""
        found: list[Emission] = []
        last = after
        async for record in self._from(shard, stream, await self._place(shard, stream, after)):
            event = self.event(shard, stream, record)
            if event is None or event.oseq <= last:
                continue
            last = event.oseq
            if key is None or event.key == key:
                found.append(event)
                if len(found) >= limit:
                    self._remember(shard, stream, last, record.offset + 1)
                    break
        return found

    def event(self, shard: int, stream: str, record: Record) -> Emission | None:
        """The event that a record of a stream's topic tells; `None` for those of other generations."""
        oseq = self._oseq(shard, record)
        return Emission(oseq=oseq, stream=stream, key=record.key or b"", value=record.value or b"") if oseq else None

    async def last(self, shard: int) -> int:
        """The highest `oseq` kept, 0 if none; where late repeats came last, at least what came before them.

        Where the newest events are numbered one after the other nobody repeated anything, and they are all that is
        read; else as many as a stalled worker can have repeated.
        """
        return max([await self._highest(shard, stream) for stream in self._logs], default=0)

    async def _highest(self, shard: int, stream: str) -> int:
        first, end = await self._logs[stream].range(shard)
        numbers: list[int] = []
        for window in (BATCH, STALE_MAX):
            found = [self._oseq(shard, one) async for one in self._from(shard, stream, max(first, end - window))]
            numbers = [oseq for oseq in found if oseq]
            if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))):
                break
        return max(numbers, default=0)

    async def deleted_up_to(self, shard: int) -> int:
        """Events up to this number may be gone: retention has taken them from the beginning of a topic.

        Repeats of what is gone may have stayed; what counts is from where on no number is missing. Where no event
        is left, it is a number that none of those that are gone exceeds.
        """
        gone = 0
        for stream, log in self._logs.items():
            first, _ = await log.range(shard)
            if not first:
                continue
            last = read = 0
            async for record in self._from(shard, stream, first):
                oseq = self._oseq(shard, record)
                if oseq > last:
                    gone = max(gone, oseq - 1) if oseq != last + 1 else gone
                    last = oseq
                read += 1
                if read > STALE_MAX:
                    break
            else:
                gone = gone if last else max(gone, first)
        return gone

    async def _from(self, shard: int, stream: str, offset: int) -> AsyncIterator[Record]:
        while records := await self._logs[stream].fetch(shard, offset, BATCH):
            for record in records:
                yield record
            offset = records[-1].offset + 1

    async def _place(self, shard: int, stream: str, after: int) -> int:
        """An offset before which there is no first telling of an event beyond `min_revisions`.

        Repeats begin with an older event and go on to the newest, except those of a stalled worker, of which
        there are at most as many as an outbox holds: so many records before the place that was found are read too.
        """
        log = self._logs[stream]
        known = self._places.get((shard, stream, after))
        if known is not None:
            return known
        first, end = await log.range(shard)
        low, high = first, end
        while after and high - low > BATCH:
            middle = (low + high) // 2
            if await self._is_told_by(shard, stream, middle, after):
                low = middle
            else:
                high = middle
        return max(first, low - STALE_MAX) if after else first

    async def _is_told_by(self, shard: int, stream: str, offset: int, after: int) -> bool:
        """Whether the first event of this generation at or behind the offset is not beyond `min_revisions`."""
        async for record in self._from(shard, stream, offset):
            oseq = self._oseq(shard, record)
            if oseq:
                return oseq <= after
        return False

    def _remember(self, shard: int, stream: str, oseq: int, offset: int) -> None:
        if len(self._places) >= PLACES_MAX:
            del self._places[next(iter(self._places))]
        self._places[shard, stream, oseq] = offset

    def _message(self, shard: int, event: Emission) -> Message:
        headers = (
            ("ce_specversion", b"1.0"),
            ("ce_id", f"{self._generation}/{shard}/{event.oseq}".encode()),
            ("ce_source", b"stream-car"),
            ("ce_subject", event.key),
            ("ce_type", TYPES.get(event.stream, event.stream.encode())),
            ("content-type", b"application/json"),
        )
        return Message(value=event.value, key=event.key, headers=headers)

    def _oseq(self, shard: int, record: Record) -> int:
        """The number of an event of this generation and shard; 0 for any other record."""
        name = next((value for header, value in record.headers if header == "ce_id"), b"")
        start = f"{self._generation}/{shard}/".encode()
        number = name[len(start) :]
        return int(number) if name.startswith(start) and number.isdigit() else 0
