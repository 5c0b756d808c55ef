"""The records between the two hops: placements and watermarks, as JSON with their own format version.

Promise: decoding an encoded record gives an equal record, and equal records have equal bytes. A reader of this
version rejects every other version, because it cannot know which fields it would miss. Cost: about 2 microseconds
per record.
"""

import msgspec
from msgspec import Struct

from stream_car.core.changes import Cause
from stream_car.core.revisions import Placement
from stream_car.core.stored import Entry
from stream_car.errors import Halted

VERSION = 1


class PlacementRecord(
    Struct,
    frozen=True,
    kw_only=True,
    gc=False,
    tag_field="kind",
    tag="place",
    omit_defaults=True,
    forbid_unknown_fields=True,
):
    """A placement, with the generation and the intake shard that sent it.

    `oseq` is the number of the shard's emission, which identifies repeats. `offset` is the input that caused the
    placement.
    """

    v: int
    generation: str
    shard: int
    oseq: int
    offset: int
    scope: str
    id: str
    cause: Cause
    entry: Entry | None = None
    old: tuple[str, int, int] | None = None
    link: bool = False

    def placement(self) -> Placement:
        """Return the placement in the form that the frontier fold takes."""
        return Placement(
            scope=self.scope,
            id=self.id,
            entry=self.entry,
            old=self.old,
            cause=self.cause,
            offset=self.offset,
            is_link=self.link,
        )


class WatermarkRecord(
    Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="mark", forbid_unknown_fields=True
):
    """The statement that all placements of an intake shard for inputs before `next` precede this record."""

    v: int
    generation: str
    shard: int
    next: int


class _Version(Struct, gc=False):
    v: int = 0


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(PlacementRecord | WatermarkRecord).decode
_version = msgspec.json.Decoder(_Version).decode


def encode_placement(placement: Placement, *, generation: str, shard: int, oseq: int) -> bytes:
    """Return the record of a placement that is emission `oseq` of an intake shard."""
    return _encode(
        PlacementRecord(
            v=VERSION,
            generation=generation,
            shard=shard,
            oseq=oseq,
            offset=placement.offset,
            scope=placement.scope,
            id=placement.id,
            cause=placement.cause,
            entry=placement.entry,
            old=placement.old,
            link=placement.is_link,
        )
    )


def encode_watermark(*, generation: str, shard: int, next_offset: int) -> bytes:
    """Return the record of an intake shard's progress: its next offset."""
    return _encode(WatermarkRecord(v=VERSION, generation=generation, shard=shard, next=next_offset))


def decode_placement(value: bytes | None) -> PlacementRecord | WatermarkRecord:
    """Return a record of the placements log.

    Only Stream-CAR writes to this log, so a record that cannot be read is never skipped.

    Raises:
        Halted: the record has another version (`format`), or it cannot be read (`damaged`).
    """
    try:
        if value is None:
            raise ValueError("its value is null")
        record: PlacementRecord | WatermarkRecord = _decode(value)
    except ValueError as error:
        _require_version(value)
        raise Halted(
            "damaged", f"A record of the placements log cannot be read: {error}. Only Stream-CAR may write to this log."
        ) from error
    if record.v != VERSION:
        _require_version(value)
    return record


def _require_version(value: bytes | None) -> None:
    try:
        version = _version(value or b"").v
    except msgspec.DecodeError:
        return
    if version != VERSION:
        reason = f"Placements have version {version}, but this worker reads version {VERSION}. Run a matching worker."
        raise Halted("format", reason)
