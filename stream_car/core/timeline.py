"""The timeline of one scope, its members sorted by (type, time, order, id): how it is read.

Promise: the order of `(time, order)` within a type is the order of authority, so the frontier of a type is
a suffix of it (docs/architecture.md). A small scope is one list in its header. In a larger one each type has
pages, and the header has only their directory; if a type has very many pages, its part of the directory
lies in folders. A header always points at the pages and folders that it was written with, because changed
ones are stored under new keys (`pages`). Cost: a binary search in the directory, one in a folder, one in a page.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import cast

from stream_car.core.documents import Precedence
from stream_car.core.stored import LOWEST, EditablePages, Entry, Folder, Page, PageEntry, Pages, Scope, SortKey

Place = Precedence | SortKey  # a precedence stands before all members that have it
LAST_PLACE: Precedence = (1 << 62, 0)
FOLDER = b"pf"  # how the store key of a folder begins


class MissingPages(LookupError):
    """Pages are not in memory: read `keys` and call again. Raised before anything is changed."""

    def __init__(self, keys: list[bytes]) -> None:
        super().__init__(f"{len(keys)} pages are not in memory")
        self.keys = keys


class StateContradiction(LookupError):
    """A member is not where the state says: the state is damaged and must be rebuilt from the log."""

    def __init__(self, scope: Scope, member: str) -> None:
        super().__init__(f"{member!r} is not a member of {scope.name!r}")


def page_of(scope: Scope, pages: Pages, page_entry: PageEntry) -> Page:
    """Return the members of a page. Raises `MissingPages`."""
    key = page_key(scope, page_entry)
    page = pages.get(key)
    if page is None:
        raise MissingPages([key])
    return page


def folder_of(scope: Scope, pages: Pages, page_entry: PageEntry) -> Folder:
    """Return the page entries in a folder. Raises `MissingPages`."""
    return cast(Folder, page_of(scope, pages, page_entry))


def open_folders(scope: Scope, pages: Pages, page_entries: list[PageEntry]) -> list[PageEntry]:
    """Return the page entries in these folders of a type, or the entries themselves if they are pages.

    Raises `MissingPages` with all missing folders.
    """
    if not page_entries or not page_entries[0].is_folder:
        return page_entries
    if len(page_entries) == 1:
        return folder_of(scope, pages, page_entries[0])
    require_pages(scope, pages, page_entries)
    return [page_entry for folder in page_entries for page_entry in folder_of(scope, pages, folder)]


def require_pages(scope: Scope, pages: Pages, page_entries: list[PageEntry]) -> None:
    """Raise `MissingPages` with all of these pages or folders that are not in memory, if there are any."""
    missing = [key for page_entry in page_entries if (key := page_key(scope, page_entry)) not in pages]
    if missing:
        raise MissingPages(missing)


def scope_key(scope: str) -> bytes:
    """Return the key under which a shard stores the header of a scope."""
    return b"s:" + scope.encode()


def page_key(scope: Scope, page_entry: PageEntry) -> bytes:
    """Return the key under which a shard stores a page or folder."""
    return b"%b:%d:%b" % (FOLDER if page_entry.is_folder else b"p", page_entry.version, scope.name.encode())


def sort_key(entry: Entry) -> SortKey:
    """Return what sorts a member among those of its type."""
    return entry.time, entry.order, entry.id


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Return members of any types from the earliest to the latest, equal ones by id."""
    return sorted(entries, key=sort_key)


def latest_edition(entries: Iterable[Entry]) -> list[Entry]:
    """Return the members with the greatest precedence, by id: the latest edition may be several documents."""
    ordered = in_order(entries)
    return [entry for entry in ordered if entry.precedence == ordered[-1].precedence]


def full_sort_key(entry: Entry) -> tuple[str, int, int, str]:
    """Return what sorts a member among all members of its scope."""
    return entry.type, entry.time, entry.order, entry.id


def _precedence(entry: Entry) -> Precedence:
    return entry.time, entry.order


def _first(page_entry: PageEntry) -> SortKey:
    return page_entry.first


