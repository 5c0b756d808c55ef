"""The threshold that a member's precedence must reach to hold, and what an edit of a scope does to it. Values only."""

from stream_car.core.differ_on import NO_TOP_TWO, TopTwo, top_two, values_of
from stream_car.core.documents import Precedence, Value
from stream_car.core.rules import Ruleset, TypeRules
from stream_car.core.stored import LOWEST, Compared, Entry, Pages, Scope, SortKey
from stream_car.core.timeline import greatest, page_entries_near, page_of


class Threshold(Value, frozen=True):
    """The precedence that members of a type must reach to hold.

    `plain` comes from rules without `differ_on`. `top_two` comes from rules with `differ_on`, which compare `names`.
    """

    plain: Precedence
    top_two: TopTwo = NO_TOP_TWO
    names: Compared = ()

    def for_value(self, value: Compared) -> Precedence:
        """The threshold for a member with this value for `names`."""
        return max(self.plain, self.top_two.for_value(value)) if self.names else self.plain


class Interval(Value, frozen=True):
    """The members with `low <= precedence < high`, which all entered or all left.

    `including` restricts them to this value, `excluding` to other values than these.
    """

    low: Precedence
    high: Precedence
    entered: bool
    including: Compared | None = None
    excluding: tuple[Compared, ...] = ()


def threshold_of(
    scope: Scope, pages: Pages, type_rules: TypeRules, ruleset: Ruleset, *, up_to: int | None = None
) -> Threshold:
    """Return the threshold of the type that `type_rules` describe.

    With `up_to`, as of that valid time (microseconds UTC). Raises `MissingPages`.
    """
    plain = LOWEST
    for clause in type_rules.superseded_by:
        if not clause.differ_on:
            precedence = (
                greatest(scope, clause.type) if up_to is None else greatest_up_to(scope, pages, clause.type, up_to)
            )
            plain = max(plain, precedence)
    return threshold_with(scope, pages, type_rules, ruleset, plain, up_to=up_to)


def greatest_up_to(scope: Scope, pages: Pages, type_name: str, up_to: int) -> Precedence:
    """Return the greatest precedence of a type whose time is at most `up_to`; `LOWEST` if there is none."""
    last = greatest(scope, type_name)
    if last[0] <= up_to:
        return last
    if not scope.directory:
        return max((e.precedence for e in scope.entries if e.type == type_name and e.time <= up_to), default=LOWEST)
    page_entries = page_entries_near(scope, pages, type_name, (up_to + 1, LOWEST[0], ""))
    in_time = [
        member.precedence
        for page_entry in page_entries
        for member in page_of(scope, pages, page_entry)
        if member.time <= up_to
    ]
    return in_time[-1] if in_time else LOWEST


def no_rule_supersedes(entry: Entry, threshold: Threshold, type_rules: TypeRules) -> bool:
    """Return whether no rule voids a member in its scope."""
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
    """Return the threshold whose plain part is known; as after removing `without` and adding `extra`."""
    differing = [clause for clause in type_rules.superseded_by if clause.differ_on]
    if not differing:
        return Threshold(plain)
    clauses = [(clause, ruleset.type_rules(scope.name, clause.type)) for clause in differing]
    tops = top_two(scope, pages, clauses, without=without, extra=extra, up_to=up_to)
    # Rules that void one type in scopes of one key set compare the same attributes (`rule_packs.consistency`).
    return Threshold(plain, tops, differing[0].differ_on)


def intervals(before: Threshold, after: Threshold) -> list[Interval]:
    """Return where members entered or left when the threshold of their type moved."""
    if not after.names:
        return _interval(before.plain, after.plain, None, ())
    top_values = tuple(dict.fromkeys(v for v in (before.top_two.value, after.top_two.value) if v is not None))
    changed: list[Interval] = []
    for value in top_values:
        changed += _interval(before.for_value(value), after.for_value(value), value, ())
    # Every other value differs from both top values, so all of them share one threshold before and one after.
    others_before = max(before.plain, before.top_two.top)
    others_after = max(after.plain, after.top_two.top)
    return changed + _interval(others_before, others_after, None, top_values)


def _interval(
    before: Precedence, after: Precedence, including: Compared | None, excluding: tuple[Compared, ...]
) -> list[Interval]:
    if before == after:
        return []
    return [Interval(min(before, after), max(before, after), after < before, including, excluding)]
