"""Every request that Stream-CAR answers: one type each, with the limits that its description states.

Promise: the library builds these values, a client encodes them, HTTP decodes them, and `service.Service.call` answers
them. A value that its type does not accept is rejected by the library and by HTTP alike, with the field as the code.
Where the limit of the service is lower, because many share it, `IN_LIBRARY` beside it is that of a single program. A
client sends what is only too long for one request, such as `limit`, in several.
"""

from datetime import datetime
from typing import Annotated, Generic, Literal, TypeVar, get_args

from msgspec import Meta, Struct

from stream_car.codec.expectations import NOT_BLANK
from stream_car.codec.requests import IN_LIBRARY
from stream_car.lockfiles.dependencies import DependencyFile
from stream_car.processing.receipts import Receipt
from stream_car.queries import answers as a, limits
from stream_car.queries.findings import PackageFindings
from stream_car.queries.limits import DEPTH
from stream_car.queries.read_options import MinRevision
from stream_car.subscriptions.events import View

TEXT_MAX = 10_000
NAMES_MAX = 1_000
DOCUMENTS_MAX = 100  # names whose documents are returned whole
REVISIONS_MAX = 100
K_MAX = 100
DEPTH_MAX = 200
BUDGET_MAX = 1_000_000
TIMEOUT_MS = 5_000
TIMEOUT_MAX_MS = 30_000
PAGE_MAX = 1_000
PAIRS_MAX = 10_000  # of a subscription
CHANGES_PAIRS_MAX = 100
CURSOR_MAX = 8_000  # one number per shard
CORRECTED_MAX = 100
PACK_MAX = 1_000_000  # characters of a rule pack
SAFE_INTEGER_MAX = 2**53 - 1

A = TypeVar("A", covariant=True)  # noqa: PLC0105  the same name everywhere

Text = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=TEXT_MAX,
        pattern=NOT_BLANK,
        description="A question in words.",
        extra={IN_LIBRARY: limits.TEXT_MAX},
    ),
]
Name = Annotated[
    str, Meta(min_length=1, max_length=1_100, description="A document id, a chunk id, a record, or another name of it.")
]
Time = Annotated[
    datetime,
    Meta(
        tz=True,
        description="Answer as of this time: RFC 3339, or a date, which means midnight UTC.",
        examples=["2021-12-12T00:00:00Z"],
    ),
]
Names = Annotated[tuple[Name, ...], Meta(max_length=NAMES_MAX, extra={IN_LIBRARY: limits.NAMES_MAX})]
Count = Annotated[
    int, Meta(ge=1, le=K_MAX, description="How many documents to return.", extra={IN_LIBRARY: limits.K_MAX})
]
Depth = Annotated[
    int,
    Meta(
        ge=1, le=DEPTH_MAX, description="How many anchors relevance may propose.", extra={IN_LIBRARY: limits.DEPTH_MAX}
    ),
]
Budget = Annotated[
    int,
    Meta(
        ge=1,
        le=BUDGET_MAX,
        description="Stop after reading this many keys, most likely anchors first; the certificate lists the rest.",
    ),
]
Pair = Annotated[
    str,
    Meta(
        pattern=r"^[^=]+=[\s\S]+$",
        max_length=1_300,
        description="KEY=VALUE; selects the scopes that have all given pairs.",
        examples=["package=lodash"],
    ),
]
Scope = Annotated[tuple[Pair, ...], Meta(min_length=1, max_length=16)]
OptionalScope = Annotated[tuple[Pair, ...], Meta(max_length=16)]
Since = Annotated[
    datetime,
    Meta(
        tz=True,
        description="Only changes that took effect then or later, by the time of the document that caused them: RFC "
        "3339, or a date, which means midnight UTC.",
        examples=["2021-12-12"],
    ),
]
Number = Annotated[int, Meta(ge=0, le=SAFE_INTEGER_MAX)]
MembersLimit = Annotated[
    int,
    Meta(
        ge=1,
        le=PAGE_MAX,
        description="Return at most this many members, fewer if they are large.",
        extra={IN_LIBRARY: SAFE_INTEGER_MAX},
    ),
]
Limit = Annotated[
    int,
    Meta(
        ge=1,
        le=PAGE_MAX,
        description="Return at most this many, fewer if they are large.",
        extra={IN_LIBRARY: SAFE_INTEGER_MAX},
    ),
]
After = Annotated[str, Meta(max_length=CURSOR_MAX, description="Continue where a page ended: its `next`.")]
MinRevisions = Annotated[
    tuple[MinRevision, ...],
    Meta(max_length=REVISIONS_MAX, description="Answer only when these revisions, or later ones, are visible."),
]
Timeout = Annotated[int, Meta(ge=0, le=TIMEOUT_MAX_MS, description="How long to wait for `min_revisions`.")]
QuarantinedName = Annotated[
    str,
    Meta(
        pattern=r"^(intake|frontier):[0-9]{1,9}:[0-9]{1,18}$",
        description="A record in quarantine: hop, shard and offset, as they are listed.",
        examples=["intake:0:17"],
    ),
]
RuleName = Annotated[str, Meta(min_length=1, max_length=200, extra={IN_LIBRARY: limits.PATH_MAX})]
Outcome = Annotated[str, Meta(min_length=1, max_length=200, examples=["withdrawn"])]
Types = Annotated[tuple[Name, ...], Meta(max_length=100, description="Only documents of these types.")]
Only = Annotated[tuple[Outcome, ...], Meta(max_length=100, description="Only changes with one of these outcomes.")]
States = Annotated[
    tuple[Outcome, ...],
    Meta(
        max_length=100,
        description="Only documents that stand so: `in_force` (nothing supersedes them, nor has their record ended), "
        "`ended` (all others), or a word of a rule pack for what became of them, or else for what they say of their "
        "record. A page may have fewer documents than its limit, or none; `next` says whether it goes on.",
        examples=["in_force"],
    ),
]
Part = Literal["attributes"]
Include = Annotated[
    tuple[Part, ...],
    Meta(max_length=10, description="Also give the attributes of each document."),
]
Future = Literal["wait", "apply"]


