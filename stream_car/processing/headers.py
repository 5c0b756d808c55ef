"""The counters of shards, as they are stored: the order of the fields is the format.

This module is never compiled, because mypyc drops the options of a class.
"""

from msgspec import Struct


class Header(Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """The counters of an intake shard.

    `clock` is the greatest append time so far, unless the clock was set back far. `links` is the number of placements
    by explicit link, `pending` of documents that wait for their time, and `documents` of documents that are not
    retracted. `counts` has the number of records per outcome.
    """

    clock: int = 0
    links: int = 0
    pending: int = 0
    documents: int = 0
    counts: dict[str, int] = {}


class FrontierHeader(Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """The counters of a frontier shard in the two-hop form. Both lists are indexed by intake shard.

    `oseqs` has the last emission applied, and `watermarks` the input before which everything has been applied.
    `has_links` is true if any document ever named another. `changes` counts the changes, so it is the number of the
    last one. The other fields count records of the placements log: `applied`, `repeated`, `foreign` (of another
    generation) and `watermark_records`.
    """

    oseqs: list[int]
    watermarks: list[int]
    has_links: bool = False
    applied: int = 0
    repeated: int = 0
    foreign: int = 0
    watermark_records: int = 0
    changes: int = 0


class ForwardedOffsets(Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Per intake shard, the offset after the last record that it forwarded to this shard."""

    next_offsets: list[int]
