"""What Stream-CAR answers: the same values for the library, the command line and the network.

Promise: times are aware `datetime`s in UTC; as JSON they are RFC 3339, and every field is written.
"""

# ruff: noqa: PLC0414  those of publications are answers too

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from stream_car.codec.publishable import NewDocument
from stream_car.core.rule_pack import RulePack
from stream_car.queries.findings import PackageFindings
from stream_car.queries.publications import (
    Base64 as Base64,
    Converted as Converted,
    Published as Published,
    Quarantined as Quarantined,
    Rejected as Rejected,
    Replayed as Replayed,
    UnreadablePiece as UnreadablePiece,
    text_or_base64 as text_or_base64,
)
from stream_car.queries.steps import Incomplete as Incomplete, Step as Step  # part of what is answered

JsonValue = Annotated[object, Meta(extra_json_schema={"description": "Any JSON value."})]
DocumentStatus = Literal["in_force", "superseded", "retracted", "pending", "unknown"]
NamedBy = Literal["id", "chunk", "record", "alias", ""]


class Evidence(Struct, frozen=True, kw_only=True):
    """A document as an answer shows it; `status` is that at the answer's time.

    `scope` is as it was published, and so are the `attributes`, which are given only if the request includes them.
    `state` is what it says of its record, and `outcome` why it does not hold any more, each in a word of its rule pack;
    `state_text` and `outcome_text` are for people. A document in force with an outcome says that its record has ended.
    """

    id: str
    type: str
    time: datetime
    order: int = 0
    revision: int = 1
    status: DocumentStatus = "in_force"
    title: str = ""
    text: str = ""
    source: str = ""
    url: str = ""
    scope: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    attributes: Mapping[str, JsonValue] = {}
    state: str = ""
    state_text: str = ""
    state_since: datetime | None = None
    outcome: str = ""
    outcome_text: str = ""


class Amendment(Struct, frozen=True, kw_only=True):
    """A document in force that amends another, and the path from that one to it.

    The first step amends; further steps supersede the first amendment.
    """

    document: Evidence
    path: tuple[Step, ...]


class Controlling(Struct, frozen=True, kw_only=True):
    """A document in force, and the path from the anchor to it (empty if it is the anchor).

    Read it together with its `amendments`; `amendments_more` counts those that are not listed.
    """

    document: Evidence
    path: tuple[Step, ...] = ()
    amendments: tuple[Amendment, ...] = ()
    amendments_more: int = 0


class Group(Struct, frozen=True, kw_only=True):
    """An anchor and what controls it now: the active documents of `cl({anchor})` (Definition 3).

    If there are very many, the latest are listed and `controlling_more` counts the others. `superseded` are the
    documents on the paths, as evidence; `missing` names successors that are not here; `cycle` lists documents
    that supersede one another. If the search for what controls the anchor was cut short, `next` names the documents at
    which it stopped: `resolve` them for the rest. `probability` is that this anchor is meant, given the question.
    """

    anchor: Evidence
    score: float = 0.0
    probability: float = 0.0
    controlling: tuple[Controlling, ...] = ()
    controlling_more: int = 0
    superseded: tuple[Evidence, ...] = ()
    complete: bool = True
    reasons: tuple[Incomplete, ...] = ()
    missing: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()
    next: tuple[str, ...] = ()


class Certificate(Struct, frozen=True, kw_only=True):
    """What the answer guarantees: Theorem 4 for the `covered` anchors, as of the input before `cut`.

    `cut` has one offset per intake shard. `phi` is scope identifiability, `kappa` the scope ambiguity ratio
    (Definition 5). `rounds` and `lookups` count the reads of Stage 2 and the keys that they read. `pending` counts
    documents that wait for their time: they supersede nothing yet, not even as of a time in the future.
    """

    covered: tuple[str, ...]
    not_covered: tuple[str, ...] = ()
    complete: bool = True
    reasons: tuple[Incomplete, ...] = ()
    phi: float = 1.0
    kappa: float = 1.0
    coverage: float = 1.0
    generation: str = ""
    cut: tuple[int, ...] = ()
    as_of: datetime | None = None
    pending: int = 0
    rounds: int = 0
    lookups: int = 0


