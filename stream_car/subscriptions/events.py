"""The events of a subscription: values only.

Promise: the same types for the library and the network. An event's `cursor`, where it has one, continues the stream
after it; see `cursor.Cursor`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, NamedTuple

from msgspec import Struct

from stream_car.queries.answers import Change, ChangeCause, ChangedMember, DocumentStatus, JsonValue

View = Literal["record", "document", "scope"]


class Selection(Struct, frozen=True, kw_only=True):
    """What a subscriber wants to receive; empty means everything.

    A document must meet all that is given: be one of `ids`, of one of `types`, of a type of one of the rule packs
    `rules`, and have in one of its scopes every key of `scope` with one of the values given for it. With `attributes`,
    these are sent too.

    Of its changes, with `only` those with one of these outcomes are sent, with `material` those that are not merely
    revisions, and with `since` (microseconds) those that took effect then or later.
    """

    view: View = "document"
    ids: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    rules: frozenset[str] = frozenset()
    scope: frozenset[tuple[str, str]] = frozenset()
    only: frozenset[str] = frozenset()
    material: bool = False
    since: int | None = None
    attributes: bool = False


class _Event(Struct, frozen=True, kw_only=True, tag_field="event", tag=True):
    """What every event has. With a `cursor`, a stream can be continued after it."""

    cursor: str | None = None


class SnapshotBegin(_Event, frozen=True, kw_only=True, tag="snapshot-begin"):
    """A snapshot begins: forget what you had."""

    generation: str
    view: View


class SnapshotDocument(_Event, frozen=True, kw_only=True, tag="snapshot-document"):
    """A document that is in force, and the scopes that it is in; if it has an `outcome`, its record has ended.

    `scope` is as it was published, and so are the `attributes`, which are given only if the subscription includes them.
    """

    id: str
    revision: int
    type: str
    time: datetime
    order: int
    title: str
    source: str
    url: str
    scopes: tuple[str, ...]
    scope: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    attributes: Mapping[str, JsonValue] = {}
    state: str = ""
    state_text: str = ""
    state_since: datetime | None = None
    outcome: str = ""
    outcome_text: str = ""


class SnapshotScope(_Event, frozen=True, kw_only=True, tag="snapshot-scope"):
    """The members that are in force in a scope. `superseded` is a document that a link supersedes.

    `pairs` are the keys and values of the scope. A scope of very many members comes in several events. Those that are
    `continued` have further members as of their own `seq`; changes of the scope may come between them.
    """

    scope: str
    seq: int
    continued: bool = False
    members: tuple[ChangedMember, ...] = ()
    superseded: str = ""
    pairs: Mapping[str, str] = {}


class SnapshotEnd(_Event, frozen=True, kw_only=True, tag="snapshot-end"):
    """The snapshot is complete; changes follow."""

    generation: str


class DocumentChange(_Event, frozen=True, kw_only=True, tag="document-change"):
    """The status of a document now, through which scope it changed, and why.

    `selected` tells whether it still matches the subscription: keep it if it is in force and selected. `position` is
    that of the change among all changes. `pairs` are those of `scope`; `document_scope` and the `attributes` are as in
    `SnapshotDocument`. `state` is what the document says of its record, and `outcome` what became of it by this change.
    A document in force with an outcome says that its record has ended.
    """

    id: str
    status: DocumentStatus
    selected: bool
    revision: int
    type: str
    time: datetime | None
    order: int
    title: str
    source: str
    url: str
    why: str
    rule: str
    scope: str
    cause: ChangeCause
    position: str
    pairs: Mapping[str, str] = {}
    document_scope: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    attributes: Mapping[str, JsonValue] = {}
    state: str = ""
    state_text: str = ""
    state_since: datetime | None = None
    outcome: str = ""
    outcome_text: str = ""

    @property
    def in_force(self) -> bool:
        """Whether the document is in force now."""
        return self.status == "in_force"


class RecordDocument(Struct, frozen=True, kw_only=True):
    """The document to read about a record. `scope` and `attributes` are as in `SnapshotDocument`."""

    id: str
    revision: int
    type: str
    time: datetime
    order: int
    title: str = ""
    source: str = ""
    url: str = ""
    scope: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    attributes: Mapping[str, JsonValue] = {}


class SnapshotRecord(_Event, frozen=True, kw_only=True, tag="snapshot-record"):
    """A record of which an edition is in force: its `status` and `state`, and the document that says so.

    `names` are the values of the keys by which people ask for it, such as `package`.
    """

    record: str
    status: DocumentStatus
    names: Mapping[str, tuple[str, ...]]
    document: RecordDocument
    state: str = ""
    state_text: str = ""
    state_since: datetime | None = None
    outcome: str = ""
    outcome_text: str = ""


class RecordChange(_Event, frozen=True, kw_only=True, tag="record-change"):
    """How a record changed, because of which document, and how it stands now.

    `state_before` and `state` are what its editions said before and after the change, and `outcome` is what became of
    it: that of the rule, or `published` for a record that is new to this subscription, or `corrected`, `retracted` or
    `reinstated`. `status` and `state_now` may be later than the change; the last event about a record has them right.
    `document` is the one to read, and `earlier` the id of the one before it. `names` are the values of the keys by
    which people ask for the record, such as `package`. A repeated event has the same `event_id`.
    """

    event_id: str
    record: str
    status: DocumentStatus
    state_before: str
    state: str
    state_now: str
    outcome: str
    outcome_text: str
    names: Mapping[str, tuple[str, ...]]
    document: RecordDocument
    cause: ChangeCause
    position: str
    earlier: str = ""
    state_text: str = ""
    state_since: datetime | None = None


class ScopeChange(_Event, frozen=True, kw_only=True, tag="scope-change"):
    """A change of a scope's frontier."""

    change: Change


class Reset(_Event, frozen=True, kw_only=True, tag="reset"):
    """The stream cannot be continued from the cursor; a snapshot of now follows.

    `cursor_generation`: the cursor belongs to other rules; `cursor_log`: to another log, or to records that a restored
    backup does not have; `cursor_expired`: the changes after it are not kept any more. `generation`: the rules have
    just changed.
    """

    reason: Literal["cursor_generation", "cursor_log", "cursor_expired", "generation"]
    generation: str


class Heartbeat(_Event, frozen=True, kw_only=True, tag="heartbeat"):
    """Nothing happened for a while."""


Event = (
    SnapshotBegin
    | SnapshotRecord
    | SnapshotDocument
    | SnapshotScope
    | SnapshotEnd
    | RecordChange
    | DocumentChange
    | ScopeChange
    | Reset
    | Heartbeat
)


class Notice(NamedTuple):
    """An event to emit. With a `cursor`, as one number per shard, a stream can be continued after it.

    `offset` is that of the input that caused it, if one did.
    """

    event: Event
    cursor: tuple[int, ...] | None = None
    offset: int | None = None
