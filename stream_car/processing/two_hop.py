"""The two-hop form: the intake and frontier folds as separate shards, with the placements log between them.

Promise: the intake fold decides what becomes of a document and emits placements. The frontier fold applies each
placement once, in the order in which its intake shard emitted them, however often and late they are repeated. Its
`watermarks` give for every intake shard the input before which everything has been applied. Cost: the composed fold,
and a record of about 300 bytes per document and scope.
"""

import re
from collections.abc import Generator

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.codec.changes import encode_change
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
from stream_car.processing.signatures import Signatures
from stream_car.processing.state import State

PLACEMENTS = "placements"
DOCUMENTS = "documents"
FORWARDED = "stream-car-rerouted"  # this header holds the partition that a record came from, and its offset there
FRONTIER = b"f"
FORWARDED_OFFSETS = b"r"
FORWARDED_MAX = 1_000_000  # bytes of a record that is forwarded: less than a topic accepts by default
OFFSET_MAX = 2**63 - 1
REJECTED_MAX = 64 << 10  # bytes of value, key or headers of a rejected record; what is larger is not emitted

_ORIGIN = re.compile(rb"([0-9]{1,9})/([0-9]{1,19})")

Headers = tuple[tuple[str, bytes], ...]
FrontierRecord = PlacementRecord | WatermarkRecord | ValueError | None  # `None`: a foreign record

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
        signatures: Signatures,
        future: Future = "wait",
        skew: int = SKEW,
    ) -> None:
        self.partitions = partitions
        self.shard = shard
        self._signatures = signatures
        self.generation = generation_of(ruleset, partitions, future)
        self._fold = Fold(ruleset, future=future, skew=skew, shard=shard, emits_placements=True)

    def read(self, record: Record) -> IntakeRecord:
        """Decode a record, and find out whether it is in the partition of its id and whether a worker forwarded it."""
        headers, origin = self._origin(record)
        decoded = self._fold.read(record if headers is record.headers else replace(record, headers=headers))
        if decoded.not_kept:  # anybody can write this header here; only a service of one process counts by it
            decoded = replace(decoded, not_kept=0)
        name = decoded.name
        is_home = name is None or self.partitions.of_id(name) == self.shard or _is_too_large_to_forward(record)
        return IntakeRecord(record, decoded, is_home, origin)

    def _origin(self, record: Record) -> tuple[Headers, tuple[int, int] | None]:
        """Return the headers of the original record, and its partition and offset if this is a forwarded copy.

        Anybody may write to this topic. So a copy is only what a worker signed, or what is older than signatures.
        """
        headers, intakes = record.headers, self.partitions.intakes
        if len(headers) > 1 and headers[-2][0] == FORWARDED and self._signatures.is_signed(DOCUMENTS, record):
            return headers[:-2], _parse_origin(headers[-2][1], intakes)
        if self._signatures.is_older(DOCUMENTS, self.shard, record.offset):
            origins = [_parse_origin(value, intakes) for name, value in headers if name == FORWARDED]
            return headers, next((origin for origin in origins if origin is not None), None)
        return headers, None

    def keys_needed(self, decoded: IntakeRecord) -> list[bytes]:
        """Return the key of the record's id. Scopes belong to the other hop."""
        name = decoded.decoded.name
        return [document_key(name)] if decoded.is_home and name is not None else []

    def apply(self, state: State, decoded: IntakeRecord) -> Generator[list[bytes], None, Effects]:
        """Apply one record, or forward it if it is in the wrong partition, and keep the outcome for its publisher."""
        effects = yield from self._apply(state, decoded)
        yield from self._keep_outcome(state, decoded, effects)
        return effects

    def set_aside(
        self, state: State, decoded: IntakeRecord
    ) -> Generator[list[bytes], None, tuple[Effects, str | None, tuple[str, ...] | None]]:
        """Count a record that cannot be applied, and keep that for its publisher."""
        effects, name, scopes = yield from self._fold.set_aside(state, decoded.decoded)
        yield from self._keep_outcome(state, decoded, effects)
        return effects, name, scopes

    def _keep_outcome(self, state: State, decoded: IntakeRecord, effects: Effects) -> Steps:
        offset = decoded.record.offset
        key = outcome_key(offset)
        if key not in state.others:
            yield [key]
        page = state.others[key]
        if not isinstance(page, OutcomePage) or page.number != page_number(offset):
            page = state.others[key] = OutcomePage(page_number(offset))
        page.add(offset, effects.outcome, effects.rejection)
        effects.touched.append(key)

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
            own = tuple((f"stream-car-{name}", text.encode()) for name, text in facts)
            message = Message(
                value=_small(record.value),
                key=_small(record.key),
                headers=(*record.headers, *own) if _headers_size(record) <= REJECTED_MAX else own,
            )
            events.append(_emission(first + len(events), REJECTED, message.key or b"", message))
        return events


def _emission(oseq: int, stream: str, key: bytes, message: Message) -> Emission:
    return Emission(oseq=oseq, stream=stream, key=key, value=_encode_message(message))


