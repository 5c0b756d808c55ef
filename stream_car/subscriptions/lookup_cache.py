"""What was looked up about a change, shared by all subscriptions of one view that emit the change.

Promise: a lookup is made after its change, and lookups are numbered in the order in which they are made. A
subscription that emits only lookups newer than all that it emitted before, and newer than all that it read itself,
ends with the current status of each document. An older lookup is made again.
Cost: memory for the lookups of the latest `CHANGES_MAX` changes.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal

from msgspec import Struct

from stream_car.core.documents import ScopeMap
from stream_car.core.stored import StoredDocument
from stream_car.queries.answers import DocumentStatus
from stream_car.queries.outcomes import Fate
from stream_car.subscriptions.selection import Mention, RecordEdition

CHANGES_MAX = 2000


class LookedUpDocument(Struct, frozen=True, gc=False):
    """A document that a change mentions, and its status when it was looked up; no `document` if it is not present.

    `fate` is what it says of its record, and what became of it by this change.
    """

    mention: Mention
    document: StoredDocument | None
    status: DocumentStatus
    fate: Fate
    title: str = ""
    source: str = ""
    url: str = ""
    scope: tuple[ScopeMap, ...] = ()
    attributes: Mapping[str, object] = {}


Move = Literal["edition", "superseded", "reinstated", "corrected", "retracted"]


class LookedUpRecord(Struct, frozen=True, gc=False):
    """How a change moved a record, from the editions `earlier` to those `later`, and how the record stands now.

    `superseded` means by a document that is no edition of it, and `rules` says by which rule of each of `earlier`;
    `reinstated`, that such a document has gone. `in_force` are its editions that are in force now.
    """

    record: str
    move: Move
    earlier: tuple[RecordEdition, ...]
    later: tuple[RecordEdition, ...]
    rules: Mapping[str, str]
    status: DocumentStatus
    state_now: str
    in_force: tuple[RecordEdition, ...] = ()


class LookedUpChange(Struct, frozen=True, gc=False):
    """The documents or the records of one change, according to the view, and when it took effect."""

    documents: Sequence[LookedUpDocument] = ()
    records: Sequence[LookedUpRecord] = ()
    time: int | None = None


class CachedLookup(Struct, frozen=True, gc=False):
    """What was looked up about one change, and the number of the lookup."""

    number: int
    change: LookedUpChange


class LookupCache:
    """The latest lookups. A subscription holds `lock` while it reads anything that it will emit."""

    def __init__(self, lock: "AbstractAsyncContextManager[object] | None" = None) -> None:
        self.lock: AbstractAsyncContextManager[object] = lock if lock is not None else nullcontext()
        self.number = 0  # of the latest lookup
        self._lookups: dict[tuple[int, int], CachedLookup] = {}

    def get(self, shard: int, oseq: int, after: int) -> CachedLookup | None:
        """The lookup of a change if its number is greater than `after`."""
        lookup = self._lookups.get((shard, oseq))
        return lookup if lookup is not None and lookup.number > after else None

    def put(self, shard: int, oseq: int, change: LookedUpChange) -> CachedLookup:
        """Remember a lookup that was made just now."""
        self.number += 1
        self._lookups.pop((shard, oseq), None)  # so that the latest is the last
        lookup = self._lookups[shard, oseq] = CachedLookup(self.number, change)
        if len(self._lookups) > CHANGES_MAX:
            del self._lookups[next(iter(self._lookups))]
        return lookup
