"""What shards count, as it is stored: the order of fields is the format. This module is never compiled."""

from msgspec import Struct


class Header(Struct, array_like=True, gc=False):
    """What a shard knows of itself. `clock` is the greatest append time so far; `links` counts placements by name."""

    clock: int = 0
    links: int = 0
    pending: int = 0
    documents: int = 0
    counts: dict[str, int] = {}


class FrontierHeader(Struct, array_like=True, gc=False):
    """What a frontier shard of the two-hop form knows of itself, for each intake shard by number.

    `oseqs`: its last event applied. `watermarks`: the input before which everything of it has been applied.
    `has_links`: whether any document ever named another. `told` counts the changes: it is the number of the
    last one. The rest counts the records of the log.
    """

    oseqs: list[int]
    watermarks: list[int]
    has_links: bool = False
    applied: int = 0
    repeated: int = 0
    foreign: int = 0
    watermark_records: int = 0
    changes: int = 0


class ForwardedOffsets(Struct, array_like=True, gc=False):
    """For each intake shard the offset after the last record that it forwarded to this one."""

    next_offsets: list[int]