def _parse_origin(value: bytes, partitions: int) -> tuple[int, int] | None:
    """Return the partition and offset in the header of a forwarded record, or `None` if it is not well-formed."""
    match = _ORIGIN.fullmatch(value)
    if match is None:
        return None
    partition, offset = map(int, match.groups())
    return (partition, offset) if partition < partitions and offset <= OFFSET_MAX else None


def _is_too_large_to_forward(record: Record) -> bool:
    """Return whether a record has no room for further headers. It is invalid, and is rejected where it is."""
    return len(record.value or b"") + len(record.key or b"") + _headers_size(record) > FORWARDED_MAX


def _headers_size(record: Record) -> int:
    return sum(len(name) + len(value) for name, value in record.headers)


def _small(content: bytes | None) -> bytes | None:
    """Return what is emitted of the value or key of a rejected record."""
    return content if content is not None and len(content) <= REJECTED_MAX else None


class FrontierEffects(Struct, gc=False):
    """What a record of the placements log did. `touched` are the keys to write."""

    changes: list[FrontierChange]
    touched: list[bytes]


class FrontierFold:
    """Implements `shard.FoldProtocol` for one frontier shard: placements, and the progress of each intake shard."""

    def __init__(
        self,
        ruleset: Ruleset,
        partitions: Partitions,
        *,
        shard: int,
        signatures: Signatures,
        future: Future = "wait",
    ) -> None:
        self.ruleset = ruleset
        self.partitions = partitions
        self.shard = shard
        self.generation = generation_of(ruleset, partitions, future)
        self._signatures = signatures

    def read(self, record: Record) -> FrontierRecord:
        """Decode a record of the placements log. It is `None` if it is foreign.

        Foreign is what is not of this generation, what is not signed, and a copy in another partition than that of its
        scope. An error is returned if the record is signed and has values that no worker writes.

        Raises:
            Halted: the record is signed and has another format (`format`).
        """
        if self._signatures.is_signed(PLACEMENTS, record):
            try:
                return self._decode(record)
            except ValueError as error:
                return error
        if not self._signatures.is_older(PLACEMENTS, self.shard, record.offset):
            return None
        try:
            return self._decode(record)
        except (ValueError, Halted):  # an older worker wrote no such record
            return None

    def _decode(self, record: Record) -> PlacementRecord | WatermarkRecord | None:
        decoded = decode_placement(record.value, self.generation)
        if decoded is not None and decoded.shard >= self.partitions.intakes:
            raise ValueError(f"There is no intake shard {decoded.shard}.")
        if isinstance(decoded, PlacementRecord) and self.partitions.of_scope(decoded.scope.encode()) != self.shard:
            return None
        return decoded

    def keys_needed(self, decoded: FrontierRecord) -> list[bytes]:
        """Return the key of the placement's scope."""
        return [scope_key(decoded.scope)] if isinstance(decoded, PlacementRecord) else []

    def apply(self, state: State, decoded: FrontierRecord) -> Generator[list[bytes], None, FrontierEffects]:
        """Apply a placement unless it is a repeat, or advance a watermark. Ignore foreign records."""
        effects = FrontierEffects([], [FRONTIER])
        header = yield from self._header(state)
        if isinstance(decoded, ValueError):
            raise decoded
        if decoded is None:
            header.foreign += 1
        elif isinstance(decoded, WatermarkRecord):
            header.watermark_records += 1
            header.watermarks[decoded.shard] = max(header.watermarks[decoded.shard], decoded.next)
        elif decoded.oseq <= header.oseqs[decoded.shard]:
            header.repeated += 1
        else:
            yield from self._place(state, header, decoded, effects)
        return effects

    def _header(self, state: State) -> Generator[list[bytes], None, FrontierHeader]:
        if FRONTIER not in state.others:
            yield [FRONTIER]
        header = state.others[FRONTIER]
        if header is None:
            intakes = self.partitions.intakes
            header = state.others[FRONTIER] = FrontierHeader([0] * intakes, [0] * intakes)
        assert isinstance(header, FrontierHeader)
        return header

    def set_aside(
        self, state: State, decoded: FrontierRecord
    ) -> Generator[list[bytes], None, tuple[FrontierEffects, str | None, tuple[str, ...] | None]]:
        """Pass over a record that cannot be applied. A placement counts as seen: what follows it is no repeat of it."""
        header = yield from self._header(state)
        effects = FrontierEffects([], [FRONTIER])
        if not isinstance(decoded, PlacementRecord):
            return effects, None, None
        header.oseqs[decoded.shard] = max(header.oseqs[decoded.shard], decoded.oseq)
        header.watermarks[decoded.shard] = max(header.watermarks[decoded.shard], decoded.offset)
        return effects, decoded.id, None if decoded.link else (decoded.scope,)

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

    def emit(self, decoded: FrontierRecord, effects: FrontierEffects, first: int) -> list[Emission]:
        """Return the changes of the frontier as emissions."""
        return [
            Emission(oseq=oseq, stream=CHANGES, key=change.scope.encode(), value=encode_change(change))
            for oseq, change in enumerate(effects.changes, first)
        ]
