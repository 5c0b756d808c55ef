"""What a feed remembers of each record: which editions it has seen, and in which order.

Promise: values only. If the format has an order of its own (`rank`), editions keep it, whatever the order of
arrival. If it has none, or if the publisher changes a record without a new rank, editions are ordered by arrival.
Cost: about 40 bytes per edition.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Protocol

import msgspec
from msgspec import Struct

from stream_car.core.documents import Statement


class Edition(Struct, frozen=True, array_like=True, gc=False):
    """One edition of a record: the publisher's rank, the precedence it was given, and a digest of its content."""

    rank: int
    time: int
    order: int
    digest: bytes


class RecordState(Struct, frozen=True, array_like=True, gc=False):
    """What a feed knows of one record.

    `listed` are the record names in the last snapshot, or the ids of the documents published for this record.
    `owner` is the publisher that first used the record's name.
    """

    editions: tuple[Edition, ...] = ()
    listed: tuple[str, ...] = ()
    owner: str = ""


class FeedState(Protocol):
    """What a feed has seen so far, by record. Converters only look records up."""

    def get(self, record: str, /) -> RecordState | None:
        """Return the state of a record, or `None` if the feed has not seen it."""
        ...


class Conversion(Struct, frozen=True, kw_only=True, gc=False):
    """What a piece of a feed contributes: new documents, and the record states to remember.

    `records` counts the records of the piece, `known` those without news, `ties` those that the publisher's order
    does not separate from another.
    """

    documents: Sequence[Statement] = ()
    states: Mapping[str, RecordState] = {}
    records: int = 1
    known: int = 0
    ties: int = 0


class NewEdition(Struct, frozen=True, gc=False):
    """An edition that was not known; `nth` counts earlier editions of the same rank."""

    edition: Edition
    nth: int


EMPTY_STATE = RecordState()


def digest_of(tree: object) -> bytes:
    """Return an 8-byte digest of the content, independent of the order of keys."""
    return blake2b(msgspec.json.encode(tree, order="sorted"), digest_size=8).digest()


def material_digest(tree: object) -> str:
    """Return a digest of what matters to readers of a record, for the attribute `material`."""
    return digest_of(tree).hex()


def next_edition(
    state: RecordState, *, digest: bytes, time: int, rank: int | None = None, base: int = 0
) -> NewEdition | None:
    """Place an edition among those seen; return `None` if it is known.

    With a `rank`, an edition is known if any earlier one has the same rank and content. Without one, only the last
    edition is compared. The time is the publisher's, adjusted to agree with the ranks: never before that of a
    lower rank, never after that of a higher one. The edition's order is `base` plus its number within the rank.
    """
    editions = state.editions
    if rank is None:
        if editions and editions[-1].digest == digest:
            return None
        rank = editions[-1].rank if editions else 0
    elif any(edition.rank == rank and edition.digest == digest for edition in editions):
        return None
    nth = sum(edition.rank == rank for edition in editions)
    time = max([time, *(edition.time for edition in editions if edition.rank <= rank)])
    time = min([time, *(edition.time for edition in editions if edition.rank > rank)])
    return NewEdition(Edition(rank, time, base + nth, digest), nth)


def add_edition(state: RecordState, edition: Edition) -> RecordState:
    """Return the state with one more edition, in the publisher's order."""
    editions = sorted((*state.editions, edition), key=lambda each: each.rank)  # stable: by rank, then by arrival
    return msgspec.structs.replace(state, editions=tuple(editions))