def _last(page_entry: PageEntry) -> SortKey:
    return page_entry.last


def _last_precedence(page_entry: PageEntry) -> Precedence:
    return page_entry.last[:2]


def _first_precedence(page_entry: PageEntry) -> Precedence:
    return page_entry.first[:2]


def size(scope: Scope) -> int:
    """Return the number of members."""
    return len(scope.entries) if not scope.directory else sum(entry.count for entry in _directory(scope))


def first_time(scope: Scope) -> int | None:
    """Return the least time of all members, in microseconds; `None` if there are none."""
    of_types = [page_entries[0].first[0] for page_entries in scope.directory.values() if page_entries]
    return min(of_types or [entry.time for entry in scope.entries], default=None)


def types(scope: Scope) -> list[str]:
    """Return the types of the members."""
    return list(scope.directory) if scope.directory else list(dict.fromkeys(entry.type for entry in scope.entries))


def _directory(scope: Scope) -> list[PageEntry]:
    return [page_entry for page_entries in scope.directory.values() for page_entry in page_entries]


def page_entries_between(
    scope: Scope, pages: Pages, type_name: str, low: Precedence, high: Precedence | None
) -> list[PageEntry]:
    """Return the pages that may contain members of a type with `low <= precedence < high`.

    Raises `MissingPages` with all missing folders.
    """
    page_entries = _within(scope.directory.get(type_name, []), low, high)
    if not page_entries or not page_entries[0].is_folder:
        return page_entries
    return _within(open_folders(scope, pages, page_entries), low, high)


def _within(page_entries: list[PageEntry], low: Precedence, high: Precedence | None) -> list[PageEntry]:
    start = bisect_left(page_entries, low, key=_last_precedence)
    end = bisect_left(page_entries, high, start, key=_first_precedence) if high is not None else len(page_entries)
    return page_entries[start:end]


def members_between(
    scope: Scope, pages: Pages, type_name: str, low: Precedence, high: Precedence | None
) -> Iterator[Entry]:
    """Yield the members of a type with `low <= precedence < high`, in order. Raises `MissingPages` before the first."""
    if not scope.directory:
        entries = scope.entries
        index = bisect_left(entries, (type_name, *low, ""), key=full_sort_key)
        while (
            index < len(entries)
            and entries[index].type == type_name
            and (high is None or entries[index].precedence < high)
        ):
            yield entries[index]
            index += 1
        return
    page_entries = page_entries_between(scope, pages, type_name, low, high)
    require_pages(scope, pages, page_entries)
    for page in [page_of(scope, pages, page_entry) for page_entry in page_entries]:
        start = bisect_left(page, low, key=_precedence)
        end = len(page) if high is None else bisect_left(page, high, key=_precedence)
        yield from page[start:end]


def members_after(scope: Scope, pages: Pages, type_name: str, place: Place, limit: int) -> list[Entry]:
    """Return the first `limit` members of a type after a place, in order; reads no more pages than these need.

    Raises `MissingPages`.
    """
    if not scope.directory:
        return [entry for entry in scope.entries if entry.type == type_name and sort_key(entry) > place][:limit]

    def needed(page_entries: list[PageEntry]) -> list[PageEntry]:
        start = bisect_right(page_entries, place, key=_last)
        return _first_with(islice(page_entries, start, None), limit)

    page_entries = needed(open_folders(scope, pages, needed(scope.directory.get(type_name, []))))
    require_pages(scope, pages, page_entries)
    members: list[Entry] = []
    for page in [page_of(scope, pages, page_entry) for page_entry in page_entries]:
        start = bisect_right(page, place, key=sort_key)
        members += page[start : start + limit - len(members)]
    return members


