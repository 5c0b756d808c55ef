"""The members of one scope, sorted by (type, time, order, id), in one list or in pages.

Promise: the order of `(time, order)` within a type is the order of authority, so the frontier of a
type is a suffix of it (DESIGN section 2). A scope of up to 64 members is one list in its header;
beyond that each type has pages of up to 512, and the header only their directory. Pages are never
changed in the store: an edit gives the page a new stamp, so a header always points at what it meant.
Cost: a binary search in the directory and one in a page; an insertion rewrites one page.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, MutableMapping

from msgspec import Struct

from stream_car.core.documents import Pair

INLINE_MAX = 64
PAGE_MAX = 512

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
    """A page in the directory: its type, its ends, and what can be known without reading it.

    `visits`: members that could be void elsewhere. `sole`: what all members say, if they all say the same.
    """

    type: str
    first: Place
    last: Place
    count: int
    visits: int
    stamp: int
    sole: Said | None


class Scope(Struct, array_like=True, gc=False):
    """The header of a scope. `seq` counts its changes; `stamp` changes with every placement applied.

    `applied` holds, by turns, an intake shard and the input offset of its last placement applied.
    """

    name: str
    seq: int = 0
    stamp: int = 0
    applied: tuple[int, ...] = ()
    entries: list[Entry] = []
    sheets: dict[str, list[Sheet]] = {}


Page = list[Entry]
Pages = Mapping[bytes, Page]
EditablePages = MutableMapping[bytes, Page]


class Absent(LookupError):
    """Pages are not at hand; read `keys` and ask again. Raised before anything is changed."""

    def __init__(self, keys: list[bytes]) -> None:
        super().__init__(f"{len(keys)} pages are not at hand")
        self.keys = keys


def page_of(scope: Scope, pages: Pages, sheet: Sheet) -> Page:
    """The members of a sheet. Raises `Absent`."""
    key = page_key(scope, sheet.stamp)
    page = pages.get(key)
    if page is None:
        raise Absent([key])
    return page


def scope_key(scope: str) -> bytes:
    """Where a shard keeps the header of a scope."""
    return b"s:" + scope.encode()


def page_key(scope: Scope, stamp: int) -> bytes:
    """Where a page of this scope lies."""
    return b"p:%d:%b" % (stamp, scope.name.encode())


def _place(entry: Entry) -> Place:
    return entry.time, entry.order, entry.id


def _full(entry: Entry) -> tuple[str, int, int, str]:
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
    return len(scope.entries) if not scope.sheets else sum(sheet.count for sheet in directory(scope))


def types(scope: Scope) -> list[str]:
    """The types of its members."""
    return list(scope.sheets) if scope.sheets else list(dict.fromkeys(entry.type for entry in scope.entries))


def directory(scope: Scope) -> list[Sheet]:
    """All sheets of a large scope."""
    return [sheet for sheets in scope.sheets.values() for sheet in sheets]


def sheets_between(scope: Scope, kind: str, low: Pair, high: Pair | None) -> list[Sheet]:
    """The sheets that may hold members of a type with `low <= pair < high`."""
    sheets = scope.sheets.get(kind, [])
    start = bisect_left(sheets, low, key=_last_pair)
    end = bisect_left(sheets, high, start, key=_first_pair) if high is not None else len(sheets)
    return sheets[start:end]


def between(scope: Scope, pages: Pages, kind: str, low: Pair, high: Pair | None) -> Iterator[Entry]:
    """Members of a type with `low <= pair < high`, in order; the pages must be at hand."""
    if not scope.sheets:
        entries = scope.entries
        at = bisect_left(entries, (kind, *low, ""), key=_full)
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
    sheets = sheets_between(scope, kind, low, high)
    wanted = [sheet for at, sheet in enumerate(sheets) if sheet.visits or at == 0]
    lacking = [key for sheet in wanted if (key := page_key(scope, sheet.stamp)) not in pages]
    if lacking:
        raise Absent(lacking)
    for sheet in wanted:
        for entry in page_of(scope, pages, sheet):
            if low <= entry.pair and (high is None or entry.pair < high):
                if first or entry.elsewhere:
                    yield entry
                first = False


def everyone(scope: Scope, pages: Pages) -> Iterator[Entry]:
    """All members, type by type in order. Raises `Absent`."""
    if not scope.sheets:
        yield from scope.entries
    for sheet in directory(scope):
        yield from page_of(scope, pages, sheet)


def at_hand(scope: Scope, pages: Pages, kind: str, low: Pair, high: Pair | None) -> list[Sheet]:
    """The sheets that may hold such members, all their pages present. Raises `Absent` with every one that is not."""
    sheets = sheets_between(scope, kind, low, high)
    lacking = [key for sheet in sheets if (key := page_key(scope, sheet.stamp)) not in pages]
    if lacking:
        raise Absent(lacking)
    return sheets


def count_between(scope: Scope, pages: Pages, kind: str, low: Pair, high: Pair | None) -> int:
    """How many members of a type have `low <= pair < high`; only the pages at the ends are read."""
    if not scope.sheets:
        return sum(1 for _ in between(scope, pages, kind, low, high))
    total = 0
    for sheet in sheets_between(scope, kind, low, high):
        if sheet.first[:2] >= low and (high is None or sheet.last[:2] < high):
            total += sheet.count
        else:
            page = page_of(scope, pages, sheet)
            end = len(page) if high is None else bisect_left(page, high, key=_pair)
            total += end - bisect_left(page, low, key=_pair)
    return total


def greatest(scope: Scope, kind: str) -> Pair:
    """The greatest pair of a type; `LOWEST` if it has no member."""
    if not scope.sheets:
        for entry in reversed(scope.entries):
            if entry.type == kind:
                return entry.time, entry.order
        return LOWEST
    sheets = scope.sheets.get(kind)
    return sheets[-1].last[:2] if sheets else LOWEST


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
    if sheets[-1].count > 1:
        return page_of(scope, pages, sheets[-1])[-2].pair
    return sheets[-2].last[:2] if len(sheets) > 1 else LOWEST


def sheet_at(sheets: list[Sheet], place: Place) -> int:
    """The position of the sheet of a type where a member lies or would be put."""
    return max(0, bisect_right(sheets, place, key=_first) - 1)


def add(scope: Scope, pages: EditablePages, entry: Entry) -> list[bytes]:
    """Put a member in its place; the keys of pages that were written or are gone."""
    if not scope.sheets:
        entries = scope.entries
        if len(entries) < INLINE_MAX:
            at = bisect_left(entries, _full(entry), key=_full)
            scope.entries.insert(at, entry)
            return []
        return _spread(scope, pages, entry)
    place = _place(entry)
    sheets = scope.sheets.get(entry.type)
    if not sheets:
        return [_new_sheet(scope, pages, 0, [entry])]
    at_sheet = sheet_at(sheets, place)
    sheet = sheets[at_sheet]
    page = page_of(scope, pages, sheet)
    at = bisect_left(page, place, key=_place)
    if sheet.count < PAGE_MAX:
        page.insert(at, entry)
        sheet.count += 1
        sheet.visits += entry.elsewhere > 0
        sheet.sole = sheet.sole if sheet.sole == entry.said else None
        return _restamp(scope, pages, sheet, page)
    if at == len(page):
        return [_new_sheet(scope, pages, at_sheet + 1, [entry])]
    page.insert(at, entry)
    upper = page[PAGE_MAX // 2 :]
    del page[PAGE_MAX // 2 :]
    _describe(sheet, page)
    return [*_restamp(scope, pages, sheet, page), _new_sheet(scope, pages, at_sheet + 1, upper)]


def drop(scope: Scope, pages: EditablePages, kind: str, place: Place) -> list[bytes]:
    """Take a member out; the keys of pages that were written or are gone.

    Raises `LookupError` if it is not there: the state contradicts itself.
    """
    if not scope.sheets:
        at = bisect_left(scope.entries, (kind, *place), key=_full)
        if at == len(scope.entries) or scope.entries[at].id != place[2]:
            raise LookupError(f"{place[2]!r} is not a member of {scope.name!r}")
        del scope.entries[at]
        return []
    sheets = scope.sheets.get(kind)
    if not sheets:
        raise LookupError(f"{place[2]!r} is not a member of {scope.name!r}")
    at_sheet = sheet_at(sheets, place)
    sheet = sheets[at_sheet]
    page = page_of(scope, pages, sheet)
    at = bisect_left(page, place, key=_place)
    if at == len(page) or page[at].id != place[2]:
        raise LookupError(f"{place[2]!r} is not a member of {scope.name!r}")
    sheet.count -= 1
    sheet.visits -= page[at].elsewhere > 0
    del page[at]
    if page:
        return _restamp(scope, pages, sheet, page)
    del sheets[at_sheet]
    if not sheets:
        del scope.sheets[kind]
    gone = page_key(scope, sheet.stamp)
    pages.pop(gone, None)
    return [gone]


def share(scope: Scope, pages: EditablePages, entry: Entry) -> None:
    """Put an entry in the place of its equal, if that is at hand: what is known twice is kept once."""
    if scope.sheets:
        sheets = scope.sheets.get(entry.type)
        page = pages.get(page_key(scope, sheets[sheet_at(sheets, _place(entry))].stamp)) if sheets else None
        if page is None:
            return
        at = bisect_left(page, _place(entry), key=_place)
    else:
        page = scope.entries
        at = bisect_left(page, _full(entry), key=_full)
    if at < len(page) and page[at] == entry:
        page[at] = entry


def _spread(scope: Scope, pages: EditablePages, entry: Entry) -> list[bytes]:
    every = sorted([*scope.entries, entry], key=_full)
    scope.entries = []
    by_type: dict[str, list[Entry]] = {}
    for member in every:
        by_type.setdefault(member.type, []).append(member)
    return [_new_sheet(scope, pages, 0, members) for members in by_type.values()]


def _new_sheet(scope: Scope, pages: EditablePages, at: int, page: list[Entry]) -> bytes:
    scope.stamp += 1
    sheet = Sheet(page[0].type, _place(page[0]), _place(page[-1]), 0, 0, scope.stamp, None)
    _describe(sheet, page)
    scope.sheets.setdefault(sheet.type, []).insert(at, sheet)
    key = page_key(scope, scope.stamp)
    pages[key] = page
    return key


def _describe(sheet: Sheet, page: list[Entry]) -> None:
    said = page[0].said
    sheet.count = len(page)
    sheet.visits = sum(1 for member in page if member.elsewhere)
    sheet.sole = said if all(member.said == said for member in page) else None


def _restamp(scope: Scope, pages: EditablePages, sheet: Sheet, page: list[Entry]) -> list[bytes]:
    gone = page_key(scope, sheet.stamp)
    pages.pop(gone, None)
    scope.stamp += 1
    sheet.stamp = scope.stamp
    sheet.first = _place(page[0])
    sheet.last = _place(page[-1])
    key = page_key(scope, scope.stamp)
    pages[key] = page
    return [gone, key]
