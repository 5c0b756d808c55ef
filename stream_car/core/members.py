"""What a scope is made of: members, the directory of their pages, and the header. Values only."""

from collections.abc import Mapping, MutableMapping

from msgspec import Struct, field

from stream_car.core.documents import Pair

LOWEST: Pair = (-(1 << 62), -(1 << 62))
Place = tuple[int, int, str]  # (time, order, id)
Said = tuple[str, ...]


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
    said: Said = ()

    @property
    def pair(self) -> Pair:
        """What authority compares."""
        return self.time, self.order


class Sheet(Struct, array_like=True, gc=False):
    """A page, or a folder of sheets, in the directory: its ends, and what can be known without reading it.

    `visits`: members that could be void elsewhere. `sole`: what all members say, if they all say the same.
    """

    first: Place
    last: Place
    count: int
    visits: int
    stamp: int
    sole: Said | None
    is_folder: bool = False


NO_SHEETS: dict[str, list[Sheet]] = {}  # of every small scope: one dictionary that nobody changes


class Scope(Struct, array_like=True, gc=False):
    """The header of a scope. `seq` counts its changes; `stamp` changes with every placement applied.

    `applied` holds, by turns, an intake shard and the input offset of its last placement applied.
    """

    name: str
    seq: int = 0
    stamp: int = 0
    applied: tuple[int, ...] = ()
    entries: list[Entry] = []
    sheets: dict[str, list[Sheet]] = field(default_factory=lambda: NO_SHEETS)


Page = list[Entry]
Folder = list[Sheet]
Pages = Mapping[bytes, Page]
EditablePages = MutableMapping[bytes, Page]
