"""What a member must reach to hold, and what an edit of a scope does to that. Values only."""

from stream_car.core.differ_on import NO_TOP_TWO, TopTwo, top_two, values_of
from stream_car.core.documents import Precedence, Value
from stream_car.core.rules import Ruleset, TypeRules
from stream_car.core.stored import LOWEST, Compared, Entry, Pages, Scope, SortKey
from stream_car.core.timeline import greatest, page_entries_near, page_of


class Threshold(Value, frozen=True):
    """What a member's pair must reach to hold: the plain threshold, and the one for what it says."""

    plain: Precedence
    top_two: TopTwo = NO_TOP_TWO
    names: Compared = ()

    def for_value(self, value: Compared) -> Precedence:
        """The threshold for a member that says `value` on `names`."""
        return max(self.plain, self.top_two.for_value(value)) if self.names else self.plain


class Interval(Value, frozen=True):
    """Members between two thresholds changed; `including`/`excluding` say which, by value."""

    low: Precedence
    high: Precedence
    entered: bool
    including: Compared | None = None
    excluding: tuple[Compared, ...] = ()


def threshold_of(
    scope: Scope, pages: Pages, type_rules: TypeRules, ruleset: Ruleset, *, up_to: int | None = None
) -> Threshold:
    """The bar of the type whose bearing this is; with `upto` as of that valid time. Raises `MissingPages`."""
    plain = LOWEST
    for clause in type_rules.superseded_by:
        if not clause.differ_on:
            pair = greatest(scope, clause.type) if up_to is None else greatest_up_to(scope, pages, clause.type, up_to)
            plain = max(plain, pair)
    return threshold_with(scope, pages, type_rules, ruleset, plain, up_to=up_to)


def greatest_up_to(scope: Scope, pages: Pages, kind: str, up_to: int) -> Precedence:
    """The greatest pair of a type whose time is at most `upto`; `LOWEST` if there is none."""
    last = greatest(scope, kind)
    if last[0] <= up_to:
        return last
    if not scope.directory:
        return max((e.precedence for e in scope.entries if e.type == kind and e.time <= up_to), default=LOWEST)
    sheets = page_entries_near(scope, pages, kind, (up_to + 1, LOWEST[0], ""))
    found = [member.precedence for sheet in sheets for member in page_of(scope, pages, sheet) if member.time <= up_to]
    return found[-1] if found else LOWEST


def holds(entry: Entry, threshold: Threshold, type_rules: TypeRules) -> bool:
    """Whether a member is not void through its scope."""
    if not threshold.names:
        return entry.precedence >= threshold.plain
    return entry.precedence >= threshold.for_value(values_of(entry.compared, type_rules.compared, threshold.names))


def threshold_with(
    scope: Scope,
    pages: Pages,
    type_rules: TypeRules,
    ruleset: Ruleset,
    plain: Precedence,
    *,
    up_to: int | None = None,
    without: SortKey | None = None,
    extra: Entry | None = None,
) -> Threshold:
    """The bar whose plain threshold is known; as it will be `without` one member and with an `extra` one."""
    differing = [clause for clause in type_rules.superseded_by if clause.differ_on]
    if not differing:
        return Threshold(plain)
    clauses = [(clause, ruleset.type_rules(scope.name, clause.type)) for clause in differing]
    found = top_two(scope, pages, clauses, without=without, extra=extra, up_to=up_to)
    return Threshold(plain, found, differing[0].differ_on)


def intervals(before: Threshold, after: Threshold) -> list[Interval]:
    """Where members changed between two bars of one type."""
    if not after.names:
        return _interval(before.plain, after.plain, None, ())
    special = tuple(dict.fromkeys(v for v in (before.top_two.value, after.top_two.value) if v is not None))
    found: list[Interval] = []
    for value in special:
        found += _interval(before.for_value(value), after.for_value(value), value, ())
    other_before = max(before.plain, before.top_two.top)
    other_after = max(after.plain, after.top_two.top)
    return found + _interval(other_before, other_after, None, special)


def _interval(
    before: Precedence, after: Precedence, including: Compared | None, excluding: tuple[Compared, ...]
) -> list[Interval]:
    if before == after:
        return []
    return [Interval(min(before, after), max(before, after), after < before, including, excluding)]
