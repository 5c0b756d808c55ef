"""The records between the hops: placements and marks, as JSON with a version of their own.

Promise: `decode_placed(encode_placed(x)) == x`; equal values have equal bytes; a reader of this
version refuses every other one, because it would not know what it leaves out. Cost: about 2
microseconds a record.
"""

import msgspec
from msgspec import Struct

from stream_car.core.changes import Cause
from stream_car.core.revisions import Placement
from stream_car.core.stored import Entry
from stream_car.errors import Halted

VERSION = 1


class PlacementRecord(Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="place", omit_defaults=True):
    """A placement on its way: which intake shard of which generation sent it, and as its which event.

    `oseq` tells repeats apart; `offset` is the input that caused it.
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
        """As the frontier fold takes it."""
        return Placement(
            scope=self.scope,
            id=self.id,
            entry=self.entry,
            old=self.old,
            cause=self.cause,
            offset=self.offset,
            is_link=self.link,
        )


class WatermarkRecord(Struct, frozen=True, kw_only=True, gc=False, tag_field="kind", tag="mark"):
    """All placements of an intake shard for inputs before `next` have gone before this record."""

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
    """The record of a placement that is event `oseq` of an intake shard."""
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
    """The record that says how far an intake shard has come."""
    return _encode(WatermarkRecord(v=VERSION, generation=generation, shard=shard, next=next_offset))


def decode_placement(value: bytes | None) -> PlacementRecord | WatermarkRecord:
    """A record of placements. Raises `Halted`: `format` for another version, `damaged` for anything else.

    Only Stream-CAR writes there, so what cannot be read is never skipped.
    """
    try:
        if value is None:
            raise ValueError("a null value")
        found: PlacementRecord | WatermarkRecord = _decode(value)
    except ValueError as error:
        _require_version(value)
        raise Halted("damaged", f"a record of placements cannot be read: {error}") from error
    if found.v != VERSION:
        _require_version(value)
    return found


def _require_version(value: bytes | None) -> None:
    try:
        found = _version(value or b"").v
    except msgspec.DecodeError:
        return
    if found != VERSION:
        raise Halted(
            "format", f"placements have version {found} but this worker reads version {VERSION}; run one that knows it"
        )
