"""The frontiers of somebody who received every change and can read the members of a scope."""

from stream_car.core.changes import FrontierChange, Run
from stream_car.core.differ_on import values_of
from stream_car.core.stored import Entry
from stream_car.core.timeline import members_between
from tests.support.memory_shard import Memory

Revision = tuple[str, int]


class Replay:
    """Applies changes. Fails if a member that enters is there already, one that leaves is not, or nothing changes."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.seqs: dict[str, int] = {}
        self.frontiers: dict[str, set[Revision]] = {}
        self.runs = 0

    def apply(self, change: FrontierChange) -> None:
        """Apply one change; the members of a run are read from the scope as it is after the step."""
        assert change.seq == self.seqs.get(change.scope, 0) + 1
        self.seqs[change.scope] = change.seq
        if change.scope.startswith("document="):
            return
        left = [(member.id, member.revision) for member in change.left]
        entered = [(member.id, member.revision) for member in change.entered]
        for run in change.left_runs:
            left += self._members(change, run)
        for run in change.entered_runs:
            entered += self._members(change, run)
        assert left or entered
        assert len({*left, *entered}) == len(left) + len(entered)
        members = self.frontiers.setdefault(change.scope, set())
        assert members.issuperset(left)
        assert members.isdisjoint(entered)
        members.difference_update(left)
        members.update(entered)

    def _members(self, change: FrontierChange, run: Run) -> list[Revision]:
        scope = self.memory.values.scopes[change.scope]
        assert scope is not None
        candidates = members_between(scope, self.memory.values.pages, run.type, run.start, run.end)
        members = [
            (member.id, member.revision)
            for member in candidates
            if member.id != change.cause.id and self._is_in(run, member, scope.name)
        ]
        assert len(members) == run.count
        self.runs += 1
        return members

    def _is_in(self, run: Run, member: Entry, scope: str) -> bool:
        type_rules = self.memory.fold.ruleset.type_rules(scope, run.type)
        names = next((clause.differ_on for clause in type_rules.superseded_by if clause.differ_on), ())
        value = values_of(member.compared, type_rules.compared, names)
        return value == run.including if run.including is not None else value not in run.excluding
