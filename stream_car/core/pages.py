"""How a scope's timeline is written: members are added to pages and removed from them.

Promise: nothing in the store is changed in place. An edit gives a page, and the folder that lists it, a new
version and so a new key, and returns the keys of pages that were written or deleted; the header, which the
caller writes, points at the new ones. If a page is not in memory, `MissingPages` is raised and nothing has
been changed. Cost: an insertion rewrites one page of up to 512 members, its folder of up to 128 page entries
if there is one, and the header: about 45 KiB at 10^6 members of one type.
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

INLINE_MAX = 64  # members that the header itself may have
PAGE_MAX = 512  # members of a page
FOLDER_MAX = 128  # page entries of a folder, and of a directory without folders


def insert_member(scope: Scope, pages: EditablePages, entry: Entry) -> list[bytes]:
    """Insert a member; return the keys of pages that were written or deleted. Raises `MissingPages`."""
    if not scope.directory:
        entries = scope.entries
        if len(entries) < INLINE_MAX:
            index = bisect_left(entries, full_sort_key(entry), key=full_sort_key)
            scope.entries.insert(index, entry)
            return []
        return _move_into_pages(scope, pages, entry)
    page_entries = scope.directory.get(entry.type)
    if not page_entries:
        page_entries = scope.directory[entry.type] = []
        return [_write_new_page(scope, pages, page_entries, 0, [entry])]
    member = sort_key(entry)
    index = page_entry_at(page_entries, member)
    page_entry = page_entries[index]
    if not page_entry.is_folder:
        touched = _insert(scope, pages, page_entries, index, entry)
        return touched if len(page_entries) <= FOLDER_MAX else touched + _split_into_folders(scope, pages, page_entries)
    folder = folder_of(scope, pages, page_entry)
    touched = _insert(scope, pages, folder, page_entry_at(folder, member), entry)
    _count_in(page_entry, entry)
    return touched + _rewrite_folder(scope, pages, page_entries, index, folder)


def _insert(
    scope: Scope, pages: EditablePages, page_entries: list[PageEntry], page_index: int, entry: Entry
) -> list[bytes]:
    """Insert a member into the page at `page_index`; a full page is split, or gets a new page after it."""
    page_entry = page_entries[page_index]
    page = page_of(scope, pages, page_entry)
    index = bisect_left(page, sort_key(entry), key=sort_key)
    if page_entry.count < PAGE_MAX:
        page.insert(index, entry)
        _count_in(page_entry, entry)
        return _rewrite_page(scope, pages, page_entry, page)
    if index == len(page):
        return [_write_new_page(scope, pages, page_entries, page_index + 1, [entry])]
    page.insert(index, entry)
    upper = page[PAGE_MAX // 2 :]
    del page[PAGE_MAX // 2 :]
    _summarize(page_entry, page)
    rewritten = _rewrite_page(scope, pages, page_entry, page)
    return [*rewritten, _write_new_page(scope, pages, page_entries, page_index + 1, upper)]


def _count_in(page_entry: PageEntry, entry: Entry) -> None:
    page_entry.count += 1
    page_entry.voidable_elsewhere += entry.elsewhere > 0
    page_entry.shared_values = page_entry.shared_values if page_entry.shared_values == entry.compared else None


def remove_member(scope: Scope, pages: EditablePages, type_name: str, member: SortKey) -> list[bytes]:
    """Remove a member; return the keys of pages that were written or deleted.

    Raises `MissingPages`, or `StateContradiction` if the member is not there.
    """
    if not scope.directory:
        index = bisect_left(scope.entries, (type_name, *member), key=full_sort_key)
        if index == len(scope.entries) or scope.entries[index].id != member[2]:
            raise StateContradiction(scope, member[2])
        del scope.entries[index]
        return []
    page_entries = scope.directory.get(type_name)
    if not page_entries:
        raise StateContradiction(scope, member[2])
    index = page_entry_at(page_entries, member)
    page_entry = page_entries[index]
    if page_entry.is_folder:
        folder = folder_of(scope, pages, page_entry)
        removed, touched = _remove(scope, pages, folder, member)
        page_entry.count -= 1
        page_entry.voidable_elsewhere -= removed.elsewhere > 0
        touched += _rewrite_folder(scope, pages, page_entries, index, folder)
    else:
        _, touched = _remove(scope, pages, page_entries, member)
    if not page_entries:
        del scope.directory[type_name]
    return touched


def _remove(
    scope: Scope, pages: EditablePages, page_entries: list[PageEntry], member: SortKey
) -> tuple[Entry, list[bytes]]:
    """Remove a member from its page, and the page if that leaves it empty."""
    page_index = page_entry_at(page_entries, member)
    page_entry = page_entries[page_index]
    page = page_of(scope, pages, page_entry)
    index = bisect_left(page, member, key=sort_key)
    if index == len(page) or page[index].id != member[2]:
        raise StateContradiction(scope, member[2])
    removed = page.pop(index)
    page_entry.count -= 1
    page_entry.voidable_elsewhere -= removed.elsewhere > 0
    if page:
        return removed, _rewrite_page(scope, pages, page_entry, page)
    del page_entries[page_index]
    return removed, [_delete(scope, pages, page_entry)]


def _move_into_pages(scope: Scope, pages: EditablePages, entry: Entry) -> list[bytes]:
    """Move the members of the header, and a new one, into one page per type."""
    members = sorted([*scope.entries, entry], key=full_sort_key)
    scope.entries = []
    by_type: dict[str, list[Entry]] = {}
    for member in members:
        by_type.setdefault(member.type, []).append(member)
    scope.directory = {type_name: [] for type_name in by_type}
    return [
        _write_new_page(scope, pages, scope.directory[type_name], 0, of_type) for type_name, of_type in by_type.items()
    ]


def _write_new_page(scope: Scope, pages: EditablePages, page_entries: list[PageEntry], index: int, page: Page) -> bytes:
    page_entry = PageEntry(sort_key(page[0]), sort_key(page[-1]), 0, 0, 0, None)
    _summarize(page_entry, page)
    page_entries.insert(index, page_entry)
    return _write(scope, pages, page_entry, page)


def _summarize(page_entry: PageEntry, page: Page) -> None:
    values = page[0].compared
    page_entry.count = len(page)
    page_entry.voidable_elsewhere = sum(1 for member in page if member.elsewhere)
    page_entry.shared_values = values if all(member.compared == values for member in page) else None


def _rewrite_page(scope: Scope, pages: EditablePages, page_entry: PageEntry, page: Page) -> list[bytes]:
    page_entry.first = sort_key(page[0])
    page_entry.last = sort_key(page[-1])
    return [_delete(scope, pages, page_entry), _write(scope, pages, page_entry, page)]


def _delete(scope: Scope, pages: EditablePages, page_entry: PageEntry) -> bytes:
    key = page_key(scope, page_entry)
    pages.pop(key, None)
    return key


def _write(scope: Scope, pages: EditablePages, page_entry: PageEntry, content: Page | Folder) -> bytes:
    """Store a page or folder under a new version."""
    scope.version += 1
    page_entry.version = scope.version
    key = page_key(scope, page_entry)
    pages[key] = cast(Page, content)
    return key


def _split_into_folders(scope: Scope, pages: EditablePages, page_entries: list[PageEntry]) -> list[bytes]:
    """Move these page entries into two folders, whose entries take their place."""
    half = len(page_entries) // 2
    lower, upper = page_entries[:half], page_entries[half:]
    page_entries[:] = [_folder_entry(lower), _folder_entry(upper)]
    return [_write(scope, pages, page_entries[0], lower), _write(scope, pages, page_entries[1], upper)]


def _folder_entry(folder: Folder) -> PageEntry:
    values = folder[0].shared_values
    return PageEntry(
        folder[0].first,
        folder[-1].last,
        sum(page_entry.count for page_entry in folder),
        sum(page_entry.voidable_elsewhere for page_entry in folder),
        0,
        values if all(page_entry.shared_values == values for page_entry in folder) else None,
        is_folder=True,
    )


def _rewrite_folder(
    scope: Scope, pages: EditablePages, page_entries: list[PageEntry], index: int, folder: Folder
) -> list[bytes]:
    """Write a folder whose page entries have changed: as two if they are too many, not at all if there are none."""
    folder_entry = page_entries[index]
    deleted = _delete(scope, pages, folder_entry)
    if not folder:
        del page_entries[index]
        return [deleted]
    if len(folder) > FOLDER_MAX:
        touched = _split_into_folders(scope, pages, folder)
        page_entries[index : index + 1] = folder
        return [deleted, *touched]
    folder_entry.first = folder[0].first
    folder_entry.last = folder[-1].last
    return [deleted, _write(scope, pages, folder_entry, folder)]
