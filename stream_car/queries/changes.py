"""Frontier changes as answers and events show them, and their place among all changes.

Promise: the outcome of a member is that of the change alone, however late it is read: what became of it since then does
not count. The bodies that tell it are those of today.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from stream_car.codec.times import from_micros
from stream_car.core.changes import Cause, FrontierChange, Member, Run
from stream_car.core.documents import Precedence
from stream_car.core.revisions import document_key
from stream_car.core.rule_pack import REPLACED
from stream_car.core.rules import Ruleset
from stream_car.core.scope_names import scope_parts
from stream_car.core.stored import LOWEST, Entry
from stream_car.errors import InvalidRequest
from stream_car.ports import MarkedLog
from stream_car.queries.answers import Change, ChangeCause, ChangedMember, ChangedRun, Step
from stream_car.queries.listed_kinds import ListedKinds
from stream_car.queries.outcomes import Fate, Fates
from stream_car.queries.snapshot import Snapshot

DIGITS_MAX = 16
VOIDED = ("voided", "link")  # why a member left a frontier because of another document


NEW = ("placed", "released")  # the kinds of causes that are new documents


class Position(Struct, frozen=True):
    """The place of a change: `GENERATION/SHARD/NUMBER@MARK`.

    The mark names the record of the log that caused the change, see `ports.MarkedLog`. Topics of Kafka have no marks;
    there the part from `@` on is missing.
    """

    generation: str
    shard: int
    number: int
    mark: str = ""

    def __str__(self) -> str:
        text = f"{self.generation}/{self.shard}/{self.number}"
        return f"{text}@{self.mark}" if self.mark else text

    @classmethod
    def parse(cls, text: str) -> "Position":
        """Read a position. Raises `InvalidRequest` (`after`)."""
        place, _, mark = text.partition("@")
        generation, *numbers = place.split("/")
        if len(numbers) != 2 or not all(n.isascii() and n.isdecimal() and len(n) <= DIGITS_MAX for n in numbers):
            raise InvalidRequest("after", "`after` must be the `position` of a change: GENERATION/SHARD/NUMBER.")
        return cls(generation, int(numbers[0]), int(numbers[1]), mark)


class Positions(Struct, frozen=True):
    """Gives out the positions of changes of one generation, and takes them back.

    `marks` tells the log from others, if anything does.
    """

    generation: str
    marks: MarkedLog | None = None

    def of(self, shard: int, number: int, offset: int) -> Position:
        """Return the position of a change that the record at `offset` caused."""
        return Position(self.generation, shard, number, self.marks.mark(offset) if self.marks is not None else "")

    def parse(self, text: str) -> Position:
        """Read a position that was given out here. Raises `InvalidRequest` (`after`)."""
        position = Position.parse(text)
        if position.generation != self.generation:
            raise InvalidRequest(
                "after", "This position belongs to other rules. Omit it to start with the first change."
            )
        if self.marks is not None and not self.marks.has_mark(position.mark):
            raise InvalidRequest(
                "after",
                "This position belongs to another log or is too old. Omit it to start with the first change.",
            )
        return position


async def time_of(change: FrontierChange, snapshot: Snapshot) -> int | None:
    """When a change took effect: the time of the document that caused it; of a correction or a retraction its arrival.

    `None` if that document is not known yet, because the snapshot is older than the change.
    """
    time = own_time(change)
    if time is not None:
        return time
    stored = await snapshot.document(change.cause.id)
    if stored is None:
        return None
    return stored.time if change.cause.kind in NEW and stored.type else stored.entry.append_time


def decisive_documents(ruleset: Ruleset, changes: Iterable[FrontierChange]) -> list[str]:
    """Return the ids of the documents whose bodies tell the states and outcomes of the members of these changes."""
    return list(dict.fromkeys(name for change in changes for name in _decisive(ruleset, change)))


def _decisive(ruleset: Ruleset, change: FrontierChange) -> Iterator[str]:
    for member in (*change.left, *change.entered):
        rule = ruleset.rules.get(member.rule) if member.why in VOIDED else None
        if member.type in ruleset.states or (rule is not None and rule.material):
            yield member.id
        if member.why in VOIDED:
            yield change.cause.id


async def are_since(since: int, changes: Sequence[FrontierChange], snapshot: Snapshot) -> list[bool]:
    """Whether each of these changes took effect at a time or later, or may have. Their causes are read in one round."""
    await snapshot.load([document_key(change.cause.id) for change in changes])
    times = [await time_of(change, snapshot) for change in changes]
    return [time is None or time >= since for time in times]


def own_time(change: FrontierChange) -> int | None:
    """The time of the document that caused a change, if it is new and the change brought it into force.

    It never differs between two readings, whatever was published meanwhile.
    """
    cause = change.cause
    return next((member.time for member in change.entered if cause.kind in NEW and member.id == cause.id), None)


def listed_change(position: Position, change: FrontierChange, fates: Fates) -> Change:
    """Return a change as it is listed. `fates` has the `decisive_documents`."""
    return Change(
        position=str(position),
        scope=change.scope,
        seq=change.seq,
        cause=listed_cause(change.cause, own_time(change)),
        offset=change.offset,
        entered=tuple(_listed_member(member, change, fates) for member in change.entered),
        left=tuple(_listed_member(member, change, fates) for member in change.left),
        entered_runs=tuple(map(_listed_run, change.entered_runs)),
        left_runs=tuple(map(_listed_run, change.left_runs)),
        pairs=dict(scope_parts(change.scope)),
    )


def of_types(change: FrontierChange, kinds: ListedKinds) -> FrontierChange | None:
    """Return a change with only the members of these types; `None` if it has none."""
    if not kinds.types:
        return change
    change = replace(
        change,
        entered=tuple(member for member in change.entered if kinds.has_type(member.type)),
        left=tuple(member for member in change.left if kinds.has_type(member.type)),
        entered_runs=tuple(run for run in change.entered_runs if kinds.has_type(run.type)),
        left_runs=tuple(run for run in change.left_runs if kinds.has_type(run.type)),
    )
    return change if change.entered or change.left or change.entered_runs or change.left_runs else None


def of_fates(change: Change, kinds: ListedKinds, ruleset: Ruleset) -> Change | None:
    """Return a change with only the members that the states and outcomes select; `None` if it has none.

    A run is of one type and one rule, so their words are those of all its members.
    """
    if not kinds.judges_fates:
        return change

    def has(item: ChangedMember | ChangedRun, *, is_superseded: bool) -> bool:
        if isinstance(item, ChangedMember):
            state, outcome = item.state, item.outcome
        else:
            state = ruleset.states.get(item.type, "")
            outcome = ruleset.outcomes.get(item.rule, REPLACED) if item.why in VOIDED else ""
        is_listed = kinds.has_state(state=state, outcome=outcome, is_superseded=is_superseded)
        return is_listed and kinds.has_outcome(outcome)

    change = replace(
        change,
        entered=tuple(member for member in change.entered if has(member, is_superseded=False)),
        left=tuple(member for member in change.left if has(member, is_superseded=True)),
        entered_runs=tuple(run for run in change.entered_runs if has(run, is_superseded=False)),
        left_runs=tuple(run for run in change.left_runs if has(run, is_superseded=True)),
    )
    return change if change.entered or change.left or change.entered_runs or change.left_runs else None


def listed_cause(cause: Cause, time: int | None = None) -> ChangeCause:
    """Return the cause of a change as it is listed; `time` is when the change took effect."""
    return ChangeCause(
        id=cause.id,
        revision=cause.revision,
        kind=cause.kind,
        title=cause.title,
        url=cause.url,
        source=cause.source,
        time=from_micros(time) if time is not None else None,
    )


def _listed_member(member: Member, change: FrontierChange, fates: Fates) -> ChangedMember:
    """Return a member of a change as it is listed."""
    fate = _fate(member, change, fates)
    return ChangedMember(
        id=member.id,
        revision=member.revision,
        type=member.type,
        time=from_micros(member.time) if member.revision else None,
        order=member.order,
        why=member.why,
        rule=member.rule,
        state=fate.state,
        state_text=fate.state_text,
        state_since=fate.state_since,
        outcome=fate.outcome,
        outcome_text=fate.outcome_text,
    )


def _fate(member: Member, change: FrontierChange, fates: Fates) -> Fate:
    """Return what a member says of its record, and what became of it by this change."""
    if member.why in VOIDED:
        fate = fates.of(member.id, member.type, [Step(id=change.cause.id, rule=member.rule, scope=change.scope)])
        return fate if member.id != change.cause.id else replace(fate, outcome_text=fate.outcome)  # it says so itself
    fate = fates.of(member.id, member.type)
    return fate if member.why == "holds" else replace(fate, outcome="", outcome_text="")


def listed_entry(entry: Entry, fates: Fates) -> ChangedMember:
    """Return a member that is in force in a scope as a snapshot lists it."""
    fate = fates.of(entry.id, entry.type)
    return ChangedMember(
        id=entry.id,
        revision=entry.revision,
        type=entry.type,
        time=from_micros(entry.time),
        order=entry.order,
        state=fate.state,
        state_text=fate.state_text,
        state_since=fate.state_since,
        outcome=fate.outcome,
        outcome_text=fate.outcome_text,
    )


def _listed_run(run: Run) -> ChangedRun:
    start, end = _bound(run.start), _bound(run.end)
    return ChangedRun(
        type=run.type,
        count=run.count,
        start=from_micros(start[0]) if start is not None else None,
        start_order=start[1] if start is not None else 0,
        end=from_micros(end[0]) if end is not None else None,
        end_order=end[1] if end is not None else 0,
        why=run.why,
        rule=run.rule,
        including=run.including,
        excluding=run.excluding,
    )


def _bound(pair: Precedence) -> Precedence | None:
    return pair if pair != LOWEST else None
