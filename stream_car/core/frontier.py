"""The frontier of a scope, kept up to date one placement at a time.

Promise: after any prefix, in any arrival order, the members that reach their bar equal
`definitions.frontier` over the documents seen, and a change names exactly what entered and left.
One step serves insertion, correction and removal. Everything is read before anything is changed;
where a page is not at hand, `MissingPages` is raised and the state is as before. Cost: O(log n) plus the
members that change, of which at most 256 a type are named.
"""

from collections.abc import Mapping
from typing import Literal

from stream_car.core.changes import LISTED_MAX, Cause, Ended, FrontierChange, Member, Run
from stream_car.core.differ_on import values_of
from stream_car.core.documents import Precedence, Value
from stream_car.core.pages import add, drop
from stream_car.core.revisions import Placement
from stream_car.core.rules import NO_RULES, Clause, RulesByType, Ruleset, TypeRules
from stream_car.core.scope_names import AMENDED, keys_of, scope_parts
from stream_car.core.stored import LOWEST, Compared, EditablePages, Entry, Pages, Scope, SortKey
from stream_car.core.thresholds import Interval, Threshold, holds, intervals, threshold_with
from stream_car.core.timeline import (
    StateContradiction,
    count_between,
    greatest_by_type,
    greatest_without,
    least,
    members_between,
    page_entries_between,
    page_entries_near,
    require_pages,
    size,
)

Why = Ended | Literal["holds"]


class Edit(Value, frozen=True):
    """What a placement does to the timeline, with what both revisions mean there."""

    old: tuple[str, SortKey] | None
    entry: Entry | None
    old_rules: TypeRules
    new_rules: TypeRules

    @property
    def gone(self) -> SortKey | None:
        """Where the former entry stands."""
        return self.old[1] if self.old is not None else None


class ChangeFilter(Value, frozen=True):
    """Which members of an interval a change speaks about."""

    edit: Edit
    type_rules: TypeRules
    names: Compared


def place(
    scope: Scope, pages: EditablePages, placement: Placement, ruleset: Ruleset, *, shard: int = 0
) -> tuple[FrontierChange | None, list[bytes]]:
    """Apply a placement; the change of the frontier, if any, and the keys of pages written or gone.

    Raises `MissingPages` before anything is changed.
    """
    entry, old = placement.entry, placement.old
    if scope.directory and old is not None:  # a mere insertion reads its page before it changes anything
        _require_edited_pages(scope, pages, placement, old)
    change = (
        _place_link(scope, pages, placement) if placement.is_link else _place_by_rules(scope, pages, placement, ruleset)
    )
    touched = drop(scope, pages, old[0], (old[1], old[2], placement.id)) if old is not None else []
    if entry is not None:
        touched += add(scope, pages, entry)
    scope.version += 1
    scope.applied = _with_offset(scope.applied, shard, placement.offset)
    if change is not None:
        scope.seq += 1
    return change, touched


def _with_offset(applied: tuple[int, ...], shard: int, offset: int) -> tuple[int, ...]:
    if len(applied) <= 2 and (not applied or applied[0] == shard):
        return shard, offset
    others = [item for at in range(0, len(applied), 2) if applied[at] != shard for item in applied[at : at + 2]]
    return (*others, shard, offset)


def _place_link(scope: Scope, pages: Pages, placement: Placement) -> FrontierChange | None:
    if keys_of(scope.name) == AMENDED:
        return _place_amendment(scope, pages, placement)
    before = size(scope)
    after = before - (placement.old is not None) + (placement.entry is not None)
    if bool(before) == bool(after):
        return None
    [(_, target)] = scope_parts(scope.name)
    if after:
        left = (Member(id=target, why="link", rule="link"),)
        return FrontierChange(
            scope=scope.name, seq=scope.seq + 1, cause=placement.cause, offset=placement.offset, left=left
        )
    entered = (Member(id=target, rule="link"),)
    return FrontierChange(
        scope=scope.name, seq=scope.seq + 1, cause=placement.cause, offset=placement.offset, entered=entered
    )


def _place_amendment(scope: Scope, pages: Pages, placement: Placement) -> FrontierChange:
    """Whoever amends by name enters the target's scope, and leaves it when it no longer does."""
    left: list[Member] = []
    if placement.old is not None:
        kind, time, order = placement.old
        former = _former(scope, pages, kind, (time, order, placement.id))
        left.append(as_member(former, _own_end(placement.cause, placement.entry), "link"))
    entered = (as_member(placement.entry, "holds", "link"),) if placement.entry is not None else ()
    return FrontierChange(
        scope=scope.name,
        seq=scope.seq + 1,
        cause=placement.cause,
        offset=placement.offset,
        entered=entered,
        left=tuple(left),
    )