class PlausibleScope(Struct, frozen=True, kw_only=True):
    """A scope that the question may mean, and the probability that it does (Definition 8).

    `coverage` is the part of that probability whose anchors the answer covers.
    """

    scope: str
    probability: float
    coverage: float = 0.0


class Answer(Struct, frozen=True, kw_only=True):
    """`front(cl(A_k(q)))`: groups in order of relevance, with a bonus for anchors that something supersedes.

    `results` are the controlling documents, best first. `scopes` are those that the question may mean, most likely
    first; the rest of the probability lies with unlikely scopes and anchors that were not examined. `pending`
    counts documents that wait for their time, `vectors_pending` those found only by their words because their
    vectors are still being made, `ignored_terms` the most common words of a long question, which were not searched.
    `closeness` is the share of the question that the best match has, from 0 to 1. If `is_close` is false, the
    documents share little with the question, so they probably do not answer it.
    `packages` are those that the question asks about, such as `requests 2.19`, and whether they are affected.
    """

    question: str
    results: tuple[Evidence, ...]
    groups: tuple[Group, ...]
    certificate: Certificate
    scopes: tuple[PlausibleScope, ...] = ()
    pending: int = 0
    vectors_pending: int = 0
    ignored_terms: int = 0
    closeness: float = 1.0
    is_close: bool = True
    packages: tuple[PackageFindings, ...] = ()


class Resolution(Struct, frozen=True, kw_only=True):
    """What a name means now. `via` tells how the name was read; `reasons`, why this may not be all.

    `outcome` is why the document or record does not hold any more, and `state` what is in force of it. If a name is
    unknown, `similar` are known ones that differ by one character.
    """

    name: str
    status: DocumentStatus
    via: NamedBy = ""
    state: str = ""
    state_text: str = ""
    state_since: datetime | None = None
    outcome: str = ""
    outcome_text: str = ""
    groups: tuple[Group, ...] = ()
    reasons: tuple[Incomplete, ...] = ()
    similar: tuple[str, ...] = ()


class OriginalDocument(NewDocument, frozen=True, kw_only=True, omit_defaults=False):
    """A document as it was published, as data. Publishing it again changes nothing."""

    time: datetime
    scope: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    amends: tuple[str, ...] = ()
    attributes: Mapping[str, JsonValue] = {}


class PublishedDocument(Struct, frozen=True, kw_only=True):
    """A document as it was published, its status now, and the records of which it is an edition.

    `outcome` and `state` are those of `Evidence`.
    """

    document: OriginalDocument
    status: DocumentStatus
    records: tuple[str, ...] = ()
    state: str = ""
    state_text: str = ""
    state_since: datetime | None = None
    outcome: str = ""
    outcome_text: str = ""


class Lookup(Struct, frozen=True, kw_only=True):
    """The documents that a name refers to, as they were published. `via` tells how the name was read.

    `status`, `outcome` and `state` are those of a `Resolution`. A document that was retracted is not returned.
    `reasons` tell why these may not be all.
    """

    name: str
    status: DocumentStatus
    via: NamedBy = ""
    state: str = ""
    state_text: str = ""
    state_since: datetime | None = None
    outcome: str = ""
    outcome_text: str = ""
    documents: tuple[PublishedDocument, ...] = ()
    reasons: tuple[Incomplete, ...] = ()
    similar: tuple[str, ...] = ()


class Violation(Struct, frozen=True, kw_only=True):
    """A condition of Theorem 4 that a set breaks, for one of its documents, and what repairs it.

    `frontier_inclusion`: `add` holds controlling documents that the set lacks.
    `ignored_superseder`: `id` is superseded and nothing in the set supersedes it; any of `add` repairs it.
    `outcome` is what became of `id`, if it is superseded.
    """

    condition: Literal["frontier_inclusion", "ignored_superseder"]
    id: str
    add: tuple[str, ...]
    path: tuple[Step, ...] = ()
    outcome: str = ""
    outcome_text: str = ""


class EndedRecord(Struct, frozen=True, kw_only=True):
    """A record of which nothing in force holds, such as a withdrawn advisory, and why."""

    name: str
    outcome: str
    outcome_text: str


