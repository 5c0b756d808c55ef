"""The frontier of a scope, maintained one placement at a time (Definition 11).

Promise: after any prefix of the input, in any order of arrival, the members that reach their threshold equal
`definitions.frontier` over the documents seen, and a change names exactly the members that entered and left.
Insertion, correction and removal are one step. Everything is read before anything is changed: if a page is
not in memory, `MissingPages` is raised and the state is as before. Cost: O(log n) plus the members that
change, of which at most 256 per type are named.
"""

from collections.abc import Sequence
from typing import Literal

from stream_car.core.changes import LISTED_MAX, Cause, Ended, FrontierChange, Member, Run
from stream_car.core.differ_on import values_of
from stream_car.core.documents import Precedence, Value
from stream_car.core.pages import insert_member, remove_member
from stream_car.core.revisions import Placement
from stream_car.core.rules import NO_RULES, Clause, RulesByType, Ruleset, TypeRules
from stream_car.core.scope_names import AMENDED, keys_of, scope_parts
from stream_car.core.stored import LOWEST, Compared, EditablePages, Entry, Pages, Scope, SortKey
from stream_car.core.thresholds import Interval, Threshold, intervals, no_rule_supersedes, threshold_with
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
GreatestByType = dict[str, Precedence]


class Edit(Value, frozen=True):
    """What a placement does to the timeline: `old` (type and sort key) leaves, `entry` joins.

    `old_rules` and `new_rules` are those of their types.
    """

    old: tuple[str, SortKey] | None
    entry: Entry | None
    old_rules: TypeRules
    new_rules: TypeRules

    @property
    def removed(self) -> SortKey | None:
        """The sort key of the member that leaves."""
        return self.old[1] if self.old is not None else None


class ChangeFilter(Value, frozen=True):
    """Which members of an interval a change reports; `names` are the attributes that the interval restricts."""

    edit: Edit
    type_rules: TypeRules
    names: Compared


def place(
    scope: Scope, pages: EditablePages, placement: Placement, ruleset: Ruleset, *, shard: int = 0
) -> tuple[FrontierChange | None, list[bytes]]:
    """Apply a placement that came from the intake shard `shard`.

    Returns the change of the frontier, if there is one, and the keys of pages that were written or deleted. Raises
    `MissingPages` or (if the state is damaged) `StateContradiction` before anything is changed.
    """
    entry, old = placement.entry, placement.old
    if scope.directory and old is not None:  # a mere insertion reads its page before it changes anything
        _require_edited_pages(scope, pages, placement, old)
    change = (
        _place_link(scope, pages, placement) if placement.is_link else _place_by_rules(scope, pages, placement, ruleset)
    )
    touched = remove_member(scope, pages, old[0], (old[1], old[2], placement.id)) if old is not None else []
    if entry is not None:
        touched += insert_member(scope, pages, entry)
    scope.version += 1
    scope.applied = _with_offset(scope.applied, shard, placement.offset)
    if change is not None:
        scope.seq += 1
    return change, touched


def _with_offset(applied: tuple[int, ...], shard: int, offset: int) -> tuple[int, ...]:
    """Return `applied` with this offset as the last of its shard."""
    if len(applied) <= 2 and (not applied or applied[0] == shard):
        return shard, offset
    pairs = [applied[index : index + 2] for index in range(0, len(applied), 2)]
    return (*[item for pair in pairs if pair[0] != shard for item in pair], shard, offset)


def _require_edited_pages(scope: Scope, pages: Pages, placement: Placement, old: tuple[str, int, int]) -> None:
    """Raise `MissingPages` unless the pages that a removal or a correction will change are in memory."""
    edits = [(old[0], (*old[1:], placement.id))]
    if placement.entry is not None:
        entry = placement.entry
        edits.append((entry.type, (entry.time, entry.order, entry.id)))
    for type_name, member in edits:
        # Without the old entry its page may begin later or vanish; then a neighbour receives the new entry.
        require_pages(scope, pages, page_entries_near(scope, pages, type_name, member, len(edits) - 1))


