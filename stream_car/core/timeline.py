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

from stream_car.core.documents import Pair
from stream_car.core.stored import LOWEST, EditablePages, Entry, Folder, Page, Pages, Place, Scope, Sheet

FOLDER = b"pf"  # how the key of a folder begins


class Absent(LookupError):
    """Pages are not at hand; read `keys` and ask again. Raised before anything is changed."""

    def __init__(self, keys: list[bytes]) -> None:
        super().__init__(f"{len(keys)} pages are not at hand")
        self.keys = keys


class Contradicted(LookupError):
    """A member is not where the state says it stands: the state is damaged, and can be built anew from the log."""

    def __init__(self, scope: Scope, member: str) -> None:
        super().__init__(f"{member!r} is not a member of {scope.name!r}")


def page_of(scope: Scope, pages: Pages, sheet: Sheet) -> Page:
    """The members of a sheet. Raises `Absent`."""
    key = key_of(scope, sheet)
    page = pages.get(key)
    if page is None:
        raise Absent([key])
    return page


def folder_of(scope: Scope, pages: Pages, sheet: Sheet) -> Folder:
    """The sheets in a folder. Raises `Absent`."""
    return cast(Folder, page_of(scope, pages, sheet))


def opened(scope: Scope, pages: Pages, sheets: list[Sheet]) -> list[Sheet]:
    """What is in these folders of a type; sheets that are none, themselves. Raises `Absent` with every folder."""
    if not sheets or not sheets[0].is_folder:
        return sheets
    if len(sheets) == 1:
        return folder_of(scope, pages, sheets[0])
    require(scope, pages, sheets)
    return [sheet for folder in sheets for sheet in folder_of(scope, pages, folder)]


def require(scope: Scope, pages: Pages, sheets: list[Sheet]) -> None:
    """Raises `Absent` with every page or folder of these sheets that is not at hand."""
    lacking = [key for sheet in sheets if (key := key_of(scope, sheet)) not in pages]
    if lacking:
        raise Absent(lacking)


def scope_key(scope: str) -> bytes:
    """Where a shard keeps the header of a scope."""
    return b"s:" + scope.encode()


def key_of(scope: Scope, sheet: Sheet) -> bytes:
    """Where the page or folder of a sheet lies."""
    return b"%b:%d:%b" % (FOLDER if sheet.is_folder else b"p", sheet.stamp, scope.name.encode())


def place_of(entry: Entry) -> Place:
    """Where a member stands among those of its type."""
    return entry.time, entry.order, entry.id


def full_place_of(entry: Entry) -> tuple[str, int, int, str]:
    """Where a member stands among all."""
    return entry.type, entry.time, entry.order, entry.id


def _pair(entry: Entry) -> Pair:
    return entry.time, entry.order


def _first(sheet: Sheet) -> Place:
    return sheet.first


def _last_pair(sheet: Sheet) -> Pair:
    return sheet.last[:2]


def _first_pair(sheet: Sheet) -> Pair:
    return sheet.first[:2]


def size(scope: Scope) -> int:
    """How many members the scope has."""
    return len(scope.entries) if not scope.sheets else sum(sheet.count for sheet in _directory(scope))


def first_time(scope: Scope) -> int | None:
    """The least time of all members; `None` if there are none."""
    firsts = [sheets[0].first[0] for sheets in scope.sheets.values() if sheets] or [e.time for e in scope.entries]
    return min(firsts, default=None)


def types(scope: Scope) -> list[str]:
    """The types of its members."""
    return list(scope.sheets) if scope.sheets else list(dict.fromkeys(entry.type for entry in scope.entries))


def _directory(scope: Scope) -> list[Sheet]:
    return [sheet for sheets in scope.sheets.values() for sheet in sheets]


