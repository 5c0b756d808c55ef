"""Publishing through a query worker: documents go to Kafka, and receipts say what intake made of them.

Promise: a publication is answered when Kafka has it on all in-sync replicas, its intake shard has applied it and
the index has it. What Kafka has but nobody applied in `APPLIED_S` is `Unavailable`: publish it again, repeats
change nothing. A receipt says what the intake fold decided: from what stands when the record is applied, or,
where a later record of the same id stands by then, by deciding again over the records of that id since the
publication began. Cost: two reads of what is known of the ids, and one batch a partition.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence, Set

from msgspec import Struct

from stream_car.cluster.connections import Works
from stream_car.cluster.indexer import Feeder
from stream_car.codec import decode
from stream_car.core.revisions import document_key
from stream_car.core.stored import StoredDocument
from stream_car.errors import InvalidDocument, Unavailable
from stream_car.ports import Log, Message, Record, ShardId, SnapshotReader
from stream_car.processing.effects import Effects, Outcome
from stream_car.processing.headers import Header
from stream_car.processing.receipts import Receipt, receipt_of
from stream_car.processing.state import HEADER, State, Value, decode_value
from stream_car.processing.two_hop import IntakeFold
from stream_car.queries.answers import Published

APPLIED_S = 10.0
FETCH_MAX = 1000
HELD = document_key("")


class Publishing:
    """Takes publications."""

    def __init__(self, works: Works, views: SnapshotReader, documents: Log, feeder: Feeder) -> None:
        self._partitions = works.partitions
        self._ruleset = works.plan.ruleset
        self._topic = works.layout.named("documents")
        self._sender = works.sender
        self._views = views
        self._documents = documents
        self._feeder = feeder
        self._folds = [IntakeFold(self._ruleset, works.partitions, shard=q) for q in range(works.partitions.intakes)]

    async def publish(self, documents: Sequence[bytes]) -> Published:
        """Keep documents durably and wait until they are applied; a receipt for each, in order."""
        placed = [self._placed(value) for value in documents]
        batches: dict[int, list[int]] = {}
        names: dict[int, set[str]] = {}
        for at, (partition, message) in enumerate(placed):
            batches.setdefault(partition, []).append(at)
            names.setdefault(partition, set()).update([message.key.decode()] if message.key is not None else [])
        before = dict(zip(batches, await asyncio.gather(*(self._known(q, names[q]) for q in batches)), strict=True))
        sent = await asyncio.gather(
            *(self._sender.send(self._topic, q, [placed[at][1] for at in ats]) for q, ats in batches.items())
        )
        records = {
            at: Record(offset=offset, append_time=0, value=placed[at][1].value, key=placed[at][1].key)
            for ats, offsets in zip(batches.values(), sent, strict=True)
            for at, offset in zip(ats, offsets, strict=True)
        }
        ends = {q: max(records[at].offset for at in ats) for q, ats in batches.items()}
        if not await self.has_applied(ends, time.monotonic() + APPLIED_S):
            raise Unavailable("Kafka has it, but no worker has applied it; is `stream-car worker` running?")
        receipts: dict[int, Receipt] = {}
        for q, ats in batches.items():
            told = await self._receipts(q, [records[at] for at in ats], before[q])
            receipts |= dict(zip(ats, told, strict=True))
        return Published(receipts=tuple(receipts[at] for at in range(len(documents))))

    def _placed(self, value: bytes) -> tuple[int, Message]:
        """The partition of a document's id; of one that shows none, the first."""
        try:
            name: str | None = decode(value).id
        except InvalidDocument as invalid:
            name = invalid.document_id
        if name is None:
            return 0, Message(value=value)
        return self._partitions.of_id(name), Message(value=value, key=name.encode())

    async def has_applied(self, upto: Mapping[int, int], deadline: float) -> bool:
        """Whether each partition's record is applied, and in the index, as soon as they are or when time is up."""
        while True:
            heard = self._feeder.bell.listen()
            if all(self._feeder.fed[q] > offset for q, offset in upto.items()):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            await self._feeder.bell.wait(heard, left)

    async def _receipts(self, q: int, records: Sequence[Record], before: "Known") -> list[Receipt]:
        """What the fold made of these records of one partition."""
        fold = self._folds[q]
        said = [fold.read(record) for record in records]
        after = await self._known(q, before.held)
        told: dict[int, Effects] = {}
        late: set[str] = set()  # ids of which a later record stands
        for record, read in zip(records, said, strict=True):
            held = after.held.get(read.decoded.name or "")
            if held is not None and held.offset == record.offset and read.decoded.statement is not None:
                told[record.offset] = _accepted(held)
            elif held is not None and held.offset > record.offset:
                late.add(held.entry.id)
            else:
                told |= decided(fold, [record], after)
        if late:
            told |= decided(fold, await self._since(q, before.next_offset, records[-1].offset, late), before)
        return [
            receipt_of(record.offset, read.decoded.statement, told[record.offset], self._ruleset)
            for record, read in zip(records, said, strict=True)
        ]

    async def _since(self, q: int, first: int, last: int, names: Set[str]) -> list[Record]:
        """The records of these ids from one offset to another."""
        found: list[Record] = []
        while first <= last:
            records = await self._documents.fetch(q, first, min(FETCH_MAX, last + 1 - first))
            if not records:
                break
            found += [one for one in records if self._folds[q].read(one).decoded.name in names]
            first = records[-1].offset + 1
        return found

    async def _known(self, q: int, names: Iterable[str]) -> "Known":
        """What an intake shard knows of these ids, as of one moment."""
        place = ShardId("intake", q)
        keys = {name: document_key(name) for name in names}
        next_offset, raw = (await self._views.peek({place: [HEADER, *keys.values()]}))[place]
        header = decode_value(HEADER, raw.get(HEADER))
        values = {name: decode_value(key, raw.get(key)) for name, key in keys.items()}
        held = {name: value if isinstance(value, StoredDocument) else None for name, value in values.items()}
        return Known(next_offset, header.clock if isinstance(header, Header) else 0, held)


class Known(Struct, frozen=True):
    """What an intake shard knows of some ids before its next offset."""

    next_offset: int
    clock: int
    held: dict[str, StoredDocument | None]


def decided(fold: IntakeFold, records: Sequence[Record], known: Known) -> dict[int, Effects]:
    """What the fold makes of these records, in their order, from what is known; by offset."""
    state = State()
    told: dict[int, Effects] = {}
    for record in records:
        steps = fold.apply(state, fold.read(record))
        try:
            while True:
                for key in next(steps):
                    state[key] = _value(key, known)
        except StopIteration as stop:
            told[record.offset] = stop.value
    return told


def _value(key: bytes, known: Known) -> Value:
    """Nobody waits here: what a record releases is not its publisher's affair."""
    if key == HEADER:
        return Header(clock=known.clock)
    return known.held.get(key[2:].decode()) if key.startswith(HELD) else None


def _accepted(held: StoredDocument) -> Effects:
    """What became of a statement that stands."""
    outcome: Outcome = "retracted" if held.retracted else "pending" if held.pending is not None else "accepted"
    effects = Effects(outcome, [], [], [])
    effects.scopes = len(held.scopes)
    return effects
