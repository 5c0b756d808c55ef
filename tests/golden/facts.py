"""What an installation says of its documents, in a form that outlives the names of fields and types.

Promise: two installations that decide alike give equal facts, whatever release wrote their data.
"""

from base64 import b64encode
from collections.abc import Sequence

from stream_car.api.json import read
from stream_car.core.changes import FrontierChange
from stream_car.local.engine import Engine
from stream_car.queries.answers import Explanation, Frontier, History, Rejected, Resolution, Told
from stream_car.subscriptions.events import Event

Facts = dict[str, object]
SCOPES = (
    {"cve": "CVE-2024-0001", "package": "crowded"},
    {"canteen": "north, hall=1"},
    {"record": "weekly"},
    {"document": "linked-1"},
    {"amended": "linked-2"},
)
QUESTIONS = ("remote code execution in Log4j", "advisory number 12 of a crowd", "soup", "kitchen closed")


def facts(engine: Engine) -> Facts:
    """Everything that is to survive."""
    names = sorted(engine._built.names())
    header = engine.header()
    return {
        "generation": engine.generation,
        "digest": engine.ruleset.digest,
        "next_offset": engine.next_offset,
        "documents": header.documents,
        "outcomes": dict(sorted(header.counts.items())),
        "resolved": {one.asked: resolved(one) for one in engine.resolve(names)},
        "explained": {name: explained(engine.explain(name)) for name in names if not name.startswith("crowd-")},
        "frontiers": [[frontier(one) for one in engine.frontier(parts)] for parts in SCOPES],
        "as_of": [frontier(one) for one in engine.frontier(SCOPES[0], as_of=1_705_000_000_000_000)],
        "histories": [[history(one) for one in engine.history(parts)] for parts in SCOPES],
        "changes": [[one.position, one.oseq, change(one.change)] for one in engine.changes(limit=10_000)],
        "rejected": [rejected(one) for one in engine.rejected(limit=1000)],
        "pending": [list(one) for one in engine.pending()],
        "answers": {text: [one.id for one in engine.query(text).results] for text in QUESTIONS},
    }


def resolved(one: Resolution) -> list[object]:
    groups = [
        [group.anchor.id, sorted((c.document.id, [[s.id, s.rule, s.scope] for s in c.path]) for c in group.controlling)]
        for group in one.groups
    ]
    return [one.status, one.via, groups, [[list(g.missing), list(g.cycle), g.controlling_more] for g in one.groups]]


def explained(one: Explanation) -> list[object]:
    bonds = [[b.scope, b.holds, [[s.id, s.rule, s.scope] for s in b.by]] for b in one.bonds]
    return [one.status, bonds, one.due]


def frontier(one: Frontier) -> list[object]:
    return [one.scope, sorted(d.id for d in one.active), sorted([b.document.id, b.by] for b in one.blocked), one.seq]


def history(one: History) -> list[object]:
    members = [
        [m.id, m.revision, m.time, m.order, [m.ended.time, m.ended.id, m.ended.rule] if m.ended else None, m.offset]
        for m in one.members
    ]
    return [one.scope, members]


def change(one: FrontierChange) -> list[object]:
    moved = [[[m.id, m.revision, m.why, m.rule] for m in members] for members in (one.entered, one.left)]
    runs = [[[r.type, list(r.start), list(r.end), r.count] for r in rs] for rs in (one.entered_runs, one.left_runs)]
    return [one.scope, one.seq, [one.cause.id, one.cause.revision, one.cause.kind], one.offset, moved, runs]


def rejected(one: Rejected) -> list[object]:
    return [one.offset, one.code, one.id, b64encode(one.value).decode(), one.oseq]


def event(one: Event) -> list[object]:
    """An event of a subscription; those of documents by what they tell of them."""
    data = one.data
    name = getattr(data, "id", getattr(data, "scope", ""))
    if isinstance(data, Told):
        return [one.event, one.cursor, data.position, change(data.change)]
    return [one.event, one.cursor, name, getattr(data, "active", None)]


def events(some: Sequence[Event]) -> list[list[object]]:
    return [event(one) for one in some]


__all__ = ["Facts", "events", "facts", "read"]
