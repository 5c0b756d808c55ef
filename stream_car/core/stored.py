"""What a shard keeps of documents and scopes, as it is stored.

Promise: values only, stored as arrays: the order of fields is the format, their names are free. This module is never
compiled, for mypyc drops the options of a class.
"""

from collections.abc import Mapping, MutableMapping

from msgspec import Struct, field

from stream_car.core.changes import Cause
from stream_car.core.documents import Precedence

LOWEST: Precedence = (-(1 << 62), -(1 << 62))
SortKey = tuple[int, int, str]  # (time, order, id)
Compared = tuple[str, ...]


class Entry(Struct, frozen=True, array_like=True, gc=False):
    """A document revision as a member of a scope.

    `said` holds the attributes that rules compare there; `elsewhere` counts the other scopes in
    which a rule could void it; `offset` and `append_time` say where and when the input came.
    """

    id: str
    revision: int
    type: str
    time: int
    order: int
    offset: int
    append_time: int
    elsewhere: int = 0
    compared: Compared = ()

    @property
    def precedence(self) -> Precedence:
        """What authority compares."""
        return self.time, self.order


class PageEntry(Struct, array_like=True, gc=False):
    """A page, or a folder of sheets, in the directory: its ends, and what can be known without reading it.

    `visits`: members that could be void elsewhere. `sole`: what all members say, if they all say the same.
    """

    first: SortKey
    last: SortKey
    count: int
    voidable_elsewhere: int
    version: int
    shared_values: Compared | None
    is_folder: bool = False


EMPTY_DIRECTORY: dict[str, list[PageEntry]] = {}  # of every small scope: one dictionary that nobody changes


class Scope(Struct, array_like=True, gc=False):
    """The header of a scope. `seq` counts its changes; `stamp` changes with every placement applied.

    `applied` holds, by turns, an intake shard and the input offset of its last placement applied.
    """

    name: str
    seq: int = 0
    version: int = 0
    applied: tuple[int, ...] = ()
    entries: list[Entry] = []
    directory: dict[str, list[PageEntry]] = field(default_factory=lambda: EMPTY_DIRECTORY)


Page = list[Entry]
Folder = list[PageEntry]
Pages = Mapping[bytes, Page]
EditablePages = MutableMapping[bytes, Page]


class Extras(Struct, frozen=True, array_like=True, gc=False):
    """What most documents have nothing of, kept apart so that they pay nothing for it.

    `said` and `elsewhere` have one item a scope, or none where all are empty; `waiting` is there while
    the document is not due, and `released` is then the input that ended that.
    """

    compared: tuple[Compared, ...] = ()
    elsewhere: tuple[int, ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    amends: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    pending: Cause | None = None
    released: int = 0


NO_EXTRAS = Extras()


class StoredDocument(Struct, frozen=True, array_like=True, gc=False):
    """What an intake shard knows of an id. `scopes` are those that its rules give it, links apart.

    `entry` is the document as a member of a scope that compares nothing. A waiting document is
    placed nowhere.
    """

    entry: Entry
    retracted: bool
    digest: bytes
    scopes: tuple[str, ...] = ()
    optional: Extras | None = None

    @property
    def extras(self) -> Extras:
        """What it has beyond its scopes; mostly nothing."""
        return self.optional if self.optional is not None else NO_EXTRAS

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
        return max(self.entry.offset, self.extras.released)

    @property
    def superseded_by(self) -> tuple[str, ...]:
        """The successors that it names."""
        return self.extras.superseded_by

    @property
    def records(self) -> tuple[str, ...]:
        """The records of which it is an edition."""
        return self.extras.records

    @property
    def pending(self) -> Cause | None:
        """There while it is not due; what its release will give as the cause."""
        return self.extras.pending

    @property
    def is_present(self) -> bool:
        """Whether it is part of the corpus now."""
        return not self.retracted and (self.optional is None or self.optional.pending is None)
