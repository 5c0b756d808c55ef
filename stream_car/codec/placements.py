"""The records between the two hops: placements and watermarks, as JSON with their own format version.

Promise: decoding an encoded record gives an equal record, and equal records have equal bytes. Numbers are within the
bounds that their writer keeps. A reader of this version rejects every other version, because it cannot know which
fields it would miss. Cost: about 2 microseconds per record.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from stream_car.core.changes import Cause
from stream_car.core.revisions import Placement
from stream_car.core.stored import Entry
from stream_car.errors import Halted

VERSION = 1

Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]


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
    shard: Number
    oseq: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    offset: Number
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
    shard: Number
    next: Number


class _Heading(Struct, gc=False):
    v: int
    generation: str


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(PlacementRecord | WatermarkRecord).decode
_heading = msgspec.json.Decoder(_Heading).decode


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


def decode_placement(value: bytes | None, generation: str) -> PlacementRecord | WatermarkRecord | None:
    """Return a record of the placements log, or `None` if it is of another generation or of another program.

    Raises:
        Halted: the record has another version (`format`).
        ValueError: a record of this generation has values that no release writes.
    """
    try:
        record: PlacementRecord | WatermarkRecord = _decode(value or b"")
    except ValueError:
        if _is_of(value, generation):
            raise
        return None
    if record.generation != generation:
        return None
    if record.v != VERSION:
        raise _other_version(record.v)
    return record


def _is_of(value: bytes | None, generation: str) -> bool:
    """Return whether a record that cannot be decoded names this generation. Raises `Halted` for another version."""
    try:
        heading = _heading(value or b"")
    except ValueError:
        return False
    if heading.generation == generation and heading.v != VERSION:
        raise _other_version(heading.v)
    return heading.generation == generation


def _other_version(version: int) -> Halted:
    reason = f"Placements have version {version}, but this worker reads version {VERSION}. Run a matching worker."
    return Halted("format", reason)