def _place_link(scope: Scope, pages: Pages, placement: Placement) -> FrontierChange | None:
    """Return the change of a link scope: its target leaves with the first link, and enters when no link remains."""
    if keys_of(scope.name) == AMENDED:
        return _place_amendment(scope, pages, placement)
    links_before = size(scope)
    links_after = links_before - (placement.old is not None) + (placement.entry is not None)
    if bool(links_before) == bool(links_after):
        return None
    [(_, target)] = scope_parts(scope.name)
    if links_after:
        return _change(scope, placement, left=[Member(id=target, why="link", rule="link")])
    return _change(scope, placement, entered=[Member(id=target, rule="link")])


def _place_amendment(scope: Scope, pages: Pages, placement: Placement) -> FrontierChange:
    """Return the change of a scope `amended=NAME`: every document that amends by name enters it, until it leaves."""
    left: list[Member] = []
    if placement.old is not None:
        type_name, time, order = placement.old
        former = _former_entry(scope, pages, type_name, (time, order, placement.id))
        left.append(to_member(former, _reason_for_leaving(placement.cause, placement.entry), "link"))
    entered = [to_member(placement.entry, "holds", "link")] if placement.entry is not None else []
    return _change(scope, placement, entered=entered, left=left)


def _change(
    scope: Scope,
    placement: Placement,
    *,
    entered: Sequence[Member] = (),
    left: Sequence[Member] = (),
    entered_runs: Sequence[Run] = (),
    left_runs: Sequence[Run] = (),
) -> FrontierChange:
    return FrontierChange(
        scope=scope.name,
        seq=scope.seq + 1,
        cause=placement.cause,
        offset=placement.offset,
        entered=tuple(entered),
        left=tuple(left),
        entered_runs=tuple(entered_runs),
        left_runs=tuple(left_runs),
    )


def _former_entry(scope: Scope, pages: Pages, type_name: str, member: SortKey) -> Entry:
    """Return a member as it is before the placement. Raises `StateContradiction` if it is not there."""
    time, order, name = member
    for entry in members_between(scope, pages, type_name, (time, order), (time, order + 1)):
        if entry.id == name:
            return entry
    raise StateContradiction(scope, name)


def _reason_for_leaving(cause: Cause, entry: Entry | None) -> Ended:
    """Return why a document's former revision left: it was retracted, corrected in this scope, or moved to others."""
    if cause.kind == "retracted":
        return "retracted"
    return "corrected" if entry is not None else "moved"


def _place_by_rules(scope: Scope, pages: Pages, placement: Placement, ruleset: Ruleset) -> FrontierChange | None:
    rules_by_type = ruleset.rules_by_type(scope.name)
    entry = placement.entry
    if placement.old is None and entry is not None:
        type_rules = rules_by_type.get(entry.type, NO_RULES)
        if type_rules.is_plain:
            return _insert_plain(scope, pages, placement, entry, type_rules, rules_by_type)
    return _replace(scope, pages, placement, ruleset, rules_by_type)


def _insert_plain(
    scope: Scope,
    pages: Pages,
    placement: Placement,
    entry: Entry,
    type_rules: TypeRules,
    rules_by_type: RulesByType,
) -> FrontierChange | None:
    """Insert a new member where no rule compares values: the most frequent step, and the shortest.

    Of each type that it voids, the members from their threshold up to the new member held and no longer do.
    """
    precedence = entry.precedence
    greatest = greatest_by_type(scope)
    left: list[Member] = []
    left_runs: list[Run] = []
    for clause in type_rules.supersedes:
        threshold = _supersession_threshold(greatest, rules_by_type[clause.type])
        if threshold < precedence and threshold <= greatest.get(clause.type, LOWEST):
            members, runs = _voided_members(scope, pages, clause, threshold, precedence)
            left += members
            left_runs += runs
    entry_holds = precedence >= _supersession_threshold(greatest, type_rules)
    if not (entry_holds or left or left_runs):
        return None
    entered = (to_member(entry, "holds", _amending_rule(scope, entry, type_rules)),) if entry_holds else ()
    return _change(scope, placement, entered=entered, left=left, left_runs=left_runs)