def members_before(scope: Scope, pages: Pages, type_name: str, place: Place, limit: int) -> list[Entry]:
    """Return the last `limit` members of a type before a place, the last one first; else as `members_after`."""
    if not scope.directory:
        entries = [entry for entry in scope.entries if entry.type == type_name and sort_key(entry) < place]
        return entries[: -limit - 1 : -1]

    def needed(page_entries: list[PageEntry]) -> list[PageEntry]:
        end = bisect_left(page_entries, place, key=_first)
        return _first_with((page_entries[at] for at in range(end - 1, -1, -1)), limit)[::-1]

    page_entries = needed(open_folders(scope, pages, needed(scope.directory.get(type_name, []))))
    require_pages(scope, pages, page_entries)
    members: list[Entry] = []
    for page in [page_of(scope, pages, page_entry) for page_entry in reversed(page_entries)]:
        end = bisect_left(page, place, key=sort_key)
        members += page[max(0, end - limit + len(members)) : end][::-1]
    return members


def _first_with(page_entries: Iterable[PageEntry], limit: int) -> list[PageEntry]:
    """Return the first of these entries, and as many after it as together have `limit` members."""
    chosen: list[PageEntry] = []
    count = 0
    for page_entry in page_entries:
        chosen.append(page_entry)
        count += page_entry.count if len(chosen) > 1 else 0  # of the first one, perhaps only some members count
        if count >= limit:
            break
    return chosen


def members_voidable_elsewhere(
    scope: Scope, pages: Pages, type_name: str, low: Precedence, high: Precedence | None
) -> Iterator[Entry]:
    """Yield, of `members_between`, the first and those that another scope could void.

    Pages without such members are not read. Raises `MissingPages` before the first.
    """
    if not scope.directory:
        for index, entry in enumerate(members_between(scope, pages, type_name, low, high)):
            if not index or entry.elsewhere:
                yield entry
        return
    is_first = True
    folders = _voidable_elsewhere(_within(scope.directory.get(type_name, []), low, high))
    wanted = _voidable_elsewhere(_within(open_folders(scope, pages, folders), low, high))
    require_pages(scope, pages, wanted)
    for page_entry in wanted:
        for entry in page_of(scope, pages, page_entry):
            if low <= entry.precedence and (high is None or entry.precedence < high):
                if is_first or entry.elsewhere:
                    yield entry
                is_first = False


def _voidable_elsewhere(page_entries: list[PageEntry]) -> list[PageEntry]:
    """Return the first entry, and those with a member that another scope could void."""
    return [entry for index, entry in enumerate(page_entries) if entry.voidable_elsewhere or not index]


def all_members(scope: Scope, pages: Pages) -> Iterator[Entry]:
    """Yield all members, type by type in order. Raises `MissingPages`."""
    yield from scope.entries
    for page_entry in require_all_pages(scope, pages):
        yield from page_of(scope, pages, page_entry)


def require_all_pages(scope: Scope, pages: Pages) -> list[PageEntry]:
    """Return the entries of all pages. Raises `MissingPages` with all missing folders, then with all missing pages."""
    folders = [page_entry for page_entry in _directory(scope) if page_entry.is_folder]
    require_pages(scope, pages, folders)
    page_entries = [entry for of_type in scope.directory.values() for entry in open_folders(scope, pages, of_type)]
    require_pages(scope, pages, page_entries)
    return page_entries


def count_between(scope: Scope, pages: Pages, type_name: str, low: Precedence, high: Precedence | None) -> int:
    """Return the number of members of a type with `low <= precedence < high`; reads only the pages at the ends."""
    if not scope.directory:
        return sum(1 for _ in members_between(scope, pages, type_name, low, high))
    return _count(scope, pages, scope.directory.get(type_name, []), low, high)


def _count(scope: Scope, pages: Pages, page_entries: list[PageEntry], low: Precedence, high: Precedence | None) -> int:
    total = 0
    for page_entry in _within(page_entries, low, high):
        if page_entry.first[:2] >= low and (high is None or page_entry.last[:2] < high):
            total += page_entry.count
        elif page_entry.is_folder:
            total += _count(scope, pages, folder_of(scope, pages, page_entry), low, high)
        else:
            page = page_of(scope, pages, page_entry)
            end = len(page) if high is None else bisect_left(page, high, key=_precedence)
            total += end - bisect_left(page, low, key=_precedence)
    return total