class Audit(Struct, frozen=True, kw_only=True):
    """Whether a given set meets Theorem 4: it holds if there is no violation and every id is in the corpus.

    `repaired` is the set with what is missing added and what is superseded removed. `pending` documents wait for
    their time; `stranded` ones are superseded although nothing that is here controls them. `ended` are records, given
    by name, that hold no more although the document that says so is in force. `similar` are known names that differ
    from unknown ones by one character.
    """

    holds: bool
    violations: tuple[Violation, ...] = ()
    repaired: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    retracted: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    stranded: tuple[str, ...] = ()
    ended: tuple[EndedRecord, ...] = ()
    similar: Mapping[str, tuple[str, ...]] = {}
    certificate: Certificate | None = None


class Ending(Struct, frozen=True, kw_only=True):
    """What superseded a member of a scope, and when that took effect."""

    time: datetime
    id: str
    rule: str


class TimelineMember(Struct, frozen=True, kw_only=True):
    """A member of a scope's timeline: in force from `time` until it `ended`.

    `scope` is as it was published. `outcome` is what became of it; a member in force that has one says that its record
    has ended.
    """

    id: str
    type: str
    revision: int
    time: datetime
    append_time: datetime
    order: int = 0
    ended: Ending | None = None
    offset: int = 0
    title: str = ""
    scope: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    state: str = ""
    outcome: str = ""
    outcome_text: str = ""


class Blocked(Struct, frozen=True, kw_only=True):
    """A member that this scope does not supersede, but that another scope or a link does."""

    document: Evidence
    scope: str
    by: str
    rule: str


class Frontier(Struct, frozen=True, kw_only=True):
    """The active members of a scope; `blocked` ones are superseded through another scope or a link.

    `members` counts all members, `seq` the changes of this frontier. Both lists are latest first. `pairs` are the keys
    and values of the scope. If a listing goes on, its last item has in `next` what to pass as `after`.
    """

    scope: str
    in_force: tuple[Evidence, ...]
    blocked: tuple[Blocked, ...] = ()
    members: int = 0
    seq: int = 0
    complete: bool = True
    reasons: tuple[Incomplete, ...] = ()
    pairs: Mapping[str, str] = {}
    next: str = ""


class History(Struct, frozen=True, kw_only=True):
    """The timeline of a scope, oldest first. `pairs` are the keys and values of the scope.

    If a listing goes on, its last item has in `next` what to pass as `after`.
    """

    scope: str
    members: tuple[TimelineMember, ...]
    complete: bool = True
    reasons: tuple[Incomplete, ...] = ()
    pairs: Mapping[str, str] = {}
    next: str = ""


class Membership(Struct, frozen=True, kw_only=True):
    """One scope (or link) of a document: whether the document is in force there, and if not, what supersedes it."""

    scope: str
    holds: bool
    by: tuple[Step, ...] = ()


class Explanation(Struct, frozen=True, kw_only=True):
    """Why a document is or is not in force, scope by scope and link by link, and what controls it.

    Of a record, `document` is the edition in force, or else the latest. If a name is that of several records, it is of
    one that holds, and `others` names the other records. `status`, `outcome` and `state` are those of a `Resolution`.
    `due` is the time that a pending document waits for.
    """

    name: str
    status: DocumentStatus
    via: NamedBy = ""
    state: str = ""
    state_text: str = ""
    state_since: datetime | None = None
    outcome: str = ""
    outcome_text: str = ""
    document: Evidence | None = None
    memberships: tuple[Membership, ...] = ()
    group: Group | None = None
    others: tuple[str, ...] = ()
    due: datetime | None = None
    reasons: tuple[Incomplete, ...] = ()
    similar: tuple[str, ...] = ()


class ChangedMember(Struct, frozen=True, kw_only=True):
    """A document revision that entered or left a frontier, and the rule (or `link`) that moved it.

    `revision` is 0 and `time` is `None` for the target of a link, of which only the id is known. `rule` of a
    document that entered may name the rule by which it amends another member. `state` is what the document says of its
    record, and `outcome` what became of it by this change; one that entered with an outcome says that its record ended.
    """

    id: str
    revision: int = 0
    type: str = ""
    time: datetime | None = None
    order: int = 0
    why: Literal["holds", "voided", "retracted", "corrected", "moved", "link"] = "holds"
    rule: str = ""
    state: str = ""
    state_text: str = ""
    state_since: datetime | None = None
    outcome: str = ""
    outcome_text: str = ""


