"""The two-hop form: the intake and frontier folds as separate shards, with the placements log between them.

Promise: the intake fold decides what becomes of a document and emits placements. The frontier fold applies each
placement once, in the order in which its intake shard emitted them, however often and late they are repeated. Its
`watermarks` give for every intake shard the input before which everything has been applied. Cost: the composed fold,
and a record of about 300 bytes per document and scope.
"""

from collections.abc import Generator

import msgspec
from msgspec import Struct

from stream_car.codec.placements import PlacementRecord, WatermarkRecord, decode_placement, encode_placement
from stream_car.core.changes import FrontierChange
from stream_car.core.revisions import SKEW, document_key
from stream_car.core.rules import Ruleset
from stream_car.core.timeline import scope_key
from stream_car.errors import Halted
from stream_car.ports import Emission, Message, Record
from stream_car.processing.effects import DecodedRecord, Effects, Future
from stream_car.processing.fold import CHANGES, FORMAT, REJECTED, Fold, Steps, place_all
from stream_car.processing.headers import ForwardedOffsets, FrontierHeader
from stream_car.processing.outcomes import OutcomePage, outcome_key, page_number
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import State

PLACEMENTS = "placements"
DOCUMENTS = "documents"
FORWARDED = "stream-car-rerouted"  # this header holds the partition that a record came from, and its offset there
FRONTIER = b"f"
FORWARDED_OFFSETS = b"r"
REJECTED_MAX = 64 << 10  # bytes of the value of a rejected record; a larger value is not emitted

_encode_message = msgspec.msgpack.Encoder().encode
_decode_message = msgspec.msgpack.Decoder(Message).decode


def generation_of(ruleset: Ruleset, partitions: Partitions, future: Future = "wait") -> str:
    """Return the name of what the state of both hops was built with: rules, format, partitions, future documents."""
    return f"{ruleset.digest}-{FORMAT}-{partitions.name}{'' if future == 'wait' else '-' + future}"


def emission_message(event: Emission) -> Message:
    """Return the message for an intake emission: a placement, a forwarded document or a rejected record."""
    return Message(value=event.value, key=event.key) if event.stream == PLACEMENTS else _decode_message(event.value)


class IntakeRecord(Struct, frozen=True, gc=False):
    """A record of the documents log.

    `is_home` is true if the record is in the partition of its id. `origin` is the first partition and offset of a
    forwarded record.
    """

    record: Record
    decoded: DecodedRecord
    is_home: bool
    origin: tuple[int, int] | None


class IntakeFold:
    """Implements `shard.FoldProtocol` for one intake shard.

    It handles revisions, pending documents, placements, rejected records and records of the wrong partition.
    """

    def __init__(
        self,
        ruleset: Ruleset,
        partitions: Partitions,
        *,
        shard: int,
        future: Future = "wait",
        skew: int = SKEW,
    ) -> None:
        self.partitions = partitions
        self.shard = shard
        self.generation = generation_of(ruleset, partitions, future)
        self._fold = Fold(ruleset, future=future, skew=skew, shard=shard, emits_placements=True)

    def read(self, record: Record) -> IntakeRecord:
        """Decode a record, and find out whether it is in the partition of its id."""
        decoded = self._fold.read(record)
        name = decoded.name
        is_home = name is None or self.partitions.of_id(name) == self.shard
        return IntakeRecord(record, decoded, is_home, _origin(record, self.partitions.intakes))

    def keys_needed(self, decoded: IntakeRecord) -> list[bytes]:
        """Return the key of the record's id. Scopes belong to the other hop."""
        name = decoded.decoded.name
        return [document_key(name)] if decoded.is_home and name is not None else []

    def apply(self, state: State, decoded: IntakeRecord) -> Generator[list[bytes], None, Effects]:
        """Apply one record, or forward it if it is in the wrong partition, and keep the outcome for its publisher."""
        effects = yield from self._apply(state, decoded)
        offset = decoded.record.offset
        key = outcome_key(offset)
        if key not in state.others:
            yield [key]
        page = state.others[key]
        if not isinstance(page, OutcomePage) or page.number != page_number(offset):
            page = state.others[key] = OutcomePage(page_number(offset))
        page.add(offset, effects.outcome, effects.rejection)
        effects.touched.append(key)
        return effects

    def _apply(self, state: State, decoded: IntakeRecord) -> Generator[list[bytes], None, Effects]:
        """Apply one record, or forward it if it is in the wrong partition.

        A forwarded copy that is in the wrong partition is dropped: it was made for another number of partitions, and
        its original is forwarded again.
        """
        at = decoded.decoded.at
        if not decoded.is_home:
            effects = yield from self._fold.step(state, None, (), at)
            if decoded.origin is None:
                effects.outcome = "rerouted"
            return effects
        if decoded.origin is None:
            return (yield from self._fold.apply(state, decoded.decoded))
        is_repeat = yield from self._is_repeat(state, *decoded.origin)
        if is_repeat:
            effects = yield from self._fold.step(state, None, (), at)
        else:
            effects = yield from self._fold.apply(state, decoded.decoded)
            effects.touched.append(FORWARDED_OFFSETS)
        return effects

    def _is_repeat(self, state: State, partition: int, offset: int) -> Generator[list[bytes], None, bool]:
        """Return whether the record forwarded from there was applied before. If not, remember it."""
        if FORWARDED_OFFSETS not in state.others:
            yield [FORWARDED_OFFSETS]
        forwarded = state.others[FORWARDED_OFFSETS]
        if forwarded is None:
            forwarded = state.others[FORWARDED_OFFSETS] = ForwardedOffsets([0] * self.partitions.intakes)
        assert isinstance(forwarded, ForwardedOffsets)
        if offset < forwarded.next_offsets[partition]:
            return True
        forwarded.next_offsets[partition] = offset + 1
        return False

    def emit(self, decoded: IntakeRecord, effects: Effects, first: int) -> list[Emission]:
        """Return the emissions of a record: its placements, then the record itself if it is forwarded or rejected."""
        events = [
            Emission(
                oseq=oseq,
                stream=PLACEMENTS,
                key=placement.scope.encode(),
                value=encode_placement(placement, generation=self.generation, shard=self.shard, oseq=oseq),
            )
            for oseq, placement in enumerate(effects.placements, first)
        ]
        record = decoded.record
        if effects.outcome == "rerouted":
            assert decoded.decoded.name is not None
            origin = (FORWARDED, f"{self.shard}/{record.offset}".encode())
            message = Message(value=record.value, key=record.key, headers=(*record.headers, origin))
            events.append(_emission(first + len(events), DOCUMENTS, decoded.decoded.name.encode(), message))
        elif effects.rejection is not None:
            rejection = effects.rejection
            facts = [("code", rejection.code), ("reason", rejection.reason), ("id", rejection.id or "")]
            facts += [("partition", str(self.shard)), ("offset", str(record.offset))]
            is_small = record.value is not None and len(record.value) <= REJECTED_MAX
            message = Message(
                value=record.value if is_small else None,
                key=record.key,
                headers=(*record.headers, *((f"stream-car-{name}", text.encode()) for name, text in facts)),
            )
            events.append(_emission(first + len(events), REJECTED, record.key or b"", message))
        return events


