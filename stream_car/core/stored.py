"""What a shard stores of documents and scopes.

Promise: values only, stored as arrays: the order of the fields is the format, their names are free. This module
is never compiled, because mypyc drops the `Struct` options of a class.
"""

from collections.abc import Mapping, MutableMapping

from msgspec import Struct, field

from stream_car.core.changes import Cause
from stream_car.core.documents import Precedence

LOWEST: Precedence = (-(1 << 62), -(1 << 62))  # less than that of any document
SortKey = tuple[int, int, str]  # (time, order, id)
Compared = tuple[str, ...]  # values that rules with `differ_on` compare, as canonical JSON


class Entry(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A document revision as a member of a scope.

    `offset` and `append_time` (microseconds UTC) say where and when the input came. `elsewhere` counts the other
    scopes in which a rule could void it. `compared` has the values that rules compare in this scope.
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
        """What rules compare."""
        return self.time, self.order


class PageEntry(Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """A page, or a folder of pages, in the directory of a scope: its ends, and what is known without reading it.

    `voidable_elsewhere` counts the members that another scope could void. `shared_values` are the compared values if
    all members have the same. `version` is part of the key under which the page is stored.
    """

    first: SortKey
    last: SortKey
    count: int
    voidable_elsewhere: int
    version: int
    shared_values: Compared | None
    is_folder: bool = False


EMPTY_DIRECTORY: dict[str, list[PageEntry]] = {}  # shared by all small scopes; never changed


class Scope(Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """The header of a scope. `seq` counts its changes; `version` grows with every placement and every page written.

    `applied` alternates the intake shards with the input offset of the last placement applied from each. The members
    of a small scope are its `entries`; those of a larger one are in pages, which its `directory` lists by type.
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


class Extras(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What most documents have nothing of, stored apart so that they do not pay for it.

    `compared` and `elsewhere` have one item per scope, or none if all are empty. `pending` is set until the document
    is due. `released` is then the input that made it due.
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


class StoredDocument(Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """What an intake shard knows of an id. `scopes` are those that its rules give it, without link scopes.

    `entry` is the document as a member of a scope that compares nothing. A pending document is in no scope yet.
    """

    entry: Entry
    retracted: bool
    digest: bytes
    scopes: tuple[str, ...] = ()
    optional: Extras | None = None

    @property
    def extras(self) -> Extras:
        """The optional part, empty for most documents."""
        return self.optional if self.optional is not None else NO_EXTRAS

    @property
    def revision(self) -> int:
        """The current revision."""
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
        """The log's offset of the current statement."""
        return self.entry.offset

    @property
    def applied(self) -> int:
        """The offset of the input that changed it last: its statement, or the one that released it."""
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
        """The cause that its release will report, or `None` once it is due."""
        return self.extras.pending

    @property
    def is_present(self) -> bool:
        """Whether it is part of the corpus now: neither retracted nor pending."""
        return not self.retracted and (self.optional is None or self.optional.pending is None)
