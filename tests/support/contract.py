"""The contract of the service: documents of every kind, every request, and how answers of two back ends are compared.

`converse` publishes the documents to a back end and sends it every request. Two back ends keep the contract if their
outcomes are equal as bytes. What a back end cannot do, it answers with the error `Unsupported`. A back end joins by its
`Calls`; one that is asynchronous joins by `BlockingCalls`.
"""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeVar
from unittest.mock import patch

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from stream_car import Retraction, StreamCarError
from stream_car.api import requests as r
from stream_car.api.arguments import ALL
from stream_car.api.bookmark import Bookmark
from stream_car.api.calls import Calls
from stream_car.api.calls_aio import AsyncCalls
from stream_car.api.json import to_json
from stream_car.codec import Publishable, Publishables, encode
from stream_car.codec.times import format_time, from_micros
from stream_car.core.rule_pack import Key, RulePack
from stream_car.core.rules import Ruleset
from stream_car.lockfiles.dependencies import DependencyFile
from stream_car.processing.receipts import Receipt
from stream_car.queries import answers as a
from stream_car.queries.read_options import MinRevision
from stream_car.subscriptions import subscription
from stream_car.subscriptions.events import (
    DocumentChange,
    Event,
    Heartbeat,
    RecordChange,
    Reset,
    ScopeChange,
    SnapshotBegin,
    SnapshotDocument,
    SnapshotEnd,
    SnapshotRecord,
    SnapshotScope,
    View,
)
from tests.support.background import Background
from tests.support.engines import RULESET as TALK, day, document, rule

A = TypeVar("A")

RULESET = Ruleset(
    [
        *TALK.packs,
        RulePack(
            name="shop",
            types=("offer", "withdrawal", "draft"),
            anchor_types=("offer", "withdrawal"),
            rules=(
                replace(rule("withdrawal-voids-offer", "withdrawal", "offer", "product"), outcome="withdrawn"),
                rule("later-draft", "draft", "draft", "product"),
                replace(rule("later-offer", "offer", "offer", "record"), outcome="updated", material=("price",)),
                replace(rule("withdrawal-of-record", "withdrawal", "offer", "record"), outcome="withdrawn"),
            ),
            keys={"product": Key(fold="lower", by_name=True), "item": Key(rename="product")},
            states={"offer": "open", "withdrawal": "withdrawn"},
            ending_states=("withdrawn",),
        ),
    ]
)
PEACE = """
name = "talk"
[types]
claim = "A claim."
denial = "A denial, which voids nothing."
[keys.topic]
[[rules]]
name = "claim-voids-denial"
superseding = "claim"
superseded = "denial"
scope = ["topic"]
"""

