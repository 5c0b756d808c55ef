"""The frontiers that changes tell of, for somebody who heard every change and can read the members of a scope."""

from stream_car.core.changes import FrontierChange, Run
from stream_car.core.differ_on import values_of
from stream_car.core.stored import Entry
from stream_car.core.timeline import members_between
from tests.support.memory_shard import Memory

Revision = tuple[str, int]


class Replay:
    """Applies changes as they are told; refuses what was there already, was not there, or changed nothing."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.seqs: dict[str, int] = {}
        self.frontiers: dict[str, set[Revision]] = {}
        self.runs = 0

    def hear(self, change: FrontierChange) -> None:
        """Take one change in; a run is read from the scope as it is after the step."""
        assert change.seq == self.seqs.get(change.scope, 0) + 1
        self.seqs[change.scope] = change.seq
        if change.scope.startswith("document="):
            return
        left = [(one.id, one.revision) for one in change.left]
        entered = [(one.id, one.revision) for one in change.entered]
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
        found = members_between(scope, self.memory.values.pages, run.type, run.start, run.end)
        members = [
            (one.id, one.revision) for one in found if one.id != change.cause.id and self._says(scope.name, run, one)
        ]
        assert len(members) == run.count
        self.runs += 1
        return members

    def _says(self, scope: str, run: Run, member: Entry) -> bool:
        bearing = self.memory.fold.ruleset.type_rules(scope, run.type)
        names = next((clause.differ_on for clause in bearing.superseded_by if clause.differ_on), ())
        value = values_of(member.compared, bearing.compared, names)
        return value == run.including if run.including is not None else value not in run.excluding
