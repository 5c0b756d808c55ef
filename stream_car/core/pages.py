"""How a scope's timeline is written: members put into pages and taken out again.

Promise: nothing in the store is changed in place. An edit gives a page, and the folder that lists it,
a new stamp and so a new key, and returns the keys that were written or are gone; the header, which
the caller writes, points at the new ones. Where a page is not at hand `MissingPages` is raised and nothing
has happened. Cost: an insertion rewrites one page of up to 512 members, its folder of up to 128
sheets if there is one, and the header: at 10^6 members of one type about 45 KiB.
"""

from bisect import bisect_left
from typing import cast

from stream_car.core.stored import EditablePages, Entry, Folder, Page, PageEntry, Scope, SortKey
from stream_car.core.timeline import (
    StateContradiction,
    folder_of,
    full_sort_key,
    page_entry_at,
    page_key,
    page_of,
    sort_key,
)

INLINE_MAX = 64  # members kept in the header
PAGE_MAX = 512  # members of a page
FOLDER_MAX = 128  # sheets of a folder, and of a directory without folders


def add(scope: Scope, pages: EditablePages, entry: Entry) -> list[bytes]:
    """Put a member in its place; the keys of pages that were written or are gone."""
    if not scope.directory:
        entries = scope.entries
        if len(entries) < INLINE_MAX:
            at = bisect_left(entries, full_sort_key(entry), key=full_sort_key)
            scope.entries.insert(at, entry)
            return []
        return _spread(scope, pages, entry)
    sheets = scope.directory.get(entry.type)
    if not sheets:
        sheets = scope.directory[entry.type] = []
        return [_new_sheet(scope, pages, sheets, 0, [entry])]
    place = sort_key(entry)
    at = page_entry_at(sheets, place)
    folder = sheets[at]
    if not folder.is_folder:
        touched = _add(scope, pages, sheets, at, entry)
        return touched if len(sheets) <= FOLDER_MAX else touched + _fold(scope, pages, sheets)
    inside = folder_of(scope, pages, folder)
    touched = _add(scope, pages, inside, page_entry_at(inside, place), entry)
    _count_in(folder, entry)
    return touched + _refold(scope, pages, sheets, at, inside)


