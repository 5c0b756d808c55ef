"""The members of one scope in the order of a listing, and what voids one of them.

Promise: pure functions over the values in memory. They raise `MissingPages` for what was not read, and need no more
pages than the members that they return, unless a rule compares values.
"""

from stream_car.core.differ_on import values_of
from stream_car.core.documents import Precedence
from stream_car.core.stored import LOWEST, Entry, Scope, SortKey
from stream_car.core.thresholds import Threshold, no_rule_supersedes, threshold_of
from stream_car.core.timeline import (
    LAST_PLACE,
    Place,
    count_between,
    members_after,
    members_before,
    members_between,
    sort_key,
    types,
)
from stream_car.core.walk import pages_of
from stream_car.queries.listed_kinds import ALL_KINDS, ListedKinds
from stream_car.queries.snapshot import Snapshot

ALL = 1 << 53


def active_members(scope: Scope, snapshot: Snapshot, limit: int, kinds: ListedKinds = ALL_KINDS) -> list[Entry]:
    """Of the `limit` latest members of these types, those that this scope does not void, latest first."""
    return [entry for entry, does_hold in latest_members(scope, snapshot, None, limit, kinds) if does_hold]


def ends_of(scope: Scope, snapshot: Snapshot, limit: int) -> list[Entry]:
    """The first member of each type, and the `limit` latest until the time of the snapshot, each once."""
    pages = pages_of(snapshot.values)
    members: dict[str, Entry] = {}
    for kind in types(scope):
        latest = members_before(scope, pages, kind, end_of(snapshot), limit)
        members |= {entry.id: entry for entry in (*members_after(scope, pages, kind, LOWEST, 1), *latest)}
    return list(members.values())


def size_until(scope: Scope, snapshot: Snapshot) -> int:
    """The number of members until the time of the snapshot."""
    pages, end = pages_of(snapshot.values), end_of(snapshot)
    return sum(count_between(scope, pages, kind, LOWEST, end) for kind in types(scope))


def end_of(snapshot: Snapshot) -> Precedence:
    """The place after the last member until the time of the snapshot."""
    return (snapshot.as_of + 1, LOWEST[1]) if snapshot.as_of is not None else LAST_PLACE


def latest_members(
    scope: Scope, snapshot: Snapshot, after: Place | None, limit: int, kinds: ListedKinds = ALL_KINDS
) -> list[tuple[Entry, bool]]:
    """The `limit` latest members of these types before `after`, latest first, and whether this scope lets each hold.

    Of a type that one rule voids whatever the values, only those that hold are looked at.
    """
    pages, rules = pages_of(snapshot.values), snapshot.ruleset
    end = end_of(snapshot)
    place: Place = after if after is not None and after < end else end
    members: list[tuple[Entry, bool]] = []
    for kind in filter(kinds.has_type, types(scope)):
        type_rules = rules.type_rules(scope.name, kind)
        threshold: Threshold = threshold_of(scope, pages, type_rules, rules, up_to=snapshot.as_of)
        low = LOWEST if threshold.names else threshold.plain
        of_type = members_before(scope, pages, kind, place, limit)
        members += [
            (entry, no_rule_supersedes(entry, threshold, type_rules)) for entry in of_type if entry.precedence >= low
        ]
    members.sort(key=lambda member: sort_key(member[0]), reverse=True)
    return members[:limit]


def earliest_members(
    scope: Scope, snapshot: Snapshot, after: SortKey | None, limit: int, kinds: ListedKinds = ALL_KINDS
) -> list[Entry]:
    """The first `limit` members of these types after `after`, in order of time."""
    pages = pages_of(snapshot.values)
    place = after if after is not None else LOWEST
    members = (members_after(scope, pages, kind, place, limit) for kind in filter(kinds.has_type, types(scope)))
    return sorted((entry for of_type in members for entry in of_type), key=sort_key)[:limit]


def voiders_of(scope: Scope, entry: Entry, snapshot: Snapshot, limit: int) -> list[tuple[str, Entry]]:
    """The first members that void this one through the scope, each with the rule."""
    type_rules = snapshot.ruleset.type_rules(scope.name, entry.type)
    low = (entry.time, entry.order + 1)
    voiders: list[tuple[str, Entry]] = []
    for clause in type_rules.superseded_by:
        later_compared = snapshot.ruleset.type_rules(scope.name, clause.type).compared
        own_values = values_of(entry.compared, type_rules.compared, clause.differ_on)
        count = 0
        pages = pages_of(snapshot.values)
        all_later = members_between(scope, pages, clause.type, low, None)
        for later in all_later if clause.differ_on else members_after(scope, pages, clause.type, low, limit):
            if snapshot.as_of is not None and later.time > snapshot.as_of:
                break
            if clause.differ_on and values_of(later.compared, later_compared, clause.differ_on) == own_values:
                continue
            voiders.append((clause.rule, later))
            count += 1
            if count == limit:
                break
    voiders.sort(key=lambda pair: (pair[1].time, pair[1].order, pair[1].id))
    return voiders[:limit]