UNTIL_2 = [{"events": [{"introduced": "0"}, {"fixed": "2.0"}]}]
MUGS = {"affected": [{"package": {"ecosystem": "npm", "name": "Mug"}, "ranges": UNTIL_2}]}
LATE = {**MUGS, "record_since": format_time(day(2))}  # a record that is older than its first edition here
ODD_ID = "a/b%2F c?d#e&é=\u2028\"'"
FUTURE = 9001  # a day after 2040
LAST = "last"
# Published one by one, so that several shards apply them in this order. Only drafts are retracted or corrected, because
# they are not searched: until segments are merged, the index counts what was replaced, and scores depend on that.
STATEMENTS = (
    document("claim-1", at=1, topic="tea", text="green tea is healthy"),
    document("claim-2", at=2, topic="tea", place="home", text="tea at home"),
    document("denial-1", "denial", 3, topic="tea", text="no tea is healthy"),
    document("doubt-1", "doubt", 4, topic="tea", text="doubt the study"),
    document("note-1", "note", 5, topic="tea", text="two cups"),
    document("fact-1", "fact", 1, subject="kettle", attributes={"value": "hot"}, text="the kettle is hot"),
    document("fact-2", "fact", 2, subject="kettle", attributes={"value": "cold"}, text="the kettle is cold"),
    document("edition@1", at=1, record="edition", text="first edition of the tea book"),
    document("edition@2", at=2, record="edition", text="second edition of the tea book"),
    document("linked", at=1, topic="milk", text="milk in tea"),
    document("link", "note", 2, supersedes=("linked",), text="never mind the milk"),
    document("amending-link", "note", 3, amends=("edition@2",), text="errata of the book"),
    document("orphan", at=1, topic="sugar", superseded_by=("nobody",), text="sugar in tea"),
    document("offer-1", "offer", 1, product="Cup", text="a cup for tea"),
    document("withdrawal-1", "withdrawal", 2, item="CUP", text="the cup is sold out"),
    document("deal@1", "offer", 1, record="deal", attributes={"price": 1}, text="a deal"),
    document("deal@2", "offer", 2, record="deal", attributes={"price": 1}, text="the deal in other words"),
    document("deal@3", "offer", 3, record="deal", attributes={"price": 2}, text="the deal at another price"),
    document("gone@1", "offer", 1, record="gone", text="an offer that was good"),
    document("gone@2", "withdrawal", 2, record="gone", attributes={"state_since": "2019-05-01"}, text="no more"),
    document("draft-1", "draft", 1, product="pot", text="pot"),
    document("draft-1", "draft", 1, revision=2, product="pan", text="pan"),
    document("draft-2", "draft", 2, product="pan", text="another pan"),
    Retraction(id="draft-2", revision=1),
    document("pending", at=FUTURE, topic="tea", text="tea of the future"),
    document("no-scope", at=1, text="homeless", attributes={"superceded_by": "x"}),
    document(ODD_ID, at=1, topic="odd, one", text="an odd one"),
    document("claim-1", at=1, topic="tea", text="green tea is healthy"),
    document("claim-1", at=1, topic="coffee", text="a conflict"),
    document("flaw@1", "offer", 1, record="flaw", product="mug", attributes=MUGS, text="a mug that leaks"),
    document("flaw@2", "offer", 2, record="flaw", product="mug", attributes=MUGS, text="a leaking mug"),
    document("late@1", "offer", 5, record="late", product="mug", attributes=LATE, text="a mug that leaked before"),
    document(LAST, "fact", 99, subject="kettle", attributes={"value": "cold"}, text="the kettle is as cold as tea"),
)
BAD_INPUT = (
    b"{",
    b"\xff\xfe",
    b'{"id": "no-type", "time": "2020-01-01"}',
    b'{"id": "song", "type": "song", "time": "2020-01-01"}',
)
DOCUMENTS: tuple[Publishable, ...] = (*STATEMENTS[:-1], *BAD_INPUT, STATEMENTS[-1])
CORRECTION = encode(document("corrected", at=1, topic="corrections"))

# What depends on the log, the partitions and the clock of a back end.
NORMALIZED: dict[type[Struct], tuple[str, ...]] = {
    Receipt: ("offset",),
    a.Certificate: ("generation", "cut"),
    a.TimelineMember: ("append_time", "offset"),
    a.Change: ("position", "offset"),
    a.Rejected: ("offset", "append_time", "number"),
    a.Replayed: ("offset", "at"),
    a.Rules: ("generation",),
    a.Status: ("generation", "next_offset", "cursor", "changes_from"),
    SnapshotBegin: ("cursor", "generation"),
    SnapshotDocument: ("cursor",),
    SnapshotRecord: ("cursor",),
    RecordChange: ("cursor", "position"),
    SnapshotScope: ("cursor",),
    SnapshotEnd: ("cursor", "generation"),
    DocumentChange: ("cursor", "position"),
    ScopeChange: ("cursor",),
    Reset: ("cursor", "generation"),
    Heartbeat: ("cursor",),
}
ANY = "*"
UNORDERED = (a.Change, a.Rejected, a.Replayed, *Event.__args__)  # items that several shards list


