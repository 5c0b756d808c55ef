"""Rejected input in Kafka: list the topic `rejected`, and prepare to send its inputs again.

Promise: each input is listed once, under the offset at which it was first rejected, even if a worker that lost its
state rejects it again. A replay sends the record of `documents` itself with its key, value and headers, however long it
is, and names it in a header. Input that would be rejected again is not sent, nor is input whose replay is the current
revision of its document. Any other input is sent again by a second replay, which changes nothing.
Cost: the topic, a month of rejected input, is read once from its beginning; about 300 bytes of memory per input. A
replay reads one record per input.
"""

import re
from collections.abc import Collection, Mapping

from msgspec import Struct

from stream_car.api.replay_plan import ReplayPlan
from stream_car.codec.times import from_micros
from stream_car.core.revisions import document_key
from stream_car.core.rules import Ruleset
from stream_car.core.stored import StoredDocument
from stream_car.errors import Halted, InvalidRequest
from stream_car.ports import Log, Record, ShardId, SnapshotReader
from stream_car.processing.fold import REJECTED, Fold
from stream_car.processing.partitions import Partitions
from stream_car.processing.replay import OWN_HEADERS, REPLAY_OF, decode_replay, rejection_of, replay_message
from stream_car.processing.signatures import Signatures
from stream_car.processing.state import decode_value
from stream_car.queries.answers import Rejected, text_or_base64

FETCH_MAX = 500
_POSITION = re.compile(r"[0-9]{1,9}/[0-9]{1,18}", re.ASCII)
FIELDS = frozenset({"code", "reason", "id", "partition", "offset"})


class RejectedRecord(Struct, frozen=True):
    """A record of `rejected`, and what its headers report."""

    record: Record
    fields: Mapping[str, str]

    @property
    def origin(self) -> tuple[int, int]:
        """Partition and offset of the input in `documents`."""
        return int(self.fields["partition"]), int(self.fields["offset"])

    def answer(self) -> Rejected:
        """Return it as it is listed."""
        return Rejected(
            offset=self.record.offset,
            code=self.fields["code"],
            reason=self.fields["reason"],
            append_time=from_micros(self.record.append_time),
            number=self.record.offset + 1,
            id=self.fields["id"] or None,
            content=text_or_base64(self.record.value or b""),
        )


class RejectedTopic:
    """The topic `rejected` of an installation, and the topic of documents beside it."""

    def __init__(
        self,
        rejected: Log,
        documents: Log,
        snapshots: SnapshotReader,
        ruleset: Ruleset,
        partitions: Partitions,
        signatures: Signatures,
    ) -> None:
        self._rejected = rejected
        self._documents = documents
        self._snapshots = snapshots
        self._fold = Fold(ruleset)
        self._partitions = partitions
        self._signatures = signatures
        # Of the first rejections before `_next`:
        self._offsets: dict[tuple[int, int], int] = {}  # by origin
        self._origins: dict[int, tuple[int, int]] = {}  # by offset
        self._next = 0

    async def list_from(self, first: int, limit: int) -> tuple[Rejected, ...]:
        """Return the first rejection of each input, oldest first, from this offset of the topic on."""
        begin, end = await self._read_up_to(first)
        offset = max(begin, first)
        answers: list[Rejected] = []
        while offset < end and len(answers) < limit:
            matches, offset = await self._read(offset, end, min(FETCH_MAX, limit - len(answers)))
            answers += [rejected.answer() for rejected in matches]
        return tuple(answers)

    async def _read_up_to(self, offset: int) -> tuple[int, int]:
        """Read all records before this offset once, to recognise later ones as repeats; return the topic's range."""
        begin, end = await self._rejected.range(0)
        self._next = max(self._next, begin)
        while self._next < min(offset, end):
            await self._read(self._next, end, min(FETCH_MAX, offset - self._next))
        return begin, end

    async def _read(self, offset: int, end: int, limit: int) -> tuple[list[RejectedRecord], int]:
        """Return the first rejections among the next records before `end`, and the offset after these records."""
        records = await self._rejected.fetch(0, offset, limit)
        following = records[-1].offset + 1 if records else end
        self._next = max(self._next, following)
        return [rejected for record in records if (rejected := self._first_rejection(record)) is not None], following

    def _first_rejection(self, record: Record) -> RejectedRecord | None:
        """Return the record if it is the first rejection of its input. What no worker wrote is ignored."""
        if not self._is_genuine(record):
            return None
        headers = dict(record.headers)  # ours come last, so they win over equal names that a publisher sent
        fields = {
            name: headers[OWN_HEADERS + name].decode("utf-8", "replace")
            for name in FIELDS
            if OWN_HEADERS + name in headers
        }
        if len(fields) < len(FIELDS) or not _POSITION.fullmatch(f"{fields['partition']}/{fields['offset']}"):
            return None
        if int(fields["partition"]) >= self._partitions.intakes:
            return None
        rejected = RejectedRecord(record, fields)
        if self._offsets.setdefault(rejected.origin, record.offset) != record.offset:
            return None
        self._origins[record.offset] = rejected.origin
        return rejected

    def _is_genuine(self, record: Record) -> bool:
        """Return whether a worker wrote a record. A key that was made before rejections were signed tells nothing."""
        return REJECTED not in self._signatures.ends or self._signatures.is_genuine(REJECTED, 0, record)

    async def plan_replay(self, corrected: Mapping[int, bytes], offsets: Collection[int]) -> ReplayPlan:
        """Return what to send of these inputs, which are named by their offsets in `rejected`.

        Raises:
            InvalidRequest: an input was not rejected, or is no longer in Kafka (`offset`).
        """
        plan = ReplayPlan()
        numbers = sorted({*offsets, *corrected})
        begin, _ = await self._read_up_to(max(numbers, default=0) + 1)
        if unknown := [number for number in numbers if number < begin or number not in self._origins]:
            raise InvalidRequest("offset", f"Input {unknown[0]} was not rejected. `rejected` lists what was.")
        for number in numbers:
            partition, offset = self._origins[number]
            original = await self._document(partition, offset)
            if original is None:
                raise InvalidRequest("offset", f"Input {number} is no longer in Kafka. Publish it again.")
            origin = f"{partition}/{offset}"
            message = replay_message(original, corrected.get(number), origin=origin)
            decoded = decode_replay(self._fold, message, original)
            stored = await self._stored(decoded.name) if decoded.name is not None else None
            rejection = rejection_of(decoded, stored, self._fold)
            plan.add(number, message, rejection, await self._replayed_as(stored, origin))
        return plan

    async def _replayed_as(self, stored: StoredDocument | None, origin: str) -> int | None:
        """Return the offset of a stored document if it is the replay of this input."""
        if stored is None:
            return None
        record = await self._document(self._partitions.of_id(stored.entry.id), stored.offset)
        is_replay = record is not None and dict(record.headers).get(REPLAY_OF) == origin.encode()
        return stored.offset if is_replay else None

    async def _document(self, partition: int, offset: int) -> Record | None:
        """Return a record of `documents`, or `None` if Kafka does not have it any more."""
        try:
            records = await self._documents.fetch(partition, offset, 1)
        except Halted as halted:
            if halted.code not in ("lost_history", "ahead"):
                raise
            return None
        return records[0] if records else None

    async def _stored(self, name: str) -> StoredDocument | None:
        """Return what the intake shard of an id has for it."""
        shard, key = ShardId("intake", self._partitions.of_id(name)), document_key(name)
        _, values = (await self._snapshots.peek({shard: [key]}))[shard]
        stored = decode_value(key, values.get(key))
        return stored if isinstance(stored, StoredDocument) else None
