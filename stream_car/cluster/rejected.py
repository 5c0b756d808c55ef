"""Refused input in Kafka: what lies in the topic `rejected`, and sending it again.

Promise: each input is listed once. What is replayed is the record of `documents` itself, with its key, bytes and
headers, however long it is; it names the old one in a header. What would only be refused again is not sent. Asking
twice sends twice: the second is a duplicate and changes nothing. Cost: `rejected` is read from its beginning, a
month of it.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager

from msgspec import Struct

from stream_car.adapters.kafka.log import KafkaLog
from stream_car.adapters.kafka.reader import Reader
from stream_car.adapters.kafka.sender import Sender
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.core.rules import Ruleset
from stream_car.errors import InvalidDocument, InvalidRequest
from stream_car.ports import Log, Message, Record
from stream_car.processing.partitions import Partitions
from stream_car.processing.replay import REPLAY_OF
from stream_car.processing.two_hop import IntakeFold
from stream_car.queries.answers import Rejected, Replayed

OURS = "stream-car-"  # how the names of our headers begin
FETCH = 500
SAID = frozenset({"code", "reason", "id", "partition", "offset"})


class Refusal(Struct, frozen=True):
    """A record of `rejected`, and where the input lies in `documents`."""

    record: Record
    told: Mapping[str, str]

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset."""
        return int(self.told["partition"]), int(self.told["offset"])

    def shown(self) -> Rejected:
        """As it is listed."""
        return Rejected(
            offset=self.record.offset,
            code=self.told["code"],
            reason=self.told["reason"],
            append_time=self.record.append_time,
            id=self.told["id"] or None,
            value=self.record.value or b"",
            oseq=self.record.offset + 1,
        )


class Refusals:
    """Reads the topic, and remembers where each input was refused first."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._firsts: dict[tuple[int, int], int] = {}  # by place, among the records before `_next`
        self._next = 0

    async def listed(self, *, after: int = 0, limit: int = sys.maxsize) -> list[Refusal]:
        """The first refusal of each input, oldest first, from this offset on."""
        first, end = await self._log.range(0)
        offset = max(first, min(after, self._next))
        found: list[Refusal] = []
        while offset < end and len(found) < limit:
            most = FETCH if offset < after else min(FETCH, limit - len(found))
            records = await self._log.fetch(0, offset, most)
            found += [one for record in records if (one := self._new(record)) is not None and record.offset >= after]
            offset = records[-1].offset + 1 if records else end
            self._next = max(self._next, offset)
        return found[:limit]

    def _new(self, record: Record) -> Refusal | None:
        """A refusal that is the first of its input; `None` for any other record."""
        ours = ((name.removeprefix(OURS), value) for name, value in record.headers if name.startswith(OURS))
        told = {name: value.decode() for name, value in ours if name in SAID}
        if told.keys() != SAID:
            return None
        one = Refusal(record, told)
        return one if self._firsts.setdefault(one.place, record.offset) == record.offset else None


class Refused:
    """Implements what the commands ask of an engine."""

    def __init__(self, server: KafkaServer, prefix: str, ruleset: Ruleset) -> None:
        self._server = server
        self._layout = Layout(prefix=prefix)
        self._ruleset = ruleset

    def rejected(self, *, limit: int) -> tuple[Rejected, ...]:
        """Input that was refused, with its bytes up to 64 KiB, oldest first."""

        async def asked() -> tuple[Rejected, ...]:
            async with self._opened() as topics:
                return tuple(one.shown() for one in await topics.refusals(limit))

        return asyncio.run(asked())

    def replay(
        self, mended: Mapping[int, bytes] | None = None, *, only: Collection[int] = (), trial: bool = False
    ) -> tuple[Replayed, ...]:
        """Send refused input again, as it came or with mended bytes by offset; all of it where none is named."""

        async def asked() -> tuple[Replayed, ...]:
            async with self._opened() as topics:
                return await topics.replay(mended or {}, only, self._ruleset, is_trial=trial)

        return asyncio.run(asked())

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator["_Topics"]:
        reader, sender = await Reader.open(self._server), Sender(self._server)
        try:
            intakes = await reader.partitions(self._layout.named("documents"))
            yield _Topics(reader, sender, self._layout, intakes)
        finally:
            await sender.close()
            await reader.close()


class _Topics:
    def __init__(self, reader: Reader, sender: Sender, layout: Layout, intakes: int) -> None:
        self._refusals = Refusals(KafkaLog(reader, sender, layout.named("rejected")))
        self._documents = KafkaLog(reader, sender, layout.named("documents"))
        self._intakes = intakes

    async def refusals(self, limit: int = sys.maxsize) -> list[Refusal]:
        """The first refusal of each input."""
        return await self._refusals.listed(limit=limit)

    async def replay(
        self, mended: Mapping[int, bytes], only: Collection[int], ruleset: Ruleset, *, is_trial: bool
    ) -> tuple[Replayed, ...]:
        refusals = {one.record.offset: one for one in await self.refusals()}
        named = {*only, *mended}
        if unknown := named - refusals.keys():
            raise InvalidRequest("offset", f"input {min(unknown)} was not rejected; `rejected` lists what was")
        chosen = sorted(named or refusals)
        return tuple([await self._again(refusals[at], mended.get(at), ruleset, is_trial=is_trial) for at in chosen])

    async def _again(self, refusal: Refusal, mended: bytes | None, ruleset: Ruleset, *, is_trial: bool) -> Replayed:
        at = refusal.record.offset
        partition, offset = refusal.place
        [came] = await self._documents.fetch(partition, offset, 1)
        message = _message(came, f"{partition}/{offset}", mended)
        fold = IntakeFold(ruleset, Partitions(intakes=self._intakes, frontiers=1), shard=partition)
        read = fold.read(
            Record(
                offset=offset,
                append_time=came.append_time,
                value=message.value,
                key=message.key,
                headers=message.headers,
            )
        ).decoded
        if isinstance(read.content, InvalidDocument):
            return Replayed(offset=at, outcome="refused", code=read.content.code, reason=read.content.reason)
        if mended is None and refusal.told["code"] == "conflict":
            return Replayed(offset=at, outcome="refused", code="conflict", reason=refusal.told["reason"])
        if is_trial or read.name is None:
            return Replayed(offset=at, outcome="replayed")
        home = fold.partitions.of_id(read.name)
        return Replayed(offset=at, outcome="replayed", at=await self._documents.append(home, [message]))


def _message(came: Record, place: str, mended: bytes | None) -> Message:
    """What replays a record. Mended bytes name their document themselves, so the old key stays behind."""
    headers = tuple(header for header in came.headers if not header[0].startswith(OURS))
    return Message(
        value=came.value if mended is None else mended,
        key=came.key if mended is None else None,
        headers=(*headers, (REPLAY_OF, place.encode())),
    )
