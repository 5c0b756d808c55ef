"""The members of one scope: where they are kept, how they are found, and what an edit writes."""

import pytest

from stream_car.core import pages
from stream_car.core.pages import insert_member, remove_member
from stream_car.core.stored import LOWEST, Entry, Page, Scope
from stream_car.core.timeline import (
    MissingPages,
    StateContradiction,
    all_members,
    count_between,
    greatest,
    greatest_without,
    members_between,
    page_key,
    sort_key,
)


def entry(number: int, type_name: str = "disclosure") -> Entry:
    return Entry(f"{type_name}-{number}", revision=1, type=type_name, time=number, order=0, offset=0, append_time=0)


def filled(members: int) -> tuple[Scope, dict[bytes, Page]]:
    scope, stored = Scope("cve=CVE-1"), dict[bytes, Page]()
    for number in range(members):
        insert_member(scope, stored, entry(number))
    return scope, stored


def test_members_are_sorted_by_type_time_order_and_id() -> None:
    scope, stored = filled(0)
    for member in (entry(2), entry(1, "patch"), entry(1)):
        insert_member(scope, stored, member)

    assert [member.id for member in all_members(scope, stored)] == ["disclosure-1", "disclosure-2", "patch-1"]
    assert greatest(scope, "disclosure") == (2, 0)
    assert greatest(scope, "note") == LOWEST


def test_a_small_scope_is_kept_in_its_header_and_a_larger_one_in_a_page_per_type() -> None:
    scope, stored = filled(64)
    assert (len(scope.entries), scope.directory, stored) == (64, {}, {})

    written = insert_member(scope, stored, entry(64, "patch"))
    assert scope.entries == []
    assert {kind: [page.count for page in of_type] for kind, of_type in scope.directory.items()} == {
        "disclosure": [64],
        "patch": [1],
    }
    assert set(written) == stored.keys()


def test_an_insertion_into_the_middle_of_a_full_page_splits_it() -> None:
    scope, stored = filled(512)
    [full] = scope.directory["disclosure"]
    old_key = page_key(scope, full)
    touched = insert_member(
        scope, stored, Entry("between", 1, "disclosure", time=100, order=1, offset=0, append_time=0)
    )

    assert [page.count for page in scope.directory["disclosure"]] == [256, 257]
    assert old_key in touched and old_key not in stored
    assert len(list(all_members(scope, stored))) == 513


def test_an_insertion_at_the_end_of_a_full_page_begins_a_new_one() -> None:
    scope, _ = filled(513)

    assert [page.count for page in scope.directory["disclosure"]] == [512, 1]


def test_an_edit_writes_its_page_under_a_new_key() -> None:
    scope, stored = filled(65)
    [before] = stored
    touched = insert_member(scope, stored, entry(65))
    [after] = stored

    assert before != after
    assert touched == [before, after]


def test_a_page_goes_with_its_last_member() -> None:
    scope, stored = filled(64)
    insert_member(scope, stored, entry(1, "patch"))
    remove_member(scope, stored, "patch", sort_key(entry(1, "patch")))

    assert list(scope.directory) == ["disclosure"]
    assert len(stored) == 1


def test_very_many_pages_are_listed_in_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in (("INLINE_MAX", 1), ("PAGE_MAX", 2), ("FOLDER_MAX", 2)):
        monkeypatch.setattr(pages, name, limit)
    scope, stored = filled(20)

    assert all(page_entry.is_folder for page_entry in scope.directory["disclosure"])
    assert [member.time for member in all_members(scope, stored)] == list(range(20))
    assert count_between(scope, stored, "disclosure", (5, 0), (9, 0)) == 4


def test_what_lies_between_two_precedences_is_read_from_its_pages_only() -> None:
    scope, stored = filled(1100)
    first, second, third = (page_key(scope, page_entry) for page_entry in scope.directory["disclosure"])
    in_memory = {second: stored[second]}

    assert [member.time for member in members_between(scope, in_memory, "disclosure", (600, 0), (602, 0))] == [600, 601]
    with pytest.raises(MissingPages) as missing:
        list(members_between(scope, in_memory, "disclosure", (500, 0), (1050, 0)))
    assert missing.value.keys == [first, third]


def test_the_greatest_without_a_member_is_that_of_its_predecessor() -> None:
    scope, stored = filled(3)

    assert greatest_without(scope, stored, "disclosure", sort_key(entry(2))) == (1, 0)
    assert greatest_without(scope, stored, "disclosure", sort_key(entry(0))) == (2, 0)


def test_a_member_that_is_not_there_cannot_be_dropped() -> None:
    scope, stored = filled(3)

    with pytest.raises(StateContradiction, match="'disclosure-9' is not a member of 'cve=CVE-1'"):
        remove_member(scope, stored, "disclosure", sort_key(entry(9)))