def _former(scope: Scope, pages: Pages, kind: str, where: SortKey) -> Entry:
    """The member as it stands before the placement.

    Raises `StateContradiction` if it is not there.
    """
    here = members_between(scope, pages, kind, where[:2], (where[0], where[1] + 1))
    found = next((entry for entry in here if entry.id == where[2]), None)
    if found is None:
        raise StateContradiction(scope, where[2])
    return found


def _own_end(cause: Cause, entry: Entry | None) -> Ended:
    """Why a document's former revision is gone: it was retracted, or its new one is here, or elsewhere."""
    if cause.kind == "retracted":
        return "retracted"
    return "corrected" if entry is not None else "moved"


def _require_edited_pages(scope: Scope, pages: Pages, placement: Placement, old: tuple[str, int, int]) -> None:
    """Raise `MissingPages` unless the pages that a removal or a correction will change are at hand."""
    places = [(old[0], (*old[1:], placement.id))]
    if placement.entry is not None:
        entry = placement.entry
        places.append((entry.type, (entry.time, entry.order, entry.id)))
    for kind, where in places:
        # When the old entry goes, its sheet may begin later or vanish; then a neighbour takes the new one.
        require_pages(scope, pages, page_entries_near(scope, pages, kind, where, len(places) - 1))


def _place_by_rules(scope: Scope, pages: Pages, placement: Placement, ruleset: Ruleset) -> FrontierChange | None:
    bearings = ruleset.rules_by_type(scope.name)
    entry = placement.entry
    if placement.old is None and entry is not None:
        bearing = bearings.get(entry.type, NO_RULES)
        if bearing.is_plain:
            return _insert_plain(scope, pages, placement, entry, bearing, bearings)
    return _replace(scope, pages, placement, ruleset, bearings)


def _insert_plain(
    scope: Scope, pages: Pages, placement: Placement, entry: Entry, bearing: TypeRules, bearings: RulesByType
) -> FrontierChange | None:
    """A new member where no rule looks at what is said: the most frequent step, and the short one."""
    pair = entry.precedence
    last = greatest_by_type(scope)
    left: list[Member] = []
    runs: list[Run] = []
    for clause in bearing.supersedes:
        before = _plain_threshold(last, bearings[clause.type])
        if before < pair and before <= last.get(clause.type, LOWEST):
            members, run = _voided_members(scope, pages, clause, before, pair)
            left += members
            if run is not None:
                runs.append(run)
    holds_now = pair >= _plain_threshold(last, bearing)
    if not (holds_now or left or runs):
        return None
    return FrontierChange(
        scope=scope.name,
        seq=scope.seq + 1,
        cause=placement.cause,
        offset=placement.offset,
        entered=(as_member(entry, "holds", _amends(scope, entry, bearing)),) if holds_now else (),
        left=tuple(left),
        left_runs=tuple(runs),
    )


def _amends(scope: Scope, entry: Entry, bearing: TypeRules) -> str:
    """The first rule by which a member amends one that was here before; empty if there is none."""
    for clause in bearing.amends:
        if least(scope, clause.type, entry.precedence) < entry.precedence:
            return clause.rule
    return ""


def _voided_members(
    scope: Scope, pages: Pages, clause: Clause, low: Precedence, high: Precedence
) -> tuple[list[Member], Run | None]:
    """The members of a clause's type with `low <= pair < high`: listed, or as a run if they are many."""
    total = 0
    if scope.directory and len(page_entries_between(scope, pages, clause.type, low, high)) > 1:
        total = count_between(scope, pages, clause.type, low, high)
    found = list(members_between(scope, pages, clause.type, low, high)) if total <= LISTED_MAX else []
    total = max(total, len(found))
    if total > LISTED_MAX:
        return [], _run(clause.type, Interval(low, high, entered=False), total, "voided", clause.rule)
    return [as_member(member, "voided", clause.rule) for member in found], None


def _plain_threshold(last: Mapping[str, Precedence], bearing: TypeRules) -> Precedence:
    bar = LOWEST
    for clause in bearing.superseded_by:
        if not clause.differ_on and (pair := last.get(clause.type, LOWEST)) > bar:
            bar = pair
    return bar


def _greatest_after(scope: Scope, pages: Pages, last: Mapping[str, Precedence], edit: Edit) -> dict[str, Precedence]:
    """The greatest pair of every type when the edit will be made; `last` has them as they are."""
    after = dict(last)
    old, entry = edit.old, edit.entry
    if old is not None and after.get(old[0]) == old[1][:2]:
        after[old[0]] = greatest_without(scope, pages, *old)
    if entry is not None:
        after[entry.type] = max(after.get(entry.type, LOWEST), entry.precedence)
    return after