class Request(Struct, Generic[A], frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request that is answered by an `A`."""


class Publish(Request[a.Published], frozen=True, kw_only=True):
    """Store documents durably and apply them; the receipts are in order. Bad input is rejected by its receipt.

    `documents` are their bytes as they were sent. `client` names who sent them, if what is kept of a client's rejected
    input has a limit. If the call is `strict`, nothing is stored unless each document is valid, joins a scope and has
    no unknown key. With a `format`, each of `documents` is the content of a file of a publisher's own format.
    """

    documents: tuple[bytes, ...]
    client: str | None = None
    strict: bool = False
    format: str = ""


class PublishOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How documents are published."""

    strict: Annotated[
        bool,
        Meta(description="Store nothing unless each document is valid, joins a scope and has no unknown key."),
    ] = False
    format: Annotated[
        str, Meta(max_length=100, description="Read a publisher's own format, such as `osv`: see `stream-car formats`.")
    ] = ""


class Query(Request[a.Answer], frozen=True, kw_only=True):
    """Find the documents in force for a question, best first, each with the path that leads to it."""

    text: Text
    k: Count = 5
    depth: Depth = DEPTH
    as_of: Time | None = None
    budget: Budget | None = None
    scope: OptionalScope = ()
    min_revisions: MinRevisions = ()
    timeout_ms: Timeout = TIMEOUT_MS
    include: Include = ()


class Search(Request[tuple[a.Evidence, ...]], frozen=True, kw_only=True):
    """Find what plain search returns, in force or not: Stage 1 alone."""

    text: Text
    k: Count = 5
    scope: OptionalScope = ()
    include: Include = ()


class Resolve(Request[tuple[a.Resolution, ...]], frozen=True, kw_only=True):
    """Report what controls each of these documents, chunks (`document#chunk`) or records now.

    A record also has other names: the values of scope keys that its rule pack marks with `by_name`. A version after `@`
    and the form of a purl are allowed: `lodash@4.17.4` and `pkg:npm/lodash` mean `lodash`.
    """

    names: Names
    as_of: Time | None = None
    min_revisions: MinRevisions = ()
    timeout_ms: Timeout = TIMEOUT_MS
    include: Include = ()


class GetDocuments(Request[tuple[a.Lookup, ...]], frozen=True, kw_only=True):
    """Return documents as they were published, by id, chunk (`document#chunk`) or record, with their status now.

    Of a record, the editions in force are returned; if there are none, the latest one.
    """

    names: Annotated[tuple[Name, ...], Meta(max_length=DOCUMENTS_MAX, extra={IN_LIBRARY: limits.NAMES_MAX})]
    min_revisions: MinRevisions = ()
    timeout_ms: Timeout = TIMEOUT_MS


class GetAffected(Request[tuple[PackageFindings, ...]], frozen=True, kw_only=True):
    """Report for each package and version which records in force say that it is affected, and what it is fixed in.

    A package is a purl, `name@version`, or `name==version` as Python writes it. `files` are lockfiles and bills of
    material, whose packages follow. `product` is the purl of what the packages are part of, by default what a file
    says: VEX statements about it overrule records. Those about a package alone do so only if their author is among
    `vex_authors`, and if that is given, no other author's do. With `all`, records that do not concern the version are
    listed as well, and those that hold no more.
    """

    packages: Annotated[tuple[Name, ...], Meta(max_length=NAMES_MAX, extra={IN_LIBRARY: limits.NAMES_MAX})] = ()
    files: Annotated[tuple[DependencyFile, ...], Meta(max_length=20)] = ()
    product: Annotated[str, Meta(max_length=1_100)] = ""
    vex_authors: Annotated[tuple[Name, ...], Meta(max_length=100)] = ()
    all: bool = False
    as_of: Time | None = None
    min_revisions: MinRevisions = ()
    timeout_ms: Timeout = TIMEOUT_MS


class Check(Request[a.Audit], frozen=True, kw_only=True):
    """Check whether a retrieved set is safe by Theorem 4, and report what would repair it.

    With a `question`, frontier inclusion is judged for the anchors that it finds, otherwise for the set itself.
    """

    ids: Names
    question: Text | None = None
    depth: Depth = 20
    as_of: Time | None = None
    min_revisions: MinRevisions = ()
    timeout_ms: Timeout = TIMEOUT_MS


class GetFrontier(Request[tuple[a.Frontier, ...]], frozen=True, kw_only=True):
    """List the active members of every scope that has these `KEY=VALUE` pairs."""

    scope: Scope
    as_of: Time | None = None
    types: Types = ()
    states: States = ()
    include: Include = ()
    after: After = ""
    limit: MembersLimit = PAGE_MAX


class GetHistory(Request[tuple[a.History, ...]], frozen=True, kw_only=True):
    """List the timeline of every scope that has these pairs: from when to when each member was in force."""

    scope: Scope
    types: Types = ()
    states: States = ()
    after: After = ""
    limit: MembersLimit = PAGE_MAX


class GetChanges(Request[tuple[a.Change, ...]], frozen=True, kw_only=True):
    """List frontier changes, oldest first: of all scopes, or of those that have these pairs.

    Of a key with several values, any of them. With `types`, `states`, `only` and `material`, a change has only the
    members that all of these select. Shards are listed one after the other.
    """

    scope: Annotated[tuple[Pair, ...], Meta(max_length=CHANGES_PAIRS_MAX)] = ()
    types: Types = ()
    states: States = ()
    only: Only = ()
    material: Annotated[bool, Meta(description="Leave out editions that change nothing material.")] = False
    since: Since | None = None
    after: Annotated[str, Meta(max_length=200, description="Continue after the change with this `position`.")] = ""
    limit: Limit = 100


class Explain(Request[a.Explanation], frozen=True, kw_only=True):
    """Explain why a document is or is not in force, and what controls it."""

    name: Name
    as_of: Time | None = None
    include: Include = ()


class GetRejected(Request[tuple[a.Rejected, ...]], frozen=True, kw_only=True):
    """List rejected input with its bytes, oldest first."""

    after: Annotated[Number, Meta(description="Continue after the input with this `number`.")] = 0
    limit: Limit = 100


class Corrected(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to send in place of a rejected input: its text, or its bytes as base64."""

    offset: Number
    value: Annotated[str, Meta(max_length=300_000)] | a.Base64

    @property
    def content(self) -> bytes:
        """The bytes to send."""
        return self.value.base64 if isinstance(self.value, a.Base64) else self.value.encode()


class Replay(Request[tuple[a.Replayed, ...]], frozen=True, kw_only=True):
    """Send rejected input again, each at most once: as it was sent, or corrected.

    Input that would be rejected again is not sent. Without `offsets` and `corrected`, nothing is sent.
    """

    offsets: Annotated[
        tuple[Number, ...],
        Meta(max_length=PAGE_MAX, description="As `rejected` lists them.", extra={IN_LIBRARY: SAFE_INTEGER_MAX}),
    ] = ()
    corrected: Annotated[
        tuple[Corrected, ...], Meta(max_length=CORRECTED_MAX, extra={IN_LIBRARY: SAFE_INTEGER_MAX})
    ] = ()
    dry_run: Annotated[bool, Meta(description="Send nothing; report what would happen.")] = False


class GetQuarantine(Request[tuple[a.Quarantined, ...]], frozen=True, kw_only=True):
    """List the records that the engine failed on and set aside."""


class GetQuarantined(Request[a.Quarantined], frozen=True, kw_only=True):
    """Return one record in quarantine with its bytes."""

    name: QuarantinedName


class RetryQuarantined(Request[Receipt], frozen=True, kw_only=True):
    """Publish a record in quarantine again, and drop it there. If it fails again, it is set aside again."""

    name: QuarantinedName


class DropQuarantined(Request[a.Quarantined], frozen=True, kw_only=True):
    """Drop a record from quarantine: answers are complete without it. Its bytes stay in the log."""

    name: QuarantinedName


class GetPending(Request[tuple[a.PendingDocument, ...]], frozen=True, kw_only=True):
    """List documents that wait for their time, the next one due first."""

    after: Annotated[str, Meta(max_length=CURSOR_MAX, description="Continue after the one with this `position`.")] = ""
    limit: Limit = PAGE_MAX


class GetRules(Request[a.Rules], frozen=True, kw_only=True):
    """Return the rules in force."""


class GetStatus(Request[a.Status], frozen=True, kw_only=True):
    """Return the state of the installation."""


class RuleText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule pack as its file spells it."""

    name: Annotated[RuleName, Meta(description="What errors call it, for example mine.toml.")]
    text: Annotated[str, Meta(max_length=PACK_MAX, description="TOML.")]


class Rebuild(Request[a.RebuildStatus], frozen=True, kw_only=True):
    """Begin to build the data under other rules, beside the old ones, and switch to them at once in the end.

    `rules` are names of shipped rule packs, or texts; without any, the present packs are read again.
    """

    rules: Annotated[tuple[RuleName | RuleText, ...], Meta(max_length=100)] = ()
    future: Annotated[Future | None, Meta(description="Unchanged unless given.")] = None
    dry_run: Annotated[bool, Meta(description="Change nothing; report whose status would change.")] = False


class GetRebuildStatus(Request[a.RebuildStatus], frozen=True, kw_only=True):
    """Return the progress of the rebuild, or how the last one ended."""


class Subscribe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Receive what is in force now, then every change of it; from a cursor on, only changes."""

    view: Annotated[View, Meta(description="Changes of records, of documents, or of scopes.")] = "document"
    ids: Annotated[tuple[Name, ...], Meta(max_length=NAMES_MAX, description="Only these documents or records.")] = ()
    types: Types = ()
    rules: Annotated[tuple[Name, ...], Meta(max_length=100, description="Only types of these rule packs.")] = ()
    scope: Annotated[
        tuple[Pair, ...],
        Meta(max_length=PAIRS_MAX, description="Of each key one of the values that are given for it."),
    ] = ()
    only: Only = ()
    material: Annotated[
        bool | None,
        Meta(description="Leave out editions that change nothing material; true by default for records."),
    ] = None
    since: Since | None = None
    include: Include = ()
    snapshot: Annotated[
        bool | None, Meta(description="Begin with what is in force; by default without a cursor and `since`.")
    ] = None
    after: (
        Annotated[str, Meta(max_length=CURSOR_MAX, description="Continue after the event with this cursor.")] | None
    ) = None


def answer_type(kind: type[Request[A]]) -> type[A]:
    """Return the type that answers a type of request."""
    bases: tuple[object, ...] = vars(kind)["__orig_bases__"]
    answer: type[A] = get_args(bases[0])[0]
    return answer
