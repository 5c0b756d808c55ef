"""The members of one scope, sorted by (type, time, order, id), in one list or in pages: how they are read.

Promise: the order of `(time, order)` within a type is the order of authority, so the frontier of a
type is a suffix of it (DESIGN section 2). A small scope is one list in its header; beyond that each
type has pages, and the header only their directory; where a type has very many, the directory itself
lies in folders. A header always points at the pages and folders that it meant, for they are written
under new keys (`pages`). Cost: a binary search in the directory, one in a folder and one in a page.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import cast

from stream_car.core.documents import Precedence
from stream_car.core.stored import LOWEST, EditablePages, Entry, Folder, Page, PageEntry, Pages, Scope, SortKey

FOLDER = b"pf"  # how the key of a folder begins


class MissingPages(LookupError):
    """Pages are not at hand; read `keys` and ask again. Raised before anything is changed."""

    def __init__(self, keys: list[bytes]) -> None:
        super().__init__(f"{len(keys)} pages are not at hand")
        self.keys = keys


class StateContradiction(LookupError):
    """A member is not where the state says it stands: the state is damaged, and can be built anew from the log."""

    def __init__(self, scope: Scope, member: str) -> None:
        super().__init__(f"{member!r} is not a member of {scope.name!r}")


def page_of(scope: Scope, pages: Pages, sheet: PageEntry) -> Page:
    """The members of a sheet. Raises `MissingPages`."""
    key = page_key(scope, sheet)
    page = pages.get(key)
    if page is None:
        raise MissingPages([key])
    return page


def folder_of(scope: Scope, pages: Pages, sheet: PageEntry) -> Folder:
    """The sheets in a folder. Raises `MissingPages`."""
    return cast(Folder, page_of(scope, pages, sheet))


def open_folders(scope: Scope, pages: Pages, sheets: list[PageEntry]) -> list[PageEntry]:
    """What is in these folders of a type; sheets that are none, themselves. Raises `MissingPages` with every folder."""
    if not sheets or not sheets[0].is_folder:
        return sheets
    if len(sheets) == 1:
        return folder_of(scope, pages, sheets[0])
    require_pages(scope, pages, sheets)
    return [sheet for folder in sheets for sheet in folder_of(scope, pages, folder)]


def require_pages(scope: Scope, pages: Pages, sheets: list[PageEntry]) -> None:
    """Raises `MissingPages` with every page or folder of these sheets that is not at hand."""
    lacking = [key for sheet in sheets if (key := page_key(scope, sheet)) not in pages]
    if lacking:
        raise MissingPages(lacking)


def scope_key(scope: str) -> bytes:
    """Where a shard keeps the header of a scope."""
    return b"s:" + scope.encode()


def page_key(scope: Scope, sheet: PageEntry) -> bytes:
    """Where the page or folder of a sheet lies."""
    return b"%b:%d:%b" % (FOLDER if sheet.is_folder else b"p", sheet.version, scope.name.encode())


def sort_key(entry: Entry) -> SortKey:
    """Where a member stands among those of its type."""
    return entry.time, entry.order, entry.id


def full_sort_key(entry: Entry) -> tuple[str, int, int, str]:
    """Where a member stands among all."""
    return entry.type, entry.time, entry.order, entry.id


def _precedence(entry: Entry) -> Precedence:
    return entry.time, entry.order


def _first(sheet: PageEntry) -> SortKey:
    return sheet.first


def _last_precedence(sheet: PageEntry) -> Precedence:
    return sheet.last[:2]


def _first_precedence(sheet: PageEntry) -> Precedence:
    return sheet.first[:2]


def size(scope: Scope) -> int:
    """How many members the scope has."""
    return len(scope.entries) if not scope.directory else sum(sheet.count for sheet in _directory(scope))


def first_time(scope: Scope) -> int | None:
    """The least time of all members; `None` if there are none."""
    firsts = [sheets[0].first[0] for sheets in scope.directory.values() if sheets] or [e.time for e in scope.entries]
    return min(firsts, default=None)


def types(scope: Scope) -> list[str]:
    """The types of its members."""
    return list(scope.directory) if scope.directory else list(dict.fromkeys(entry.type for entry in scope.entries))


def _directory(scope: Scope) -> list[PageEntry]:
    return [sheet for sheets in scope.directory.values() for sheet in sheets]


def page_entries_between(
    scope: Scope, pages: Pages, kind: str, low: Precedence, high: Precedence | None
) -> list[PageEntry]:
    """The sheets of pages that may hold members of a type with `low <= pair < high`. Raises `MissingPages`."""
    sheets = _within(scope.directory.get(kind, []), low, high)
    return _within(open_folders(scope, pages, sheets), low, high) if sheets and sheets[0].is_folder else sheets


def _within(sheets: list[PageEntry], low: Precedence, high: Precedence | None) -> list[PageEntry]:
    start = bisect_left(sheets, low, key=_last_precedence)
    end = bisect_left(sheets, high, start, key=_first_precedence) if high is not None else len(sheets)
    return sheets[start:end]


def members_between(scope: Scope, pages: Pages, kind: str, low: Precedence, high: Precedence | None) -> Iterator[Entry]:
    """Members of a type with `low <= pair < high`, in order; the pages must be at hand."""
    if not scope.directory:
        entries = scope.entries
        at = bisect_left(entries, (kind, *low, ""), key=full_sort_key)
        while at < len(entries) and entries[at].type == kind and (high is None or entries[at].precedence < high):
            yield entries[at]
            at += 1
        return
    for page in [page_of(scope, pages, sheet) for sheet in at_hand(scope, pages, kind, low, high)]:
        start = bisect_left(page, low, key=_precedence)
        end = len(page) if high is None else bisect_left(page, high, key=_precedence)
        yield from page[start:end]


def members_voidable_elsewhere(
    scope: Scope, pages: Pages, kind: str, low: Precedence, high: Precedence | None
) -> Iterator[Entry]:
    """Of `between`, the first member and those that could be void elsewhere; pages without such are not read."""
    if not scope.directory:
        for at, entry in enumerate(members_between(scope, pages, kind, low, high)):
            if not at or entry.elsewhere:
                yield entry
        return
    first = True
    folders = _voidable_elsewhere(_within(scope.directory.get(kind, []), low, high))
    wanted = _voidable_elsewhere(_within(open_folders(scope, pages, folders), low, high))
    require_pages(scope, pages, wanted)
    for sheet in wanted:
        for entry in page_of(scope, pages, sheet):
            if low <= entry.precedence and (high is None or entry.precedence < high):
                if first or entry.elsewhere:
                    yield entry
                first = False


def _voidable_elsewhere(sheets: list[PageEntry]) -> list[PageEntry]:
    return [sheet for at, sheet in enumerate(sheets) if sheet.voidable_elsewhere or not at]


def all_members(scope: Scope, pages: Pages) -> Iterator[Entry]:
    """All members, type by type in order. Raises `MissingPages`."""
    yield from scope.entries
    for sheet in require_all_pages(scope, pages):
        yield from page_of(scope, pages, sheet)


def require_all_pages(scope: Scope, pages: Pages) -> list[PageEntry]:
    """The sheets of all pages. Raises `MissingPages` with all folders, then with all pages, that are not at hand."""
    folders = [sheet for sheet in _directory(scope) if sheet.is_folder]
    require_pages(scope, pages, folders)
    sheets = [sheet for of_type in scope.directory.values() for sheet in open_folders(scope, pages, of_type)]
    require_pages(scope, pages, sheets)
    return sheets


def at_hand(scope: Scope, pages: Pages, kind: str, low: Precedence, high: Precedence | None) -> list[PageEntry]:
    """The pages that may hold such members, all of them present. Raises `MissingPages` with every one that is not."""
    sheets = page_entries_between(scope, pages, kind, low, high)
    require_pages(scope, pages, sheets)
    return sheets


def count_between(scope: Scope, pages: Pages, kind: str, low: Precedence, high: Precedence | None) -> int:
    """How many members of a type have `low <= pair < high`; only the pages at the ends are read."""
    if not scope.directory:
        return sum(1 for _ in members_between(scope, pages, kind, low, high))
    return _count(scope, pages, scope.directory.get(kind, []), low, high)


def _count(scope: Scope, pages: Pages, sheets: list[PageEntry], low: Precedence, high: Precedence | None) -> int:
    total = 0
    for sheet in _within(sheets, low, high):
        if sheet.first[:2] >= low and (high is None or sheet.last[:2] < high):
            total += sheet.count
        elif sheet.is_folder:
            total += _count(scope, pages, folder_of(scope, pages, sheet), low, high)
        else:
            page = page_of(scope, pages, sheet)
            end = len(page) if high is None else bisect_left(page, high, key=_precedence)
            total += end - bisect_left(page, low, key=_precedence)
    return total


def latest_from(
    scope: Scope, pages: Pages, kind: str, low: Precedence, high: Precedence | None, limit: int
) -> Precedence:
    """The pair from which on the last `most` members of a type before `high` stand, and the rest of their page."""
    count = 0
    for sheet in reversed(page_entries_between(scope, pages, kind, low, high)):
        count += sheet.count
        if count >= limit:
            return max(low, sheet.first[:2])
    return low


def greatest(scope: Scope, kind: str) -> Precedence:
    """The greatest pair of a type; `LOWEST` if it has no member."""
    if not scope.directory:
        for entry in reversed(scope.entries):
            if entry.type == kind:
                return entry.time, entry.order
        return LOWEST
    sheets = scope.directory.get(kind)
    return sheets[-1].last[:2] if sheets else LOWEST


def greatest_by_type(scope: Scope) -> dict[str, Precedence]:
    """The greatest pair of every type that has members."""
    if scope.directory:
        return {kind: sheets[-1].last[:2] for kind, sheets in scope.directory.items()}
    return {entry.type: (entry.time, entry.order) for entry in scope.entries}


def least(scope: Scope, kind: str, otherwise: Precedence) -> Precedence:
    """The least pair of a type; `otherwise` if it has no member."""
    if not scope.directory:
        return next((entry.precedence for entry in scope.entries if entry.type == kind), otherwise)
    sheets = scope.directory.get(kind)
    return sheets[0].first[:2] if sheets else otherwise


def greatest_without(scope: Scope, pages: Pages, kind: str, place: SortKey) -> Precedence:
    """The greatest pair of a type when one of its members is left out; that member's page must be at hand."""
    if not scope.directory:
        for entry in reversed(scope.entries):
            if entry.type == kind and entry.id != place[2]:
                return entry.time, entry.order
        return LOWEST
    sheets = scope.directory.get(kind)
    if not sheets:
        return LOWEST
    if sheets[-1].last != place:
        return sheets[-1].last[:2]
    ends = [*sheets[-2:-1], *open_folders(scope, pages, sheets[-1:])]
    if ends[-1].count > 1:
        return page_of(scope, pages, ends[-1])[-2].precedence
    return ends[-2].last[:2] if len(ends) > 1 else LOWEST


