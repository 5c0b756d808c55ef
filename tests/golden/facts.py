"""What an installation answers about its documents, in a form that does not depend on the names of fields and types.

Promise: two installations that decide alike give equal facts, whichever release wrote their data. Times are integer
microseconds, and `STATUS` has the words of the first fixtures, which are never written again.
"""

from base64 import b64encode
from collections.abc import Iterable
from datetime import datetime

from msgspec import structs

from stream_car.codec.times import from_micros, to_micros
from stream_car.core.stored import LOWEST
from stream_car.local.engine import Engine
from stream_car.queries.answers import (
    Change,
    ChangedRun,
    DocumentStatus,
    Explanation,
    Frontier,
    History,
    PendingDocument,
    Rejected,
    Resolution,
    Step,
    TimelineMember,
)
from stream_car.queries.changes import Position
from stream_car.subscriptions.events import DocumentChange, Event, ScopeChange

Facts = dict[str, object]
STATUS: dict[DocumentStatus, str] = {
    "in_force": "active",
    "superseded": "void",
    "retracted": "retracted",
    "pending": "pending",
    "unknown": "unknown",
}
SCOPES = (
    {"cve": "CVE-2024-0001", "package": "crowded"},
    {"canteen": "north, hall=1"},
    {"record": "weekly"},
    {"document": "linked-1"},
    {"amended": "linked-2"},
)
QUESTIONS = ("remote code execution in Log4j", "advisory number 12 of a crowd", "soup", "kitchen closed")
AS_OF = 1_705_000_000_000_000


def facts(engine: Engine) -> Facts:
    """Return everything that must survive."""
    directory = engine.directory
    names = sorted(directory.projection.names())
    header = directory.header()
    changes = engine.changes(limit=10_000)
    return {
        "generation": directory.generation,
        "digest": directory.ruleset.digest,
        "next_offset": directory.next_offset,
        "documents": header.documents,
        "outcomes": dict(sorted(header.counts.items())),
        "resolved": {resolution.name: _resolution(resolution) for resolution in engine.resolve(names)},
        "explained": {name: _explanation(engine.explain(name)) for name in names if not name.startswith("crowd-")},
        "frontiers": [[_frontier(frontier) for frontier in engine.frontier(parts)] for parts in SCOPES],
        "as_of": [_frontier(frontier) for frontier in engine.frontier(SCOPES[0], as_of=from_micros(AS_OF))],
        "histories": [[_history(history) for history in engine.history(parts)] for parts in SCOPES],
        "changes": [[str(_position(change)), _position(change).number, _change(change)] for change in changes],
        "rejected": [_rejected(rejected) for rejected in engine.rejected(limit=1000)],
        "pending": [_pending(document) for document in engine.pending()],
        "answers": {text: [result.id for result in engine.query(text).results] for text in QUESTIONS},
    }


def event_facts(events: Iterable[Event]) -> list[list[object]]:
    """Return the facts of the events of a subscription that has only changes."""
    return [_event(event) for event in events]


def _resolution(resolution: Resolution) -> list[object]:
    groups = [
        [group.anchor.id, sorted((c.document.id, _steps(c.path)) for c in group.controlling)]
        for group in resolution.groups
    ]
    rest = [[list(group.missing), list(group.cycle), group.controlling_more] for group in resolution.groups]
    return [STATUS[resolution.status], resolution.via, groups, rest]


def _explanation(explanation: Explanation) -> list[object]:
    memberships = [[member.scope, member.holds, _steps(member.by)] for member in explanation.memberships]
    return [STATUS[explanation.status], memberships, _micros(explanation.due)]


def _steps(path: tuple[Step, ...]) -> list[list[str]]:
    return [[step.id, step.rule, step.scope] for step in path]


def _frontier(frontier: Frontier) -> list[object]:
    in_force = sorted(document.id for document in frontier.in_force)
    return [frontier.scope, in_force, sorted([b.document.id, b.by] for b in frontier.blocked), frontier.seq]


def _history(history: History) -> list[object]:
    return [history.scope, [_timeline_member(member) for member in history.members]]


def _timeline_member(member: TimelineMember) -> list[object]:
    ended = [_micros(member.ended.time), member.ended.id, member.ended.rule] if member.ended is not None else None
    return [member.id, member.revision, _micros(member.time), member.order, ended, member.offset]


def _change(change: Change) -> list[object]:
    members = [[[m.id, m.revision, m.why, m.rule] for m in side] for side in (change.entered, change.left)]
    runs = [[_run(run) for run in side] for side in (change.entered_runs, change.left_runs)]
    cause = [change.cause.id, change.cause.revision, change.cause.kind]
    return [change.scope, change.seq, cause, change.offset, members, runs]


def _run(run: ChangedRun) -> list[object]:
    start = list(LOWEST) if run.start is None else [_micros(run.start), run.start_order]
    end = list(LOWEST) if run.end is None else [_micros(run.end), run.end_order]
    return [run.type, start, end, run.count]


def _rejected(rejected: Rejected) -> list[object]:
    return [rejected.offset, rejected.code, rejected.id, b64encode(rejected.value).decode(), rejected.number]


def _pending(document: PendingDocument) -> list[object]:
    return [document.id, document.revision, _micros(document.time)]


def _unmarked(event: Event) -> str | None:
    """Return the cursor of an event as it was before cursors named a record of the log."""
    return event.cursor.partition("@")[0] if event.cursor is not None else None


def _event(event: Event) -> list[object]:
    if isinstance(event, ScopeChange):
        return ["change", _unmarked(event), str(_position(event.change)), _change(event.change)]
    assert isinstance(event, DocumentChange)
    return ["change", _unmarked(event), event.id, event.in_force]


def _position(change: Change) -> Position:
    """The position of a change without its mark, which earlier releases did not have."""
    return structs.replace(Position.parse(change.position), mark="")


def _micros(time: datetime | None) -> int | None:
    return to_micros(time) if time is not None else None