class ChangedRun(Struct, frozen=True, kw_only=True):
    """All members of a type from `start` up to `end`, both as (time, order), except the cause's own document.

    `None` means unbounded. `including` and `excluding` restrict the run to members with (without) these values.
    """

    type: str
    count: int
    start: datetime | None = None
    start_order: int = 0
    end: datetime | None = None
    end_order: int = 0
    why: Literal["holds", "voided", "retracted", "corrected", "moved", "link"] = "holds"
    rule: str = ""
    including: tuple[str, ...] | None = None
    excluding: tuple[tuple[str, ...], ...] = ()


class ChangeCause(Struct, frozen=True, kw_only=True):
    """The document whose arrival, correction, retraction or release caused a change.

    `time` is the time of the document. Of a correction or a retraction, it is when that arrived: events of documents
    and records have it, those of scopes only what never differs between two readings.
    """

    id: str
    revision: int
    kind: Literal["placed", "corrected", "moved", "retracted", "released"] = "placed"
    title: str = ""
    url: str = ""
    source: str = ""
    time: datetime | None = None


class Change(Struct, frozen=True, kw_only=True):
    """A change of a scope's frontier: `entered` is in force in this scope now, `left` no longer.

    `position` orders changes and continues a listing after this one. `seq` counts the changes of the scope from 1
    without a gap. `offset` is the input that caused it. Runs stand for more than 256 members of one type.
    `pairs` are the keys and values of the scope.
    """

    position: str
    scope: str
    seq: int
    cause: ChangeCause
    offset: int
    entered: tuple[ChangedMember, ...] = ()
    left: tuple[ChangedMember, ...] = ()
    entered_runs: tuple[ChangedRun, ...] = ()
    left_runs: tuple[ChangedRun, ...] = ()
    pairs: Mapping[str, str] = {}


class PendingDocument(Struct, frozen=True, kw_only=True):
    """A document revision that waits for its time. A listing continues after its `position`."""

    id: str
    revision: int
    time: datetime
    position: str = ""


class Rules(Struct, frozen=True, kw_only=True):
    """The rule packs in force; `generation` changes whenever anything in them does."""

    generation: str
    packs: tuple[RulePack, ...]


class Status(Struct, frozen=True, kw_only=True):
    """The state of an installation.

    `cursor` is that of the last change, `changes_from` the first change that is surely kept. `outcomes` counts the
    messages of the log by what became of them. `lag` is the number of changes that the slowest subscriber has not
    received. `quarantined` are records that the engine failed on and that were neither retried nor dropped. `reasons`
    tell why documents may be missing.
    """

    version: str
    generation: str
    next_offset: int
    cursor: str
    changes_from: int
    documents: int
    pending: int
    outcomes: Mapping[str, int]
    subscriptions: int = 0
    lag: int = 0
    quarantined: int = 0
    reasons: tuple[Incomplete, ...] = ()


class Difference(Struct, frozen=True, kw_only=True):
    """A document whose status is another under other rules. `why` names what supersedes it, before or after.

    `unknown`: rejected, retracted or never published.
    """

    id: str
    before: DocumentStatus
    after: DocumentStatus
    why: tuple[Step, ...] = ()


class StatusCount(Struct, frozen=True, kw_only=True):
    """How many documents change from one status to another."""

    before: DocumentStatus
    after: DocumentStatus
    documents: int


class RebuildStatus(Struct, frozen=True, kw_only=True):
    """The progress of a rebuild: `applied` messages of `end`. `failed` changed nothing; `detail` tells what happened.

    A dry run ends as `compared`, with every difference counted and the first thousand of them listed.
    """

    state: Literal["none", "building", "comparing", "compared", "switched", "failed"] = "none"
    dry_run: bool = False
    applied: int = 0
    end: int = 0
    counts: tuple[StatusCount, ...] = ()
    differences: tuple[Difference, ...] = ()
    detail: str = ""

    @property
    def is_running(self) -> bool:
        """Whether it goes on."""
        return self.state in ("building", "comparing")