def latest_from(
    scope: Scope, pages: Pages, type_name: str, low: Precedence, high: Precedence | None, limit: int
) -> Precedence:
    """Return the precedence from which on the last `limit` members of a type before `high` lie.

    It is that of a page's first member, so there may be more than `limit`; it is `low` if there are fewer.
    """
    count = 0
    for page_entry in reversed(page_entries_between(scope, pages, type_name, low, high)):
        count += page_entry.count
        if count >= limit:
            return max(low, page_entry.first[:2])
    return low


def greatest(scope: Scope, type_name: str) -> Precedence:
    """Return the greatest precedence of a type; `LOWEST` if it has no member."""
    if not scope.directory:
        for entry in reversed(scope.entries):
            if entry.type == type_name:
                return entry.time, entry.order
        return LOWEST
    page_entries = scope.directory.get(type_name)
    return page_entries[-1].last[:2] if page_entries else LOWEST


def greatest_by_type(scope: Scope) -> dict[str, Precedence]:
    """Return the greatest precedence of every type that has members."""
    if scope.directory:
        return {type_name: page_entries[-1].last[:2] for type_name, page_entries in scope.directory.items()}
    return {entry.type: (entry.time, entry.order) for entry in scope.entries}


def least(scope: Scope, type_name: str, otherwise: Precedence) -> Precedence:
    """Return the least precedence of a type; `otherwise` if it has no member."""
    if not scope.directory:
        return next((entry.precedence for entry in scope.entries if entry.type == type_name), otherwise)
    page_entries = scope.directory.get(type_name)
    return page_entries[0].first[:2] if page_entries else otherwise


def greatest_without(scope: Scope, pages: Pages, type_name: str, member: SortKey) -> Precedence:
    """Return the greatest precedence of a type without one of its members; that member's page must be in memory."""
    if not scope.directory:
        for entry in reversed(scope.entries):
            if entry.type == type_name and entry.id != member[2]:
                return entry.time, entry.order
        return LOWEST
    page_entries = scope.directory.get(type_name)
    if not page_entries:
        return LOWEST
    if page_entries[-1].last != member:
        return page_entries[-1].last[:2]
    ends = [*page_entries[-2:-1], *open_folders(scope, pages, page_entries[-1:])]
    if ends[-1].count > 1:
        return page_of(scope, pages, ends[-1])[-2].precedence
    return ends[-2].last[:2] if len(ends) > 1 else LOWEST


def page_entry_at(page_entries: list[PageEntry], member: SortKey) -> int:
    """Return the index of the page or folder that contains a member or would receive it."""
    return max(0, bisect_right(page_entries, member, key=_first) - 1)


def page_entries_near(scope: Scope, pages: Pages, type_name: str, member: SortKey, reach: int = 0) -> list[PageEntry]:
    """Return the page that contains a member or would receive it, and `reach` neighbours on each side.

    Raises `MissingPages` with all missing folders.
    """
    near = _near(scope.directory.get(type_name, []), member, reach)
    return _near(open_folders(scope, pages, near), member, reach) if near and near[0].is_folder else near


def _near(page_entries: list[PageEntry], member: SortKey, reach: int) -> list[PageEntry]:
    index = page_entry_at(page_entries, member)
    return page_entries[max(0, index - reach) : index + reach + 1]


def share_entry(scope: Scope, pages: EditablePages, entry: Entry) -> None:
    """Replace the equal entry of the scope by this object, if it is in memory, so that only one copy remains."""
    try:
        for page in _pages_near(scope, pages, entry):
            index = bisect_left(page, full_sort_key(entry), key=full_sort_key)
            if index < len(page) and page[index] == entry:
                page[index] = entry
    except MissingPages:
        return


def _pages_near(scope: Scope, pages: Pages, entry: Entry) -> list[Page]:
    if not scope.directory:
        return [scope.entries]
    near = page_entries_near(scope, pages, entry.type, sort_key(entry))
    return [page_of(scope, pages, page_entry) for page_entry in near]
