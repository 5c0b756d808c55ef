"""Rules with `differ_on`: a member is void only through others that say something else.

Promise: with such rules the frontier of a type is a suffix per value, and all its thresholds follow
from two pairs: the greatest of all, and the greatest among those that say something else than that
one. They are found by looking back from the end, so removals need no extra state. Cost: the run of
equal values at the end, in pages where it is long.
"""

from collections.abc import Iterator

from stream_car.core.documents import Pair, Value
from stream_car.core.rules import Bearing, Clause
from stream_car.core.stored import LOWEST, Entry, Pages, Place, Said, Scope, Sheet
from stream_car.core.timeline import folder_of, page_of


class Tops(Value, frozen=True):
    """The greatest pair and what it says, and the greatest pair that says something else."""

    top: Pair = LOWEST
    value: Said | None = None
    second: Pair = LOWEST

    def reach(self, value: Said) -> Pair:
        """The threshold for members that say `value`."""
        return self.second if value == self.value else self.top


NO_TOPS = Tops()


def values_of(said: Said, attributes: Said, names: Said) -> Said:
    """What a member says on these names, of all the attributes that its type's rules compare."""
    return said if attributes == names else tuple(said[attributes.index(name)] for name in names)


def tops(
    scope: Scope,
    pages: Pages,
    clauses: list[tuple[Clause, Bearing]],
    *,
    without: Place | None = None,
    extra: Entry | None = None,
    upto: int | None = None,
) -> Tops:
    """The tops over members of the clauses' types, less one member, plus one, up to a time."""
    found: list[tuple[Pair, Said]] = []
    for clause, bearing in clauses:
        names = clause.differ_on
        if extra is not None and extra.type == clause.type:
            found.append((extra.pair, values_of(extra.said, bearing.attributes, names)))
        first: Said | None = None
        for pair, said in _backwards(scope, pages, clause.type, without, upto):
            value = values_of(said, bearing.attributes, names)
            if first is None or value != first:
                found.append((pair, value))
                if first is not None:
                    break
                first = value
    if not found:
        return NO_TOPS
    top, value = max(found)
    return Tops(top, value, max((pair for pair, other in found if other != value), default=LOWEST))


def _backwards(
    scope: Scope, pages: Pages, kind: str, without: Place | None, upto: int | None
) -> Iterator[tuple[Pair, Said]]:
    if not scope.sheets:
        yield from _members_backwards(scope.entries, kind, without, upto)
        return
    yield from _sheets_backwards(scope, pages, scope.sheets.get(kind, []), kind, without, upto)


def _sheets_backwards(
    scope: Scope, pages: Pages, sheets: list[Sheet], kind: str, without: Place | None, upto: int | None
) -> Iterator[tuple[Pair, Said]]:
    for sheet in reversed(sheets):
        touched = without is not None and sheet.first <= without <= sheet.last
        whole = upto is None or sheet.last[0] <= upto
        if sheet.sole is not None and whole and not touched:
            yield sheet.last[:2], sheet.sole
        elif upto is None or sheet.first[0] <= upto:
            if sheet.is_folder:
                inside = folder_of(scope, pages, sheet)
                yield from _sheets_backwards(scope, pages, inside, kind, without, upto)
            else:
                yield from _members_backwards(page_of(scope, pages, sheet), kind, without, upto)


def _members_backwards(
    members: list[Entry], kind: str, without: Place | None, upto: int | None
) -> Iterator[tuple[Pair, Said]]:
    for member in reversed(members):
        if (
            member.type == kind
            and (without is None or member.id != without[2])
            and (upto is None or member.time <= upto)
        ):
            yield member.pair, member.said