def sheets_between(scope: Scope, pages: Pages, kind: str, low: Pair, high: Pair | None) -> list[Sheet]:
    """The sheets of pages that may hold members of a type with `low <= pair < high`. Raises `Absent`."""
    sheets = _within(scope.sheets.get(kind, []), low, high)
    return _within(opened(scope, pages, sheets), low, high) if sheets and sheets[0].is_folder else sheets


def _within(sheets: list[Sheet], low: Pair, high: Pair | None) -> list[Sheet]:
    start = bisect_left(sheets, low, key=_last_pair)
    end = bisect_left(sheets, high, start, key=_first_pair) if high is not None else len(sheets)
    return sheets[start:end]


def between(scope: Scope, pages: Pages, kind: str, low: Pair, high: Pair | None) -> Iterator[Entry]:
    """Members of a type with `low <= pair < high`, in order; the pages must be at hand."""
    if not scope.sheets:
        entries = scope.entries
        at = bisect_left(entries, (kind, *low, ""), key=full_place_of)
        while at < len(entries) and entries[at].type == kind and (high is None or entries[at].pair < high):
            yield entries[at]
            at += 1
        return
    for page in [page_of(scope, pages, sheet) for sheet in at_hand(scope, pages, kind, low, high)]:
        start = bisect_left(page, low, key=_pair)
        end = len(page) if high is None else bisect_left(page, high, key=_pair)
        yield from page[start:end]


def visited(scope: Scope, pages: Pages, kind: str, low: Pair, high: Pair | None) -> Iterator[Entry]:
    """Of `between`, the first member and those that could be void elsewhere; pages without such are not read."""
    if not scope.sheets:
        for at, entry in enumerate(between(scope, pages, kind, low, high)):
            if not at or entry.elsewhere:
                yield entry
        return
    first = True
    folders = _visited(_within(scope.sheets.get(kind, []), low, high))
    wanted = _visited(_within(opened(scope, pages, folders), low, high))
    require(scope, pages, wanted)
    for sheet in wanted:
        for entry in page_of(scope, pages, sheet):
            if low <= entry.pair and (high is None or entry.pair < high):
                if first or entry.elsewhere:
                    yield entry
                first = False


def _visited(sheets: list[Sheet]) -> list[Sheet]:
    return [sheet for at, sheet in enumerate(sheets) if sheet.visits or not at]


def everyone(scope: Scope, pages: Pages) -> Iterator[Entry]:
    """All members, type by type in order. Raises `Absent`."""
    yield from scope.entries
    for sheet in require_everyone(scope, pages):
        yield from page_of(scope, pages, sheet)


def require_everyone(scope: Scope, pages: Pages) -> list[Sheet]:
    """The sheets of all pages. Raises `Absent` with all folders, then with all pages, that are not at hand."""
    folders = [sheet for sheet in _directory(scope) if sheet.is_folder]
    require(scope, pages, folders)
    sheets = [sheet for of_type in scope.sheets.values() for sheet in opened(scope, pages, of_type)]
    require(scope, pages, sheets)
    return sheets


def at_hand(scope: Scope, pages: Pages, kind: str, low: Pair, high: Pair | None) -> list[Sheet]:
    """The sheets that may hold such members, all their pages present. Raises `Absent` with every one that is not."""
    sheets = sheets_between(scope, pages, kind, low, high)
    require(scope, pages, sheets)
    return sheets


def count_between(scope: Scope, pages: Pages, kind: str, low: Pair, high: Pair | None) -> int:
    """How many members of a type have `low <= pair < high`; only the pages at the ends are read."""
    if not scope.sheets:
        return sum(1 for _ in between(scope, pages, kind, low, high))
    return _count(scope, pages, scope.sheets.get(kind, []), low, high)


def _count(scope: Scope, pages: Pages, sheets: list[Sheet], low: Pair, high: Pair | None) -> int:
    total = 0
    for sheet in _within(sheets, low, high):
        if sheet.first[:2] >= low and (high is None or sheet.last[:2] < high):
            total += sheet.count
        elif sheet.is_folder:
            total += _count(scope, pages, folder_of(scope, pages, sheet), low, high)
        else:
            page = page_of(scope, pages, sheet)
            end = len(page) if high is None else bisect_left(page, high, key=_pair)
            total += end - bisect_left(page, low, key=_pair)
    return total