def page_entry_at(sheets: list[PageEntry], place: SortKey) -> int:
    """The position of the sheet where a member lies or would be put."""
    return max(0, bisect_right(sheets, place, key=_first) - 1)


def page_entries_near(scope: Scope, pages: Pages, kind: str, place: SortKey, reach: int = 0) -> list[PageEntry]:
    """The page where a member lies or would be put, and its neighbours. Raises `MissingPages` for folders."""
    near = _near(scope.directory.get(kind, []), place, reach)
    return _near(open_folders(scope, pages, near), place, reach) if near and near[0].is_folder else near


def _near(sheets: list[PageEntry], place: SortKey, reach: int) -> list[PageEntry]:
    at = page_entry_at(sheets, place)
    return sheets[max(0, at - reach) : at + reach + 1]


def share(scope: Scope, pages: EditablePages, entry: Entry) -> None:
    """Put an entry in the place of its equal, if that is at hand: what is known twice is kept once."""
    try:
        for page in _pages_near(scope, pages, entry):
            at = bisect_left(page, full_sort_key(entry), key=full_sort_key)
            if at < len(page) and page[at] == entry:
                page[at] = entry
    except MissingPages:
        return


def _pages_near(scope: Scope, pages: Pages, entry: Entry) -> list[Page]:
    if not scope.directory:
        return [scope.entries]
    return [page_of(scope, pages, sheet) for sheet in page_entries_near(scope, pages, entry.type, sort_key(entry))]