def _replace(
    scope: Scope, pages: Pages, placement: Placement, ruleset: Ruleset, bearings: RulesByType
) -> FrontierChange | None:
    name = scope.name
    entry, old = placement.entry, placement.old
    edit = Edit(
        (old[0], (old[1], old[2], placement.id)) if old is not None else None,
        entry,
        bearings.get(old[0], NO_RULES) if old is not None else NO_RULES,
        bearings.get(entry.type, NO_RULES) if entry is not None else NO_RULES,
    )
    entered: list[Member] = []
    left: list[Member] = []
    entered_runs: list[Run] = []
    left_runs: list[Run] = []
    last = greatest_by_type(scope)
    later = _greatest_after(scope, pages, last, edit)
    if edit.old is not None:
        bar = threshold_with(scope, pages, edit.old_rules, ruleset, _plain_threshold(last, edit.old_rules))
        _leave_old_place(scope, pages, edit, placement.cause, bar, left)
    if entry is not None:
        bar = threshold_with(
            scope,
            pages,
            edit.new_rules,
            ruleset,
            _plain_threshold(later, edit.new_rules),
            without=edit.gone,
            extra=entry,
        )
        if holds(entry, bar, edit.new_rules):
            entered.append(as_member(entry, "holds", _amends(scope, entry, edit.new_rules)))
    for kind, rules in _affected_types(edit).items():
        bearing = bearings[kind]
        before = threshold_with(scope, pages, bearing, ruleset, _plain_threshold(last, bearing))
        after = threshold_with(
            scope, pages, bearing, ruleset, _plain_threshold(later, bearing), without=edit.gone, extra=entry
        )
        if before == after:
            continue
        for interval in intervals(before, after):
            rule = rules[0] if interval.entered else rules[1]
            members, run = _changed(scope, pages, kind, interval, ChangeFilter(edit, bearing, after.names), rule)
            (entered if interval.entered else left).extend(members)
            if run is not None:
                (entered_runs if interval.entered else left_runs).append(run)
    if not (entered or left or entered_runs or left_runs):
        return None
    return FrontierChange(
        scope=name,
        seq=scope.seq + 1,
        cause=placement.cause,
        offset=placement.offset,
        entered=tuple(entered),
        left=tuple(left),
        entered_runs=tuple(entered_runs),
        left_runs=tuple(left_runs),
    )


def _affected_types(edit: Edit) -> dict[str, tuple[str, str]]:
    """The types whose bar may move, with the rule that the former and the new revision void them by."""
    rules: dict[str, tuple[str, str]] = {}
    for clause in edit.new_rules.supersedes:
        rules[clause.type] = ("", clause.rule)
    for clause in edit.old_rules.supersedes:
        rules[clause.type] = (clause.rule, rules.get(clause.type, ("", ""))[1])
    return rules


def _leave_old_place(scope: Scope, pages: Pages, edit: Edit, cause: Cause, bar: Threshold, left: list[Member]) -> None:
    assert edit.old is not None
    former = _former(scope, pages, *edit.old)
    if holds(former, bar, edit.old_rules):
        left.append(as_member(former, _own_end(cause, edit.entry), ""))


def as_member(entry: Entry, why: Why = "holds", rule: str = "") -> Member:
    """A member as a change or a snapshot names it."""
    return Member(
        id=entry.id,
        revision=entry.revision,
        type=entry.type,
        time=entry.time,
        order=entry.order,
        elsewhere=entry.elsewhere,
        why=why,
        rule=rule,
    )


def _changed(
    scope: Scope,
    pages: Pages,
    kind: str,
    interval: Interval,
    sifting: ChangeFilter,
    rule: str,
) -> tuple[list[Member], Run | None]:
    """The members of an interval, less the cause's own document: listed, or as a run if they are many."""
    why: Why = "holds" if interval.entered else "voided"
    if scope.directory and not sifting.names:
        total = count_between(scope, pages, kind, interval.low, interval.high)
        total -= _is_inside(sifting.edit.old, kind, interval)
        if total > LISTED_MAX:
            return [], _run(kind, interval, total, why, rule)
    members = members_between(scope, pages, kind, interval.low, interval.high)
    changed = [member for member in members if _is_meant(sifting, member, interval)]
    if len(changed) > LISTED_MAX:
        return [], _run(kind, interval, len(changed), why, rule)
    return [as_member(member, why, rule) for member in changed], None


def _is_meant(sifting: ChangeFilter, member: Entry, interval: Interval) -> bool:
    """Whether a change speaks of it: not the cause's own document, and one that says what is meant."""
    if sifting.edit.old is not None and member.id == sifting.edit.old[1][2]:
        return False
    if not sifting.names:
        return True
    value = values_of(member.compared, sifting.type_rules.compared, sifting.names)
    return value == interval.including if interval.including is not None else value not in interval.excluding


def _is_inside(old: tuple[str, SortKey] | None, kind: str, interval: Interval) -> bool:
    return old is not None and old[0] == kind and interval.low <= old[1][:2] < interval.high


def _run(kind: str, interval: Interval, count: int, why: Why, rule: str) -> Run:
    return Run(
        type=kind,
        start=interval.low,
        end=interval.high,
        count=count,
        why=why,
        rule=rule,
        including=interval.including,
        excluding=interval.excluding,
    )
