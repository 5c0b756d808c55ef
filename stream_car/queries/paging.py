"""Where a listing continues, and how much one page of it holds.

Promise: a listing that is cut short says where to go on, and what follows is found without reading what came before.
A page is bounded by its members, the scopes that these are in, and the bytes of their texts, but has at least one.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car.core.stored import SortKey
from stream_car.errors import InvalidRequest
from stream_car.queries.answers import Frontier, History

SCOPES_PER_MEMBER = 50  # that a page reads for each member that was requested, on average
BYTES_PER_MEMBER = 4 << 10

BATCH = 64  # members whose texts are read together

Listed = TypeVar("Listed", Frontier, History)
T = TypeVar("T")


class ScopePosition(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A member of a scope after which a listing continues; without a member, the end of the scope."""

    scope: str = ""
    member: SortKey | None = None

    def __str__(self) -> str:
        return urlsafe_b64encode(msgspec.msgpack.encode(self)).decode().rstrip("=")

    def within(self, scope: str) -> SortKey | None:
        """Return the member of this scope after which the listing continues; `None` for its beginning."""
        return self.member if scope == self.scope else None

    @classmethod
    def parse(cls, text: str) -> "ScopePosition":
        """Read a position; an empty text is the beginning. Raises `InvalidRequest` (`after`)."""
        if not text:
            return cls()
        try:
            position = msgspec.msgpack.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=cls)
            if str(position) == text:
                return position
        except (ValueError, msgspec.DecodeError):
            pass
        raise InvalidRequest("after", "`after` must be where an earlier page of this listing ended. Omit it to begin.")


class PageRoom(Struct):
    """What a page has room for."""

    members: int
    scopes: int
    size: int

    @classmethod
    def of(cls, limit: int) -> "PageRoom":
        """Return the room of a page of `limit` members."""
        return cls(limit, limit * SCOPES_PER_MEMBER, limit * BYTES_PER_MEMBER)

    @property
    def is_full(self) -> bool:
        """Whether nothing more fits."""
        return self.members <= 0 or self.scopes <= 0 or self.size <= 0

    def take(self, *, members: int = 1, scopes: int = 0, size: int = 0) -> None:
        """Use some of the room."""
        self.members -= members
        self.scopes -= scopes
        self.size -= size


def joined(listed: tuple[Listed, ...]) -> tuple[Listed, ...]:
    """Return the items of several pages as one: the parts of a scope are one item, and only the last has a `next`."""
    items: list[Listed] = []
    for item in listed:
        if items and items[-1].scope == item.scope:
            items[-1] = _join(items[-1], item)
        else:
            items[-1:] = [replace(last, next="") for last in items[-1:]]
            items.append(item)
    return tuple(item for item in items if item.members or item.next)  # a page may end with an empty scope


def _join(first: Listed, other: Listed) -> Listed:
    if isinstance(other, Frontier):
        assert isinstance(first, Frontier)
        return replace(other, in_force=first.in_force + other.in_force, blocked=first.blocked + other.blocked)
    assert isinstance(first, History)
    return replace(other, members=first.members + other.members)


async def page_of_scopes(
    names: Sequence[str],
    room: PageRoom,
    read: Callable[[str], Awaitable[Listed]],
    start: ScopePosition,
    *,
    has_more: bool,
) -> tuple[Listed, ...]:
    """Read scopes one after the other until the room is full. Scopes without members are left out.

    The rest of the scope in which the page starts is always an item, for it tells whether the scope is complete. With
    `has_more`, other scopes follow the last one of these.
    """
    items: list[Listed] = []
    for name in names:
        before = room.members
        item = await read(name)
        if room.members == before:
            room.take()  # an empty scope takes time, too
        if item.complete and (has_more if name == names[-1] else room.is_full):
            item = replace(item, next=str(ScopePosition(name)))
        if item.members or item.next or start.within(name) is not None:
            items.append(item)
        if item.next:
            break
    return tuple(items)


def batches(items: Sequence[T], size: int = BATCH) -> Iterator[Sequence[T]]:
    """Yield the items in batches."""
    return (items[start : start + size] for start in range(0, len(items), size))
