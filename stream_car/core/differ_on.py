"""Rules with `differ_on`: only a member with another value voids a member.

Promise: with such rules the frontier of a type is a suffix per value. All its thresholds follow from two
precedences: that of the last member of a voiding type, and that of the last with another value. Both are
found by scanning back from the end, so removals need no extra state. Cost: the run of equal values at the end;
a page whose members all have the same values counts as one member and is not read.
"""

from collections.abc import Iterator

from stream_car.core.documents import Precedence, Value
from stream_car.core.rules import Clause, TypeRules
from stream_car.core.stored import LOWEST, Compared, Entry, PageEntry, Pages, Scope, SortKey
from stream_car.core.timeline import folder_of, page_of


class TopTwo(Value, frozen=True):
    """The greatest precedence with its value, and the greatest precedence with another value."""

    top: Precedence = LOWEST
    value: Compared | None = None
    second: Precedence = LOWEST

    def for_value(self, value: Compared) -> Precedence:
        """The threshold for members with `value`: the greatest precedence with another value."""
        return self.second if value == self.value else self.top


NO_TOP_TWO = TopTwo()


def values_of(compared: Compared, attributes: Compared, names: Compared) -> Compared:
    """Return a member's values for `names`; `compared` has its values for all `attributes` that its rules compare."""
    return compared if attributes == names else tuple(compared[attributes.index(name)] for name in names)


def top_two(
    scope: Scope,
    pages: Pages,
    clauses: list[tuple[Clause, TypeRules]],
    *,
    without: SortKey | None = None,
    extra: Entry | None = None,
    up_to: int | None = None,
) -> TopTwo:
    """Return the top two of the members of the clauses' types.

    `without` leaves out one member, `extra` adds one, `up_to` leaves out members with a greater time (microseconds).
    """
    candidates: list[tuple[Precedence, Compared]] = []
    for clause, type_rules in clauses:
        names = clause.differ_on
        if extra is not None and extra.type == clause.type:
            candidates.append((extra.precedence, values_of(extra.compared, type_rules.compared, names)))
        last_value: Compared | None = None
        for precedence, compared in _backwards(scope, pages, clause.type, without, up_to):
            value = values_of(compared, type_rules.compared, names)
            if last_value is None:
                candidates.append((precedence, value))
                last_value = value
            elif value != last_value:
                candidates.append((precedence, value))
                break
    if not candidates:
        return NO_TOP_TWO
    top, value = max(candidates)
    return TopTwo(top, value, max((precedence for precedence, other in candidates if other != value), default=LOWEST))


def _backwards(
    scope: Scope, pages: Pages, type_name: str, without: SortKey | None, up_to: int | None
) -> Iterator[tuple[Precedence, Compared]]:
    if not scope.directory:
        yield from _members_backwards(scope.entries, type_name, without, up_to)
        return
    yield from _page_entries_backwards(scope, pages, scope.directory.get(type_name, []), type_name, without, up_to)


def _page_entries_backwards(
    scope: Scope,
    pages: Pages,
    page_entries: list[PageEntry],
    type_name: str,
    without: SortKey | None,
    up_to: int | None,
) -> Iterator[tuple[Precedence, Compared]]:
    for page_entry in reversed(page_entries):
        has_left_out = without is not None and page_entry.first <= without <= page_entry.last
        is_whole = up_to is None or page_entry.last[0] <= up_to
        if page_entry.shared_values is not None and is_whole and not has_left_out:
            yield page_entry.last[:2], page_entry.shared_values
        elif up_to is None or page_entry.first[0] <= up_to:
            if page_entry.is_folder:
                folder = folder_of(scope, pages, page_entry)
                yield from _page_entries_backwards(scope, pages, folder, type_name, without, up_to)
            else:
                yield from _members_backwards(page_of(scope, pages, page_entry), type_name, without, up_to)


def _members_backwards(
    members: list[Entry], type_name: str, without: SortKey | None, up_to: int | None
) -> Iterator[tuple[Precedence, Compared]]:
    for member in reversed(members):
        if (
            member.type == type_name
            and (without is None or member.id != without[2])
            and (up_to is None or member.time <= up_to)
        ):
            yield member.precedence, member.compared