class Conversation:
    """Sends requests to a back end, and keeps what came back, by the name of what was sent."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.outcomes: dict[str, str] = {}
        self.types: set[type[Struct]] = set()

    def send(self, name: str, request: r.Request[A]) -> A | None:
        """Send a request, keep its outcome, and return its answer unless it is an error."""
        try:
            answer = self.calls.call(request)
        except StreamCarError as error:
            self.keep(name, type(request), outcome_of_error(error))
            return None
        self.keep(name, type(request), to_json(normalized(answer)))
        return answer

    def keep(self, name: str, request_type: type[Struct], outcome: str) -> None:
        """Keep an outcome."""
        name = f"{request_type.__name__}: {name}"
        assert name not in self.outcomes, name
        self.outcomes[name] = outcome
        self.types.add(request_type)


class BlockingCalls(Calls):
    """The calls of something asynchronous that runs in another thread."""

    def __init__(self, background: Background[AsyncCalls]) -> None:
        self._background = background

    def _carry_out(self, request: r.Request[A]) -> A:
        return self._background.run(self._background.value.call(request))

    def _publish(self, documents: Publishables, options: r.PublishOptions) -> a.Published:
        return self._background.run(self._background.value._publish(documents, options))

    def _events(self, request: r.Subscribe, bookmark: Bookmark) -> Generator[Event, None, None]:
        events = self._background.value._events(request, bookmark)
        try:
            while True:
                yield self._background.run(anext(events))
        finally:
            self._background.run(events.aclose())


def request_types() -> set[type[Struct]]:
    """Every type of request that the API has."""
    types = {kind for kind in vars(r).values() if isinstance(kind, type) and issubclass(kind, r.Request)}
    return (types - {r.Request}) | {r.Subscribe}


def normalized(answer: object) -> object:
    """Return an answer as JSON values that do not depend on the back end.

    Offsets, cursors, positions, generations, append times and numbers of rejected input become `*`, unless they are
    `null`; the fields are those of `NORMALIZED`. A list of changes, rejected input or events is sorted by its JSON,
    because several shards are listed one after the other. Nothing else is changed.
    """
    if isinstance(answer, Struct):
        config, hidden = answer.__struct_config__, NORMALIZED.get(type(answer), ())
        values: dict[str, object] = {str(config.tag_field): config.tag} if config.tag is not None else {}
        if isinstance(answer, a.ChangeCause) and answer.kind not in ("placed", "released"):
            hidden = ("time",)  # when it arrived
        for field in msgspec.structs.fields(answer):
            value = getattr(answer, field.name)
            values[field.encode_name] = ANY if field.name in hidden and value is not None else normalized(value)
        return values
    if isinstance(answer, list | tuple):
        items = [normalized(item) for item in answer]
        return sorted(items, key=to_json) if answer and isinstance(answer[0], UNORDERED) else items
    if isinstance(answer, Mapping):
        return {name: normalized(value) for name, value in answer.items()}
    return msgspec.to_builtins(answer)


VIEWS: tuple[View, ...] = ("document", "scope", "record")
AS_OF = from_micros(day(3))
OUTCOMES = ("updated", "withdrawn")
NAMES = tuple(dict.fromkeys(statement.id for statement in STATEMENTS))
CHUNK = "claim-1#2"
RECORDS = ("edition", "deal", "gone", "late")
SCOPES = (
    "topic=tea",
    "place=home",
    "subject=kettle",
    "record=edition",
    "record=deal",
    "record=gone",
    "product=CUP",
    "item=cup",
    "topic=nothing",
)
REQUESTS: dict[str, r.Request[object]] = {
    "tea": r.Query(text="tea"),
    "tea, many": r.Query(text="tea", k=50, depth=100),
    "tea, then": r.Query(text="tea", as_of=AS_OF),
    "tea, few reads": r.Query(text="tea", budget=3),
    "tea, seen": r.Query(text="healthy tea", min_revisions=(MinRevision(LAST),)),
    "cup": r.Query(text="which cup"),
    "nothing": r.Query(text="zebra"),
    "tea at home": r.Query(text="tea", scope=("place=home",)),
    "tea in a scope that it is not in": r.Query(text="tea", scope=("product=CUP",)),
    "tea in two places": r.Query(text="tea", scope=("place=home", "place=work")),
    "plain tea at home": r.Search(text="tea", scope=("place=home",)),
    "sugar": r.Query(text="sugar in tea"),
    "a document that waits": r.Query(text="tea", min_revisions=(MinRevision("pending"),)),
    "a revision that never comes": r.Query(text="tea", min_revisions=(MinRevision("claim-1", 9),), timeout_ms=1),
    "no text": r.Query(text=" "),
    "no documents": r.Query(text="tea", k=0),
    "kettle, with attributes": r.Query(text="kettle", include=("attributes",)),
    "plain kettle, with attributes": r.Search(text="kettle", include=("attributes",)),
    "facts with attributes": r.Resolve(names=("fact-1", "fact-2"), include=("attributes",)),
    "frontier with attributes": r.GetFrontier(scope=("subject=kettle",), include=("attributes",)),
    "a fact with attributes": r.Explain(name="fact-1", include=("attributes",)),
    "plain tea": r.Search(text="tea"),
    "one plain tea": r.Search(text="tea", k=1),
    "every name": r.Resolve(names=(*NAMES, CHUNK, *RECORDS, "unknown")),
    "every name, then": r.Resolve(names=(*NAMES, CHUNK, *RECORDS, "unknown"), as_of=AS_OF),
    "other names": r.Resolve(names=("CUP", "cup@2", "pkg:generic/Cup@1?arch=x", "cups")),
    "mugs": r.GetAffected(packages=("mug@1.0", "pkg:npm/mug@2.1", "mug", "cup@1", "nothing@1"), all=True),
    "late mugs, then": r.GetFrontier(scope=("product=mug",), as_of=AS_OF),
    "a late mug, then": r.Explain(name="late", as_of=AS_OF),
    "a set of mugs, then": r.Check(ids=("flaw",), as_of=AS_OF),
    "leaking, then": r.Query(text="a mug that leaks", as_of=AS_OF),
    "mugs, then": r.GetAffected(packages=("mug@1.0",), as_of=AS_OF),
    "mugs, not seen": r.GetAffected(packages=("mug@1.0",), min_revisions=(MinRevision("unknown"),), timeout_ms=1),
    "mugs of a file": r.GetAffected(files=(DependencyFile(name="requirements.txt", text="mug==1.0"),)),
    "not a file": r.GetAffected(files=(DependencyFile(name="go.sum", text="mug"),)),
    "not a package": r.GetAffected(packages=("pkg:mug",)),
    "originals by other names": r.GetDocuments(names=("CUP", "pan@1", "cups")),
    "originals": r.GetDocuments(names=(*NAMES, CHUNK, *RECORDS, "unknown")),
    "originals, not seen": r.GetDocuments(names=("claim-1",), min_revisions=(MinRevision("unknown"),), timeout_ms=1),
    "a name, not seen": r.Resolve(names=("claim-1",), min_revisions=(MinRevision("unknown"),), timeout_ms=1),
    "an unsafe set": r.Check(ids=("claim-1", "denial-1", "orphan", "pending", "draft-2", "unknown")),
    "records": r.Check(ids=RECORDS),
    "a safe set": r.Check(ids=(LAST, "doubt-1")),
    "a set for a question": r.Check(ids=("fact-2",), question="healthy tea"),
    "a set, then": r.Check(ids=("claim-1", "denial-1"), question="tea", as_of=AS_OF),
    **{scope: r.GetFrontier(scope=(scope,)) for scope in SCOPES},
    **{
        f"{state} {noun} of {scope}": request(scope=(scope,), states=(state,))
        for scope in ("record=gone", "record=deal", "topic=tea")
        for state in ("in_force", "ended", "withdrawn", "updated")
        for noun, request in (("frontier", r.GetFrontier), ("history", r.GetHistory))
    },
    "no such type": r.GetFrontier(scope=("topic=tea",), types=("denials",)),
    "no such state": r.GetHistory(scope=("topic=tea",), states=("endet",)),
    "no such type of changes": r.GetChanges(types=("denials",)),
    "denials": r.GetHistory(scope=("topic=tea",), types=("denial",)),
    "denials in force": r.GetFrontier(scope=("topic=tea",), types=("denial",)),
    "changes of denials": r.GetChanges(scope=("topic=tea",), types=("denial",)),
    "withdrawals of record=gone": r.GetChanges(scope=("record=gone",), only=("withdrawn",)),
    "material changes of record=deal": r.GetChanges(scope=("record=deal",), material=True, states=("ended",)),
    "no such outcome": r.GetChanges(only=("withdrwn",)),
    "two pairs": r.GetFrontier(scope=("topic=tea", "place=home")),
    "two values": r.GetFrontier(scope=("topic=tea", "topic=milk")),
    "tea, on a day": r.GetFrontier(scope=("topic=tea",), as_of=AS_OF),
    **{f"history of {scope}": r.GetHistory(scope=(scope,)) for scope in SCOPES},
    "all changes": r.GetChanges(limit=ALL),
    **{f"changes of {scope}": r.GetChanges(scope=(scope,)) for scope in SCOPES},
    "changes of two values": r.GetChanges(scope=("topic=tea", "topic=milk")),
    "changes since": r.GetChanges(scope=("topic=tea", "topic=milk"), since=AS_OF),
    "first changes": r.GetChanges(scope=("subject=kettle",), limit=2),
    "not a position": r.GetChanges(after="nowhere"),
    **{name: r.Explain(name=name) for name in (*NAMES, CHUNK, *RECORDS, "unknown")},
    **{f"{name}, then": r.Explain(name=name, as_of=AS_OF) for name in ("claim-1", LAST)},
    "all": r.GetRejected(limit=ALL),
    "nothing set aside": r.GetQuarantine(),
    "not set aside": r.GetQuarantined(name="intake:0:0"),
    "not retried": r.RetryQuarantined(name="frontier:0:0"),
    "not dropped": r.DropQuarantined(name="intake:0:0"),
    "waiting": r.GetPending(),
    "in force": r.GetRules(),
    "after all": r.GetStatus(),
}


def converse(calls: Calls) -> Conversation:
    """Publish the documents to a back end without any, send every request, and return what came back."""
    conversation = Conversation(calls)
    before = conversation.send("before all", r.GetStatus())
    assert before is not None
    for number, published in enumerate(DOCUMENTS, 1):
        conversation.keep(str(number), r.Publish, to_json(normalized(calls.publish(published))))
    for name, request in REQUESTS.items():
        conversation.send(name, request)
    for name, events in _subscribe(calls, before.cursor):
        conversation.keep(name, r.Subscribe, to_json(normalized(events)))
    _send_what_follows(conversation)
    _send_rebuilds(conversation)
    return conversation


def outcome_of_error(error: StreamCarError) -> str:
    """Return what two back ends must have in common if they raise: the type and the code, not the words."""
    return f"{type(error).__name__} {getattr(error, 'code', '')}".rstrip()


def _send_what_follows(conversation: Conversation) -> None:
    """Continue listings after their first item, and replay rejected input."""
    send, calls = conversation.send, conversation.calls
    [change] = calls.changes({"subject": "kettle"}, limit=1)
    send("continued", r.GetChanges(scope=("subject=kettle",), after=change.position, limit=1))
    offsets = {rejected.code: rejected.offset for rejected in calls.rejected()}
    corrected = (r.Corrected(offset=offsets["syntax"], value=CORRECTION.decode()),)
    send("nothing", r.Replay())
    send("as it was, dry", r.Replay(offsets=tuple(sorted(offsets.values())), dry_run=True))
    send("corrected, dry", r.Replay(corrected=corrected, dry_run=True))
    send("corrected", r.Replay(corrected=corrected))
    send("corrected again", r.Replay(corrected=corrected))
    send("what was not rejected", r.Replay(offsets=(r.SAFE_INTEGER_MAX,)))


def _subscribe(calls: Calls, start: str) -> Iterator[tuple[str, Sequence[Event]]]:
    """Yield the snapshot of everything in both views, and the changes of one scope, which one shard has, in both."""
    for view in VIEWS:
        with patch.object(subscription, "MEMBERS_AT_ONCE", 1), calls.subscribe(view=view) as events:
            yield f"{view} snapshot", _up_to(events, lambda event: isinstance(event, SnapshotEnd))
        with calls.subscribe(view=view, scope="subject=kettle", after=start, include=["attributes"]) as events:
            yield f"{view} changes", _up_to(events, _is_last)
    for record, last in (("deal", "deal@3"), ("gone", "gone@2")):
        either = {"record": [record, "nothing"]}
        with calls.subscribe(view="record", scope=either, material=False, after=start) as events:
            yield f"all editions of {record}", _up_to(events, partial(_is_about, last))
        with calls.subscribe(view="record", scope=either, since=AS_OF - timedelta(days=1), only=OUTCOMES) as events:
            yield f"what became of {record}", _up_to(events, partial(_is_about, last))


def _is_about(document_id: str, event: Event) -> bool:
    return isinstance(event, RecordChange) and event.document.id == document_id


def _up_to(events: Iterator[Event], is_last: Callable[[Event], bool]) -> list[Event]:
    received: list[Event] = []
    while not received or not is_last(received[-1]):
        received.append(next(events))
    return received


def _is_last(event: Event) -> bool:
    """Whether an event belongs to the last document that was published, which enters one scope and removes nothing."""
    if isinstance(event, DocumentChange):
        return event.id == LAST
    if isinstance(event, RecordChange):
        return event.record == LAST
    return isinstance(event, ScopeChange) and event.change.cause.id == LAST


def _send_rebuilds(conversation: Conversation) -> None:
    """Compare with other rules, and then switch to them; under these, every type but two is unknown."""
    send, calls = conversation.send, conversation.calls
    peace = r.Rebuild(rules=(r.RuleText(name="peace.toml", text=PEACE),))
    send("no such pack", r.Rebuild(rules=("nothing-of-the-kind",)))
    send("before any", r.GetRebuildStatus())
    if send("dry run", replace(peace, dry_run=True)) is not None:
        _await_rebuild(calls)
    send("compared", r.GetRebuildStatus())
    if send("switch", peace) is not None:
        _await_rebuild(calls)
        status = replace(calls.status(), subscriptions=0, lag=0)  # a service may not have noticed their end
        after = (calls.rules(), status, calls.rejected(limit=ALL), calls.resolve(NAMES), calls.query("tea"))
        conversation.keep("after the switch", r.Rebuild, to_json(normalized(after)))
    send("ended", r.GetRebuildStatus())


def _await_rebuild(calls: Calls) -> None:
    while calls.rebuild_status().is_running:
        time.sleep(0.01)
