"""The two-hop form: the folds of the embedded engine, apart, with the placements log between them.

Promise: the intake fold decides what becomes of a document and says it as placements; the frontier
fold applies each placement once, in the order in which its intake shard said them, however often and
late they are repeated; `watermarks` say before which input of every intake shard all has been applied.
Cost: the composed fold, and a record of about 300 bytes for every (document, scope).
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
from stream_car.processing.partitions import Partitions
from stream_car.processing.state import State

PLACEMENTS = "placements"
DOCUMENTS = "documents"
FORWARDED = "stream-car-rerouted"  # a header: the partition that a record came from, and its offset there
FRONTIER = b"f"
FORWARDED_OFFSETS = b"r"
REJECTED_MAX = 64 << 10  # bytes of a rejected record that are kept; of a larger one only its coordinates

_encode_message = msgspec.msgpack.Encoder().encode
_decode_message = msgspec.msgpack.Decoder(Message).decode


def generation_of(ruleset: Ruleset, partitions: Partitions, future: Future = "wait") -> str:
    """Names what the state of both hops was built with: rules, format, partitions."""
    return f"{ruleset.digest}-{FORMAT}-{partitions.name}{'' if future == 'wait' else '-' + future}"


def message_of_emission(event: Emission) -> Message:
    """The record that an intake event becomes: a placement, a forwarded document or a rejected record."""
    return Message(value=event.value, key=event.key) if event.stream == PLACEMENTS else _decode_message(event.value)


class IntakeRecord(Struct, frozen=True, gc=False):
    """A record of the documents. `origin` is where a forwarded one lay first: partition and offset."""

    record: Record
    decoded: DecodedRecord
    is_home: bool
    origin: tuple[int, int] | None


class IntakeFold:
    """One intake shard: revisions, waiting documents, placements, what is rejected and what lies elsewhere."""

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
        """The record decoded, and whether it lies where its id belongs."""
        reading = self._fold.read(record)
        name = reading.name
        is_home = name is None or self.partitions.of_id(name) == self.shard
        return IntakeRecord(record, reading, is_home, _origin(record, self.partitions.intakes))

    def keys_needed(self, decoded: IntakeRecord) -> list[bytes]:
        """The key of its id; scopes are the other hop's."""
        name = decoded.decoded.name
        return [document_key(name)] if decoded.is_home and name is not None else []

    def apply(self, state: State, decoded: IntakeRecord) -> Generator[list[bytes], None, Effects]:
        """Apply one record; one that lies in a wrong partition is forwarded, unless it has been before.

        A copy away from home was made for another number of partitions; its original is forwarded anew.
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
        """Whether a record forwarded from there came before; else it is remembered."""
        if FORWARDED_OFFSETS not in state.others:
            yield [FORWARDED_OFFSETS]
        heard = state.others[FORWARDED_OFFSETS]
        if heard is None:
            heard = state.others[FORWARDED_OFFSETS] = ForwardedOffsets([0] * self.partitions.intakes)
        assert isinstance(heard, ForwardedOffsets)
        if offset < heard.next_offsets[partition]:
            return True
        heard.next_offsets[partition] = offset + 1
        return False

    def emit(self, decoded: IntakeRecord, effects: Effects, first: int) -> list[Emission]:
        """Placements, then what is forwarded or rejected with its bytes."""
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
            refused = effects.rejection
            said = [("code", refused.code), ("reason", refused.reason), ("id", refused.id or "")]
            said += [("partition", str(self.shard)), ("offset", str(record.offset))]
            is_small = record.value is not None and len(record.value) <= REJECTED_MAX
            message = Message(
                value=record.value if is_small else None,
                key=record.key,
                headers=(*record.headers, *((f"stream-car-{name}", text.encode()) for name, text in said)),
            )
            events.append(_emission(first + len(events), REJECTED, record.key or b"", message))
        return events


def _emission(oseq: int, stream: str, key: bytes, message: Message) -> Emission:
    return Emission(oseq=oseq, stream=stream, key=key, value=_encode_message(message))


def _origin(record: Record, partitions: int) -> tuple[int, int] | None:
    """Where a forwarded record lay first; a header that cannot be read is a publisher's own affair."""
    for name, value in record.headers:
        if name == FORWARDED and len(value) <= 40:
            partition, slash, offset = value.partition(b"/")
            if slash and partition.isdigit() and offset.isdigit() and int(partition) < partitions:
                return int(partition), int(offset)
    return None


class FrontierEffects(Struct, gc=False):
    """What a record of placements did."""

    changes: list[FrontierChange]
    touched: list[bytes]


class FrontierFold:
    """One frontier shard: the incremental step for each placement, and how far each intake shard has been heard."""

    def __init__(self, ruleset: Ruleset, partitions: Partitions, *, shard: int, future: Future = "wait") -> None:
        self.ruleset = ruleset
        self.partitions = partitions
        self.shard = shard
        self.generation = generation_of(ruleset, partitions, future)
        self._encode = msgspec.json.Encoder(order="deterministic").encode

    def read(self, record: Record) -> PlacementRecord | WatermarkRecord:
        """The record decoded. Raises `Halted` (`format`, `damaged`, `partitions`)."""
        said = decode_placement(record.value)
        if isinstance(said, PlacementRecord) and said.generation == self.generation:
            home = self.partitions.of_scope(said.scope.encode())
            if home != self.shard:
                raise Halted("partitions", f"a placement in {said.scope!r} lies in partition {self.shard}, not {home}")
        return said

    def keys_needed(self, decoded: PlacementRecord | WatermarkRecord) -> list[bytes]:
        """The key of its scope."""
        return (
            [scope_key(decoded.scope)]
            if isinstance(decoded, PlacementRecord) and decoded.generation == self.generation
            else []
        )

    def apply(
        self, state: State, decoded: PlacementRecord | WatermarkRecord
    ) -> Generator[list[bytes], None, FrontierEffects]:
        """Apply a placement unless it is a repeat; what other generations said is passed over."""
        effects = FrontierEffects([], [FRONTIER])
        if FRONTIER not in state.others:
            yield [FRONTIER]
        header = state.others[FRONTIER]
        if header is None:
            every = self.partitions.intakes
            header = state.others[FRONTIER] = FrontierHeader([0] * every, [0] * every)
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

    def _place(self, state: State, header: FrontierHeader, read: PlacementRecord, effects: FrontierEffects) -> Steps:
        """Its input may have more placements to come, so the bound moves to that input and not beyond."""
        header.applied += 1
        header.oseqs[read.shard] = read.oseq
        header.watermarks[read.shard] = max(header.watermarks[read.shard], read.offset)
        header.has_links = header.has_links or read.link
        left = [read.placement()]
        changes, touched = effects.changes, effects.touched
        while lacking := place_all(state, left, self.ruleset, shard=read.shard, changes=changes, touched=touched):
            yield lacking
        header.changes += len(effects.changes)

    def emit(self, decoded: PlacementRecord | WatermarkRecord, effects: FrontierEffects, first: int) -> list[Emission]:
        """The changes of frontiers."""
        return [
            Emission(oseq=oseq, stream=CHANGES, key=change.scope.encode(), value=self._encode(change))
            for oseq, change in enumerate(effects.changes, first)
        ]
