"""How an id stands, what is said of it, and what that moves. Values only; `intake` decides."""

from typing import Literal

from msgspec import Struct

from stream_car.core.changes import Cause
from stream_car.core.members import Entry, Said


class Placement(Struct, frozen=True, kw_only=True, gc=False):
    """A document joins a scope (`entry`), leaves it (only `old`), or is corrected in it (both).

    `old` says where its former entry stands: type, time, order. `offset` is the input that caused it.
    """

    scope: str
    id: str
    entry: Entry | None
    old: tuple[str, int, int] | None
    cause: Cause
    offset: int
    is_link: bool = False


Verdict = Literal["accepted", "pending", "duplicate", "older", "retracted", "nothing"]


class More(Struct, frozen=True, array_like=True, gc=False):
    """What most documents have nothing of, kept apart so that they pay nothing for it.

    `said` and `elsewhere` have one item a scope, or none where all are empty; `waiting` is there while
    the document is not due, and `released` is then the input that ended that.
    """

    said: tuple[Said, ...] = ()
    elsewhere: tuple[int, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    amends: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    waiting: Cause | None = None
    released: int = 0


NOTHING_MORE = More()


class Held(Struct, frozen=True, array_like=True, gc=False):
    """What an intake shard knows of an id. `scopes` are those that its rules give it, links apart.

    `entry` is the document as a member of a scope that compares nothing. A waiting document is
    placed nowhere.
    """

    entry: Entry
    retracted: bool
    digest: bytes
    scopes: tuple[str, ...] = ()
    more: More | None = None

    @property
    def rest(self) -> More:
        """What it has beyond its scopes; mostly nothing."""
        return self.more if self.more is not None else NOTHING_MORE

    @property
    def revision(self) -> int:
        """The revision that stands."""
        return self.entry.revision

    @property
    def type(self) -> str:
        """The document's type; empty for an id that was only ever retracted."""
        return self.entry.type

    @property
    def time(self) -> int:
        """When it takes effect, microseconds UTC."""
        return self.entry.time

    @property
    def order(self) -> int:
        """The publisher's tie-breaker."""
        return self.entry.order

    @property
    def offset(self) -> int:
        """Where the log has the statement that stands."""
        return self.entry.offset

    @property
    def applied(self) -> int:
        """The input that changed it last: its statement, or what released it."""
        return max(self.entry.offset, self.rest.released)

    @property
    def superseded_by(self) -> tuple[str, ...]:
        """The successors that it names."""
        return self.rest.superseded_by

    @property
    def records(self) -> tuple[str, ...]:
        """The records of which it is an edition."""
        return self.rest.records

    @property
    def waiting(self) -> Cause | None:
        """There while it is not due; what its release will give as the cause."""
        return self.rest.waiting

    @property
    def is_present(self) -> bool:
        """Whether it is part of the corpus now."""
        return not self.retracted and (self.more is None or self.more.waiting is None)


class Input(Struct, frozen=True, gc=False):
    """Where a statement stands in the log, and its content's digest if it is a document."""

    offset: int
    append_time: int
    digest: bytes = b""


class Decision(Struct, frozen=True, gc=False):
    """What becomes of a statement. `held` is what the id is known as from now on, if that changed."""

    verdict: Verdict
    held: Held | None = None
    placements: tuple[Placement, ...] = ()
