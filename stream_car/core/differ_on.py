"""Rules with `differ_on`: a member is void only through others that say something else.

Promise: with such rules the frontier of a type is a suffix per value, and all its thresholds follow
from two pairs: the greatest of all, and the greatest among those that say something else than that
one. They are found by looking back from the end, so removals need no extra state. Cost: the run of
equal values at the end, in pages where it is long.
"""

from collections.abc import Iterator

from stream_car.core.documents import Precedence, Value
from stream_car.core.rules import Clause, TypeRules
from stream_car.core.stored import LOWEST, Compared, Entry, PageEntry, Pages, Scope, SortKey
from stream_car.core.timeline import folder_of, page_of


class TopTwo(Value, frozen=True):
    """The greatest pair and what it says, and the greatest pair that says something else."""

    top: Precedence = LOWEST
    value: Compared | None = None
    second: Precedence = LOWEST

    def for_value(self, value: Compared) -> Precedence:
        """The threshold for members that say `value`."""
        return self.second if value == self.value else self.top


NO_TOP_TWO = TopTwo()


def values_of(compared: Compared, attributes: Compared, names: Compared) -> Compared:
    """What a member says on these names, of all the attributes that its type's rules compare."""
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
    """The tops over members of the clauses' types, less one member, plus one, up to a time."""
    found: list[tuple[Precedence, Compared]] = []
    for clause, bearing in clauses:
        names = clause.differ_on
        if extra is not None and extra.type == clause.type:
            found.append((extra.precedence, values_of(extra.compared, bearing.compared, names)))
        first: Compared | None = None
        for pair, said in _backwards(scope, pages, clause.type, without, up_to):
            value = values_of(said, bearing.compared, names)
            if first is None or value != first:
                found.append((pair, value))
                if first is not None:
                    break
                first = value
    if not found:
        return NO_TOP_TWO
    top, value = max(found)
    return TopTwo(top, value, max((pair for pair, other in found if other != value), default=LOWEST))


def _backwards(
    scope: Scope, pages: Pages, kind: str, without: SortKey | None, up_to: int | None
) -> Iterator[tuple[Precedence, Compared]]:
    if not scope.directory:
        yield from _members_backwards(scope.entries, kind, without, up_to)
        return
    yield from _page_entries_backwards(scope, pages, scope.directory.get(kind, []), kind, without, up_to)


def _page_entries_backwards(
    scope: Scope, pages: Pages, page_entries: list[PageEntry], kind: str, without: SortKey | None, up_to: int | None
) -> Iterator[tuple[Precedence, Compared]]:
    for sheet in reversed(page_entries):
        touched = without is not None and sheet.first <= without <= sheet.last
        whole = up_to is None or sheet.last[0] <= up_to
        if sheet.shared_values is not None and whole and not touched:
            yield sheet.last[:2], sheet.shared_values
        elif up_to is None or sheet.first[0] <= up_to:
            if sheet.is_folder:
                inside = folder_of(scope, pages, sheet)
                yield from _page_entries_backwards(scope, pages, inside, kind, without, up_to)
            else:
                yield from _members_backwards(page_of(scope, pages, sheet), kind, without, up_to)


def _members_backwards(
    members: list[Entry], kind: str, without: SortKey | None, up_to: int | None
) -> Iterator[tuple[Precedence, Compared]]:
    for member in reversed(members):
        if (
            member.type == kind
            and (without is None or member.id != without[2])
            and (up_to is None or member.time <= up_to)
        ):
            yield member.precedence, member.compared