def _amending_rule(scope: Scope, entry: Entry, type_rules: TypeRules) -> str:
    """Return the first rule by which a member amends an earlier one; empty if there is none."""
    for clause in type_rules.amends:
        if least(scope, clause.type, entry.precedence) < entry.precedence:
            return clause.rule
    return ""


def _voided_members(
    scope: Scope, pages: Pages, clause: Clause, low: Precedence, high: Precedence
) -> tuple[list[Member], list[Run]]:
    """Return the members of a clause's type with `low <= precedence < high`: one by one, or as a run if many."""
    count = 0
    if scope.directory and len(page_entries_between(scope, pages, clause.type, low, high)) > 1:
        count = count_between(scope, pages, clause.type, low, high)
    members = list(members_between(scope, pages, clause.type, low, high)) if count <= LISTED_MAX else []
    count = max(count, len(members))
    if count > LISTED_MAX:
        return [], [_run(clause.type, Interval(low, high, entered=False), count, "voided", clause.rule)]
    return [to_member(member, "voided", clause.rule) for member in members], []


def _supersession_threshold(greatest: GreatestByType, type_rules: TypeRules) -> Precedence:
    """Return the greatest precedence of the types that void this one by a rule without `differ_on`."""
    threshold = LOWEST
    for clause in type_rules.superseded_by:
        if not clause.differ_on and (precedence := greatest.get(clause.type, LOWEST)) > threshold:
            threshold = precedence
    return threshold


def _replace(
    scope: Scope, pages: Pages, placement: Placement, ruleset: Ruleset, rules_by_type: RulesByType
) -> FrontierChange | None:
    """Apply any other placement: compare the thresholds before and after it, for each type that it can affect."""
    entry = placement.entry
    edit = _edit_of(placement, rules_by_type)
    greatest_before = greatest_by_type(scope)
    greatest_after = _greatest_after(scope, pages, greatest_before, edit)
    entered: list[Member] = []
    left: list[Member] = []
    entered_runs: list[Run] = []
    left_runs: list[Run] = []
    if edit.old is not None:
        threshold = _threshold_before(scope, pages, edit.old_rules, ruleset, greatest_before)
        former = _former_entry(scope, pages, *edit.old)
        if no_rule_supersedes(former, threshold, edit.old_rules):
            left.append(to_member(former, _reason_for_leaving(placement.cause, entry)))
    if entry is not None:
        threshold = _threshold_after(scope, pages, edit.new_rules, ruleset, greatest_after, edit)
        if no_rule_supersedes(entry, threshold, edit.new_rules):
            entered.append(to_member(entry, "holds", _amending_rule(scope, entry, edit.new_rules)))
    for type_name, (old_rule, new_rule) in _affected_types(edit).items():
        type_rules = rules_by_type[type_name]
        before = _threshold_before(scope, pages, type_rules, ruleset, greatest_before)
        after = _threshold_after(scope, pages, type_rules, ruleset, greatest_after, edit)
        change_filter = ChangeFilter(edit, type_rules, after.names)
        for interval in intervals(before, after):
            if interval.entered:
                members, runs = _changed_members(scope, pages, type_name, interval, change_filter, "holds", old_rule)
                entered += members
                entered_runs += runs
            else:
                members, runs = _changed_members(scope, pages, type_name, interval, change_filter, "voided", new_rule)
                left += members
                left_runs += runs
    if not (entered or left or entered_runs or left_runs):
        return None
    return _change(scope, placement, entered=entered, left=left, entered_runs=entered_runs, left_runs=left_runs)