def _add(scope: Scope, pages: EditablePages, sheets: list[PageEntry], at_sheet: int, entry: Entry) -> list[bytes]:
    """Put a member in the page of one of these sheets, or in a new one beside it."""
    sheet = sheets[at_sheet]
    page = page_of(scope, pages, sheet)
    at = bisect_left(page, sort_key(entry), key=sort_key)
    if sheet.count < PAGE_MAX:
        page.insert(at, entry)
        _count_in(sheet, entry)
        return _restamp(scope, pages, sheet, page)
    if at == len(page):
        return [_new_sheet(scope, pages, sheets, at_sheet + 1, [entry])]
    page.insert(at, entry)
    upper = page[PAGE_MAX // 2 :]
    del page[PAGE_MAX // 2 :]
    _describe(sheet, page)
    return [*_restamp(scope, pages, sheet, page), _new_sheet(scope, pages, sheets, at_sheet + 1, upper)]


def _count_in(sheet: PageEntry, entry: Entry) -> None:
    sheet.count += 1
    sheet.voidable_elsewhere += entry.elsewhere > 0
    sheet.shared_values = sheet.shared_values if sheet.shared_values == entry.compared else None


def drop(scope: Scope, pages: EditablePages, kind: str, place: SortKey) -> list[bytes]:
    """Take a member out; the keys of pages that were written or are gone.

    Raises `StateContradiction` if it is not there.
    """
    if not scope.directory:
        at = bisect_left(scope.entries, (kind, *place), key=full_sort_key)
        if at == len(scope.entries) or scope.entries[at].id != place[2]:
            raise StateContradiction(scope, place[2])
        del scope.entries[at]
        return []
    sheets = scope.directory.get(kind)
    if not sheets:
        raise StateContradiction(scope, place[2])
    at = page_entry_at(sheets, place)
    folder = sheets[at]
    if folder.is_folder:
        inside = folder_of(scope, pages, folder)
        gone, touched = _drop(scope, pages, inside, place)
        folder.count -= 1
        folder.voidable_elsewhere -= gone.elsewhere > 0
        touched += _refold(scope, pages, sheets, at, inside)
    else:
        gone, touched = _drop(scope, pages, sheets, place)
    if not sheets:
        del scope.directory[kind]
    return touched


def _drop(scope: Scope, pages: EditablePages, sheets: list[PageEntry], place: SortKey) -> tuple[Entry, list[bytes]]:
    at_sheet = page_entry_at(sheets, place)
    sheet = sheets[at_sheet]
    page = page_of(scope, pages, sheet)
    at = bisect_left(page, place, key=sort_key)
    if at == len(page) or page[at].id != place[2]:
        raise StateContradiction(scope, place[2])
    gone = page.pop(at)
    sheet.count -= 1
    sheet.voidable_elsewhere -= gone.elsewhere > 0
    if page:
        return gone, _restamp(scope, pages, sheet, page)
    del sheets[at_sheet]
    return gone, [_forget(scope, pages, sheet)]


def _spread(scope: Scope, pages: EditablePages, entry: Entry) -> list[bytes]:
    every = sorted([*scope.entries, entry], key=full_sort_key)
    scope.entries = []
    by_type: dict[str, list[Entry]] = {}
    for member in every:
        by_type.setdefault(member.type, []).append(member)
    scope.directory = {kind: [] for kind in by_type}
    return [_new_sheet(scope, pages, scope.directory[kind], 0, members) for kind, members in by_type.items()]


def _new_sheet(scope: Scope, pages: EditablePages, sheets: list[PageEntry], at: int, page: Page) -> bytes:
    sheet = PageEntry(sort_key(page[0]), sort_key(page[-1]), 0, 0, 0, None)
    _describe(sheet, page)
    sheets.insert(at, sheet)
    return _keep(scope, pages, sheet, page)


def _describe(sheet: PageEntry, page: Page) -> None:
    said = page[0].compared
    sheet.count = len(page)
    sheet.voidable_elsewhere = sum(1 for member in page if member.elsewhere)
    sheet.shared_values = said if all(member.compared == said for member in page) else None


def _restamp(scope: Scope, pages: EditablePages, sheet: PageEntry, page: Page) -> list[bytes]:
    sheet.first = sort_key(page[0])
    sheet.last = sort_key(page[-1])
    return [_forget(scope, pages, sheet), _keep(scope, pages, sheet, page)]


def _forget(scope: Scope, pages: EditablePages, sheet: PageEntry) -> bytes:
    key = page_key(scope, sheet)
    pages.pop(key, None)
    return key


def _keep(scope: Scope, pages: EditablePages, sheet: PageEntry, content: Page | Folder) -> bytes:
    scope.version += 1
    sheet.version = scope.version
    key = page_key(scope, sheet)
    pages[key] = cast(Page, content)
    return key


def _fold(scope: Scope, pages: EditablePages, sheets: list[PageEntry]) -> list[bytes]:
    """Put the sheets of a type into two folders."""
    inside = sheets[:]
    half = len(inside) // 2
    sheets[:] = [_folder(inside[:half]), _folder(inside[half:])]
    return [_keep(scope, pages, sheets[0], inside[:half]), _keep(scope, pages, sheets[1], inside[half:])]


def _folder(inside: Folder) -> PageEntry:
    said = inside[0].shared_values
    return PageEntry(
        inside[0].first,
        inside[-1].last,
        sum(sheet.count for sheet in inside),
        sum(sheet.voidable_elsewhere for sheet in inside),
        0,
        said if all(sheet.shared_values == said for sheet in inside) else None,
        is_folder=True,
    )


def _refold(scope: Scope, pages: EditablePages, sheets: list[PageEntry], at: int, inside: Folder) -> list[bytes]:
    """Write a folder whose sheets have changed: in two if they are too many, not at all if there are none."""
    folder = sheets[at]
    gone = _forget(scope, pages, folder)
    if not inside:
        del sheets[at]
        return [gone]
    if len(inside) > FOLDER_MAX:
        touched = _fold(scope, pages, inside)
        sheets[at : at + 1] = inside
        return [gone, *touched]
    folder.first = inside[0].first
    folder.last = inside[-1].last
    return [gone, _keep(scope, pages, folder, inside)]