def latest_from(scope: Scope, pages: Pages, kind: str, low: Pair, high: Pair | None, most: int) -> Pair:
    """The pair from which on the last `most` members of a type before `high` stand, and the rest of their page."""
    count = 0
    for sheet in reversed(sheets_between(scope, pages, kind, low, high)):
        count += sheet.count
        if count >= most:
            return max(low, sheet.first[:2])
    return low


def greatest(scope: Scope, kind: str) -> Pair:
    """The greatest pair of a type; `LOWEST` if it has no member."""
    if not scope.sheets:
        for entry in reversed(scope.entries):
            if entry.type == kind:
                return entry.time, entry.order
        return LOWEST
    sheets = scope.sheets.get(kind)
    return sheets[-1].last[:2] if sheets else LOWEST


def greatest_by_type(scope: Scope) -> dict[str, Pair]:
    """The greatest pair of every type that has members."""
    if scope.sheets:
        return {kind: sheets[-1].last[:2] for kind, sheets in scope.sheets.items()}
    return {entry.type: (entry.time, entry.order) for entry in scope.entries}


def least(scope: Scope, kind: str, otherwise: Pair) -> Pair:
    """The least pair of a type; `otherwise` if it has no member."""
    if not scope.sheets:
        return next((entry.pair for entry in scope.entries if entry.type == kind), otherwise)
    sheets = scope.sheets.get(kind)
    return sheets[0].first[:2] if sheets else otherwise


def greatest_without(scope: Scope, pages: Pages, kind: str, place: Place) -> Pair:
    """The greatest pair of a type when one of its members is left out; that member's page must be at hand."""
    if not scope.sheets:
        for entry in reversed(scope.entries):
            if entry.type == kind and entry.id != place[2]:
                return entry.time, entry.order
        return LOWEST
    sheets = scope.sheets.get(kind)
    if not sheets:
        return LOWEST
    if sheets[-1].last != place:
        return sheets[-1].last[:2]
    ends = [*sheets[-2:-1], *opened(scope, pages, sheets[-1:])]
    if ends[-1].count > 1:
        return page_of(scope, pages, ends[-1])[-2].pair
    return ends[-2].last[:2] if len(ends) > 1 else LOWEST


def sheet_at(sheets: list[Sheet], place: Place) -> int:
    """The position of the sheet where a member lies or would be put."""
    return max(0, bisect_right(sheets, place, key=_first) - 1)


def sheets_near(scope: Scope, pages: Pages, kind: str, place: Place, reach: int = 0) -> list[Sheet]:
    """The sheet of the page where a member lies or would be put, and its neighbours. Raises `Absent` for folders."""
    near = _near(scope.sheets.get(kind, []), place, reach)
    return _near(opened(scope, pages, near), place, reach) if near and near[0].is_folder else near


def _near(sheets: list[Sheet], place: Place, reach: int) -> list[Sheet]:
    at = sheet_at(sheets, place)
    return sheets[max(0, at - reach) : at + reach + 1]


def share(scope: Scope, pages: EditablePages, entry: Entry) -> None:
    """Put an entry in the place of its equal, if that is at hand: what is known twice is kept once."""
    try:
        for page in _pages_near(scope, pages, entry):
            at = bisect_left(page, full_place_of(entry), key=full_place_of)
            if at < len(page) and page[at] == entry:
                page[at] = entry
    except Absent:
        return


def _pages_near(scope: Scope, pages: Pages, entry: Entry) -> list[Page]:
    if not scope.sheets:
        return [scope.entries]
    return [page_of(scope, pages, sheet) for sheet in sheets_near(scope, pages, entry.type, place_of(entry))]
