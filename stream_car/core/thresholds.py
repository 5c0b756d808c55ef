"""What a member must reach to hold, and what an edit of a scope does to that. Values only."""

from stream_car.core.differ_on import NO_TOPS, Tops, tops, values_of
from stream_car.core.documents import Pair, Value
from stream_car.core.rules import Bearing, Ruleset
from stream_car.core.stored import LOWEST, Entry, Pages, Place, Said, Scope
from stream_car.core.timeline import greatest, page_of, sheets_near


class Bar(Value, frozen=True):
    """What a member's pair must reach to hold: the plain threshold, and the one for what it says."""

    plain: Pair
    tops: Tops = NO_TOPS
    names: Said = ()

    def reach(self, value: Said) -> Pair:
        """The threshold for a member that says `value` on `names`."""
        return max(self.plain, self.tops.reach(value)) if self.names else self.plain


class Interval(Value, frozen=True):
    """Members between two thresholds changed; `including`/`excluding` say which, by value."""

    low: Pair
    high: Pair
    entered: bool
    including: Said | None = None
    excluding: tuple[Said, ...] = ()


def bar_of(scope: Scope, pages: Pages, bearing: Bearing, ruleset: Ruleset, *, upto: int | None = None) -> Bar:
    """The bar of the type whose bearing this is; with `upto` as of that valid time. Raises `Absent`."""
    plain = LOWEST
    for clause in bearing.voiders:
        if not clause.differ_on:
            pair = greatest(scope, clause.type) if upto is None else greatest_upto(scope, pages, clause.type, upto)
            plain = max(plain, pair)
    return bar_beyond(scope, pages, bearing, ruleset, plain, upto=upto)


def greatest_upto(scope: Scope, pages: Pages, kind: str, upto: int) -> Pair:
    """The greatest pair of a type whose time is at most `upto`; `LOWEST` if there is none."""
    last = greatest(scope, kind)
    if last[0] <= upto:
        return last
    if not scope.sheets:
        return max((e.pair for e in scope.entries if e.type == kind and e.time <= upto), default=LOWEST)
    sheets = sheets_near(scope, pages, kind, (upto + 1, LOWEST[0], ""))
    found = [member.pair for sheet in sheets for member in page_of(scope, pages, sheet) if member.time <= upto]
    return found[-1] if found else LOWEST


def holds(entry: Entry, bar: Bar, bearing: Bearing) -> bool:
    """Whether a member is not void through its scope."""
    if not bar.names:
        return entry.pair >= bar.plain
    return entry.pair >= bar.reach(values_of(entry.said, bearing.attributes, bar.names))


def bar_beyond(
    scope: Scope,
    pages: Pages,
    bearing: Bearing,
    ruleset: Ruleset,
    plain: Pair,
    *,
    upto: int | None = None,
    without: Place | None = None,
    extra: Entry | None = None,
) -> Bar:
    """The bar whose plain threshold is known; as it will be `without` one member and with an `extra` one."""
    differing = [clause for clause in bearing.voiders if clause.differ_on]
    if not differing:
        return Bar(plain)
    clauses = [(clause, ruleset.bearing(scope.name, clause.type)) for clause in differing]
    found = tops(scope, pages, clauses, without=without, extra=extra, upto=upto)
    return Bar(plain, found, differing[0].differ_on)


def intervals(before: Bar, after: Bar) -> list[Interval]:
    """Where members changed between two bars of one type."""
    if not after.names:
        return _interval(before.plain, after.plain, None, ())
    special = tuple(dict.fromkeys(v for v in (before.tops.value, after.tops.value) if v is not None))
    found: list[Interval] = []
    for value in special:
        found += _interval(before.reach(value), after.reach(value), value, ())
    other_before = max(before.plain, before.tops.top)
    other_after = max(after.plain, after.tops.top)
    return found + _interval(other_before, other_after, None, special)


def _interval(before: Pair, after: Pair, including: Said | None, excluding: tuple[Said, ...]) -> list[Interval]:
    if before == after:
        return []
    return [Interval(min(before, after), max(before, after), after < before, including, excluding)]