def _edit_of(placement: Placement, rules_by_type: RulesByType) -> Edit:
    entry, old = placement.entry, placement.old
    return Edit(
        (old[0], (old[1], old[2], placement.id)) if old is not None else None,
        entry,
        rules_by_type.get(old[0], NO_RULES) if old is not None else NO_RULES,
        rules_by_type.get(entry.type, NO_RULES) if entry is not None else NO_RULES,
    )


def _greatest_after(scope: Scope, pages: Pages, greatest_before: GreatestByType, edit: Edit) -> GreatestByType:
    """Return the greatest precedence of every type as it will be after the edit."""
    after = dict(greatest_before)
    old, entry = edit.old, edit.entry
    if old is not None and after.get(old[0]) == old[1][:2]:
        after[old[0]] = greatest_without(scope, pages, *old)
    if entry is not None:
        after[entry.type] = max(after.get(entry.type, LOWEST), entry.precedence)
    return after


def _threshold_before(
    scope: Scope, pages: Pages, type_rules: TypeRules, ruleset: Ruleset, greatest_before: GreatestByType
) -> Threshold:
    return threshold_with(scope, pages, type_rules, ruleset, _supersession_threshold(greatest_before, type_rules))


def _threshold_after(
    scope: Scope, pages: Pages, type_rules: TypeRules, ruleset: Ruleset, greatest_after: GreatestByType, edit: Edit
) -> Threshold:
    plain = _supersession_threshold(greatest_after, type_rules)
    return threshold_with(scope, pages, type_rules, ruleset, plain, without=edit.removed, extra=edit.entry)


def _affected_types(edit: Edit) -> dict[str, tuple[str, str]]:
    """Return the types whose threshold may move, with the rules by which the old and the new revision void them."""
    rules: dict[str, tuple[str, str]] = {}
    for clause in edit.new_rules.supersedes:
        rules[clause.type] = ("", clause.rule)
    for clause in edit.old_rules.supersedes:
        rules[clause.type] = (clause.rule, rules.get(clause.type, ("", ""))[1])
    return rules


def to_member(entry: Entry, why: Why = "holds", rule: str = "") -> Member:
    """Return a member as a change or a snapshot names it."""
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


def _changed_members(
    scope: Scope,
    pages: Pages,
    type_name: str,
    interval: Interval,
    change_filter: ChangeFilter,
    why: Why,
    rule: str,
) -> tuple[list[Member], list[Run]]:
    """Return the members of an interval, without the cause's own document: one by one, or as a run if many."""
    if scope.directory and not change_filter.names:
        count = count_between(scope, pages, type_name, interval.low, interval.high)
        count -= _contains_removed(interval, type_name, change_filter.edit)
        if count > LISTED_MAX:
            return [], [_run(type_name, interval, count, why, rule)]
    members = members_between(scope, pages, type_name, interval.low, interval.high)
    changed = [member for member in members if _is_reported(member, interval, change_filter)]
    if len(changed) > LISTED_MAX:
        return [], [_run(type_name, interval, len(changed), why, rule)]
    return [to_member(member, why, rule) for member in changed], []


def _contains_removed(interval: Interval, type_name: str, edit: Edit) -> bool:
    return edit.old is not None and edit.old[0] == type_name and interval.low <= edit.old[1][:2] < interval.high


def _is_reported(member: Entry, interval: Interval, change_filter: ChangeFilter) -> bool:
    """Return whether a member is not the cause's own document and has a value to which the interval applies."""
    removed = change_filter.edit.removed
    if removed is not None and member.id == removed[2]:
        return False
    if not change_filter.names:
        return True
    value = values_of(member.compared, change_filter.type_rules.compared, change_filter.names)
    return value == interval.including if interval.including is not None else value not in interval.excluding


def _run(type_name: str, interval: Interval, count: int, why: Why, rule: str) -> Run:
    return Run(
        type=type_name,
        start=interval.low,
        end=interval.high,
        count=count,
        why=why,
        rule=rule,
        including=interval.including,
        excluding=interval.excluding,
    )