def _emission(oseq: int, stream: str, key: bytes, message: Message) -> Emission:
    return Emission(oseq=oseq, stream=stream, key=key, value=_encode_message(message))


def _origin(record: Record, partitions: int) -> tuple[int, int] | None:
    """Return the first partition and offset of a forwarded record, or `None` if it was not forwarded.

    A header that cannot be read was not written by Stream-CAR, and is ignored.
    """
    for name, value in record.headers:
        if name == FORWARDED and len(value) <= 40:
            partition, slash, offset = value.partition(b"/")
            if slash and partition.isdigit() and offset.isdigit() and int(partition) < partitions:
                return int(partition), int(offset)
    return None


class FrontierEffects(Struct, gc=False):
    """What a record of the placements log did. `touched` are the keys to write."""

    changes: list[FrontierChange]
    touched: list[bytes]


class FrontierFold:
    """Implements `shard.FoldProtocol` for one frontier shard: placements, and the progress of each intake shard."""

    def __init__(self, ruleset: Ruleset, partitions: Partitions, *, shard: int, future: Future = "wait") -> None:
        self.ruleset = ruleset
        self.partitions = partitions
        self.shard = shard
        self.generation = generation_of(ruleset, partitions, future)
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def read(self, record: Record) -> PlacementRecord | WatermarkRecord:
        """Decode a record of the placements log.

        Raises:
            Halted: the record has another format (`format`), cannot be read (`damaged`), or is in the wrong partition
                (`partitions`).
        """
        decoded = decode_placement(record.value)
        if isinstance(decoded, PlacementRecord) and decoded.generation == self.generation:
            home = self.partitions.of_scope(decoded.scope.encode())
            if home != self.shard:
                reason = f"A placement in {decoded.scope!r} is in partition {self.shard}, but it belongs in {home}."
                raise Halted("partitions", reason)
        return decoded

    def keys_needed(self, decoded: PlacementRecord | WatermarkRecord) -> list[bytes]:
        """Return the key of the placement's scope."""
        return (
            [scope_key(decoded.scope)]
            if isinstance(decoded, PlacementRecord) and decoded.generation == self.generation
            else []
        )

    def apply(
        self, state: State, decoded: PlacementRecord | WatermarkRecord
    ) -> Generator[list[bytes], None, FrontierEffects]:
        """Apply a placement unless it is a repeat, or advance a watermark. Ignore records of other generations."""
        effects = FrontierEffects([], [FRONTIER])
        if FRONTIER not in state.others:
            yield [FRONTIER]
        header = state.others[FRONTIER]
        if header is None:
            intakes = self.partitions.intakes
            header = state.others[FRONTIER] = FrontierHeader([0] * intakes, [0] * intakes)
        assert isinstance(header, FrontierHeader)
        if decoded.generation != self.generation:
            header.foreign += 1
        elif isinstance(decoded, WatermarkRecord):
            header.watermark_records += 1
            header.watermarks[decoded.shard] = max(header.watermarks[decoded.shard], decoded.next)
        elif decoded.oseq <= header.oseqs[decoded.shard]:
            header.repeated += 1
        else:
            yield from self._place(state, header, decoded, effects)
        return effects

    def _place(self, state: State, header: FrontierHeader, record: PlacementRecord, effects: FrontierEffects) -> Steps:
        shard = record.shard
        header.applied += 1
        header.oseqs[shard] = record.oseq
        # More placements of the same input may follow, so the watermark moves to that input and not beyond it.
        header.watermarks[shard] = max(header.watermarks[shard], record.offset)
        header.has_links = header.has_links or record.link
        remaining = [record.placement()]
        changes, touched = effects.changes, effects.touched
        while missing := place_all(state, remaining, self.ruleset, shard=shard, changes=changes, touched=touched):
            yield missing
        header.changes += len(effects.changes)

    def emit(self, decoded: PlacementRecord | WatermarkRecord, effects: FrontierEffects, first: int) -> list[Emission]:
        """Return the changes of the frontier as emissions."""
        return [
            Emission(oseq=oseq, stream=CHANGES, key=change.scope.encode(), value=self._encode(change))
            for oseq, change in enumerate(effects.changes, first)
        ]
