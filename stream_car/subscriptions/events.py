"""What a subscription can be asked for, and what it tells: values only.

Promise: the same words for the library and the network. A cursor is `generation:number`, with a number for
each shard that tells changes, apart by dots.
"""

from typing import Literal

from msgspec import Struct

from stream_car.core.changes import Cause, Member
from stream_car.queries.answers import Told

View = Literal["document", "scope"]


class Filter(Struct, frozen=True, kw_only=True):
    """What a subscriber wants to hear of. Empty: everything.

    A document must meet everything that is given: be one of `ids`, of one of `types` and of one of `packs`, with all
    `parts` in one of its scopes.
    """

    view: View = "document"
    ids: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    domains: frozenset[str] = frozenset()
    parts: frozenset[tuple[str, str]] = frozenset()


class SnapshotBegin(Struct, frozen=True, kw_only=True):
    """A snapshot begins: forget what you had."""

    generation: str
    view: View


class SnapshotEnd(Struct, frozen=True, kw_only=True):
    """The snapshot is complete as of `cursor`; what follows are changes."""

    generation: str
    cursor: str


class ActiveDocument(Struct, frozen=True, kw_only=True):
    """A document that is in force, and the scopes that it is in."""

    id: str
    revision: int
    type: str
    time: int
    order: int
    title: str
    source: str
    url: str
    scopes: tuple[str, ...]


class ScopeState(Struct, frozen=True, kw_only=True):
    """The members that a scope does not void. `void` is a document that is void by a link."""

    scope: str
    seq: int
    members: tuple[Member, ...] = ()
    void: str = ""


class DocumentChange(Struct, frozen=True, kw_only=True):
    """What became of a document: whether it is in force as of now, through which scope that changed, and why.

    `selected` says whether it still is what the subscriber asked for: keep it iff active and selected.
    """

    id: str
    active: bool
    selected: bool
    revision: int
    type: str
    time: int
    order: int
    title: str
    source: str
    url: str
    why: str
    rule: str
    scope: str
    cause: Cause
    oseq: int


EventKind = Literal["snapshot-begin", "snapshot", "snapshot-end", "change"]


class Notice(Struct, frozen=True, gc=False):
    """One thing to tell. With a `cursor`, whoever has heard it may go on behind these numbers."""

    event: EventKind
    data: SnapshotBegin | SnapshotEnd | ActiveDocument | ScopeState | DocumentChange | Told
    cursor: tuple[int, ...] | None = None


class Reset(Struct, frozen=True, kw_only=True):
    """The cursor cannot be gone on from; a snapshot of now follows."""

    reason: Literal["cursor_generation", "cursor_expired", "generation"]
    generation: str


class Event(Struct, frozen=True, gc=False):
    """One event of a subscription. Whoever has heard it may go on behind its `cursor`; a heartbeat has no data."""

    event: EventKind | Literal["reset", "heartbeat"]
    data: SnapshotBegin | SnapshotEnd | ActiveDocument | ScopeState | DocumentChange | Told | Reset | None
    cursor: str | None = None
