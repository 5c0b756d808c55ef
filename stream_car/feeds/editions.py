"""What a feed remembers of its records: which editions it has seen, and in which order.

Promise: values only. A publisher's own order (`rank`) is kept where the format has one, whatever the order
of arrival; where it has none, or where the publisher changes a record without saying so, the editions count
in the order in which they were seen. Cost: one entry of some 40 bytes an edition.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

import msgspec
from msgspec import Struct

from stream_car.core.documents import Statement


class Edition(Struct, frozen=True, array_like=True, gc=False):
    """One edition of a record: the publisher's order, the precedence it was given, and what it said."""

    rank: int
    time: int
    order: int
    digest: bytes


class Seen(Struct, frozen=True, array_like=True, gc=False):
    """What is known of one record. `listed` are the ids that a snapshot held, or that an edition published."""

    editions: tuple[Edition, ...] = ()
    listed: tuple[str, ...] = ()
    owner: str = ""


class Position(Protocol):
    """What a feed has seen so far, by record; a mapping that is only ever looked up."""

    def get(self, record: str, /) -> Seen | None:
        """What is known of a record."""
        ...


class Converted(Struct, frozen=True, kw_only=True, gc=False):
    """What a piece of a feed says: new documents, and what to remember from now on.

    `records` counts what the piece held, `known` those that said nothing new, `ties` those that no order
    of the publisher's tells apart from another.
    """

    documents: Sequence[Statement] = ()
    seen: Mapping[str, Seen] = {}
    records: int = 1
    known: int = 0
    ties: int = 0


class Next(Struct, frozen=True, gc=False):
    """An edition that was not known, and which one of its rank it is (0: the first)."""

    edition: Edition
    nth: int


NOTHING_SEEN = Seen()


def digest_of(tree: object) -> bytes:
    """Eight bytes that tell contents apart, whatever the order of their keys."""
    return blake2b(msgspec.json.encode(tree, order="sorted"), digest_size=8).digest()


def next_edition(seen: Seen, *, digest: bytes, time: int, rank: int | None = None, base: int = 0) -> Next | None:
    """Where an edition stands among those seen; `None` if it is known.

    With a `rank` the same content under it is known wherever it stands; without one only what was said last
    is. The time is the publisher's as far as it agrees with the ranks: never before that of a lower one.
    """
    editions = seen.editions
    if rank is None:
        if editions and editions[-1].digest == digest:
            return None
        rank = editions[-1].rank if editions else 0
    elif any(one.rank == rank and one.digest == digest for one in editions):
        return None
    nth = sum(one.rank == rank for one in editions)
    for one in editions:
        if one.rank <= rank and one.time > time:
            time = one.time
    for one in editions:
        if one.rank > rank and one.time < time:
            time = one.time
    return Next(Edition(rank, time, base + nth, digest), nth)


def remembered(seen: Seen, edition: Edition) -> Seen:
    """The record with one edition more, in the publisher's order."""
    editions = sorted((*seen.editions, edition), key=lambda one: one.rank)  # stable: by rank, then as seen
    return msgspec.structs.replace(seen, editions=tuple(editions))
