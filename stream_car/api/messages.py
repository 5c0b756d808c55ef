"""What is sent to the service: requests as typed values, with the limits that the description tells.

Promise: what these types refuse gets a 400 that names the field. Answers are the types of
`engine.answers`, as `api.plain` writes them.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from stream_car.core.rule_pack import RulePack
from stream_car.processing.effects import Outcome
from stream_car.processing.receipts import Receipt
from stream_car.queries.answers import Difference, Stands
from stream_car.queries.limits import DEPTH
from stream_car.subscriptions.events import View

TEXT_MAX = 10_000
NAMES_MAX = 1_000
AFTER_MAX = 100
K_MAX = 100
DEPTH_MAX = 200
BUDGET_MAX = 1_000_000
TIMEOUT_MAX_MS = 30_000
PAGE_MAX = 1_000
CURSOR_MAX = 8_000  # one number for each shard
MENDED_MAX = 100
PACK_MAX = 1_000_000  # characters of a rule pack
GREATEST = 2**53 - 1

_TIME = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$"

Text = Annotated[str, Meta(min_length=1, max_length=TEXT_MAX, pattern=r"\S", description="A question in words.")]
Name = Annotated[str, Meta(min_length=1, max_length=1_100, description="An id, a chunk id, or a record.")]
Time = Annotated[str, Meta(pattern=_TIME, description="A valid time, RFC 3339.", examples=["2021-12-12T00:00:00Z"])]
Count = Annotated[int, Meta(ge=1, le=K_MAX, description="How many documents to return.")]
Depth = Annotated[int, Meta(ge=1, le=DEPTH_MAX, description="How many anchors relevance may propose.")]
Budget = Annotated[
    int,
    Meta(
        ge=1,
        le=BUDGET_MAX,
        description="Look at no further anchor once so many keys were read; the certificate says what is left out.",
    ),
]
Pair = Annotated[
    str,
    Meta(
        pattern=r"^[^=]+=[\s\S]+$",
        max_length=1_300,
        description="KEY=VALUE; scopes that have all given pairs are meant.",
        examples=["package=lodash"],
    ),
]
Place = Annotated[int, Meta(ge=0, le=GREATEST, description="Go on behind this number.")]
Limit = Annotated[int, Meta(ge=1, le=PAGE_MAX, description="At most so many.")]


class Seen(Struct, frozen=True, forbid_unknown_fields=True):
    """A document revision that an answer must count; a higher one will do."""

    id: Annotated[str, Meta(min_length=1, max_length=256)]
    revision: Annotated[int, Meta(ge=1, le=GREATEST)] = 1


After = Annotated[tuple[Seen, ...], Meta(max_length=AFTER_MAX, description="Answer only when these are visible.")]
Timeout = Annotated[int, Meta(ge=0, le=TIMEOUT_MAX_MS, description="How long to wait for `min_revisions`.")]


class Query(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question in words."""

    text: Text
    k: Count = 5
    depth: Depth = DEPTH
    as_of: Time | None = None
    budget: Budget | None = None
    after: After = ()
    timeout_ms: Timeout = 5_000


class Relevance(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question for plain search."""

    text: Text
    k: Count = 5


class Resolve(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of documents, chunks or records."""

    names: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=NAMES_MAX)]
    as_of: Time | None = None
    after: After = ()
    timeout_ms: Timeout = 5_000


class Check(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A retrieved set, and the question it is to answer."""

    ids: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=NAMES_MAX)]
    question: Text | None = None
    depth: Depth = 20
    as_of: Time | None = None
    after: After = ()
    timeout_ms: Timeout = 5_000


class ScopeAsOf(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scopes by some of their parts, as of a valid time."""

    scope: Annotated[tuple[Pair, ...], Meta(min_length=1, max_length=16)]
    as_of: Time | None = None


class InScope(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Scopes by some of their parts."""

    scope: Annotated[tuple[Pair, ...], Meta(min_length=1, max_length=16)]


class AsOf(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A valid time."""

    as_of: Time | None = None


class ChangesAfter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of changes, of all scopes or of those that have these parts."""

    scope: Annotated[tuple[Pair, ...], Meta(max_length=16)] = ()
    after: Place = 0
    behind: Annotated[str, Meta(max_length=200, description="Go on behind the change that has this `position`.")] = ""
    limit: Limit = 100


class RejectedAfter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page of refused input."""

    after: Place = 0
    limit: Limit = 100


class Base64(Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are no text."""

    base64: Annotated[str, Meta(max_length=400_000, pattern=r"^[A-Za-z0-9+/]*={0,2}$")]


class Mended(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be sent in place of a refused input: its text, or its bytes as base64."""

    offset: Place
    value: Annotated[str, Meta(max_length=300_000)] | Base64


class Replay(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Refused inputs to be sent again, by their offsets as `rejected` tells them, as they came or mended."""

    offsets: Annotated[tuple[Place, ...], Meta(max_length=PAGE_MAX)] = ()
    mended: Annotated[tuple[Mended, ...], Meta(max_length=MENDED_MAX)] = ()
    dry_run: Annotated[bool, Meta(description="Send nothing, only tell what would become of it.")] = False


class Nothing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No parameters."""


class Subscribe(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to hear of, and from where on; without a cursor from a snapshot of now."""

    view: Annotated[View, Meta(description="Changes of documents, or of the frontiers of scopes.")] = "document"
    id: Annotated[tuple[Name, ...], Meta(max_length=NAMES_MAX, description="Only these documents or records.")] = ()
    type: Annotated[tuple[Name, ...], Meta(max_length=100, description="Only documents of these types.")] = ()
    domain: Annotated[tuple[Name, ...], Meta(max_length=100, description="Only types of these rule packs.")] = ()
    scope: Annotated[tuple[Pair, ...], Meta(max_length=16)] = ()
    snapshot: Annotated[bool | None, Meta(description="Tell what is in force first.")] = None
    after: Annotated[str, Meta(max_length=CURSOR_MAX, description="The cursor of the last event heard.")] | None = None


class Receipts(Struct, frozen=True, kw_only=True):
    """What became of a publication: how many documents had which outcome, and a receipt for each, in order."""

    outcomes: dict[Outcome, int]
    receipts: tuple[Receipt, ...]


class Waiting(Struct, frozen=True, kw_only=True):
    """A document revision that waits for its time."""

    id: str
    revision: int
    time: int


class Rules(Struct, frozen=True, kw_only=True):
    """The rule packs in force; `generation` changes whenever anything in them does."""

    generation: str
    domains: tuple[RulePack, ...]


class Standing(Struct, frozen=True, kw_only=True):
    """Where the service stands. `cursor` is the last change told, `changes_from` the first that is surely kept.

    `lag` is how many events the slowest subscriber has not yet taken.
    """

    version: str
    generation: str
    next_offset: int
    cursor: str
    changes_from: int
    documents: int
    waiting: int
    outcomes: dict[str, int]
    subscriptions: int = 0
    lag: int = 0


class PackText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule pack as its file spells it."""

    name: Annotated[str, Meta(min_length=1, max_length=200, description="What errors call it, as mine.toml.")]
    text: Annotated[str, Meta(max_length=PACK_MAX, description="TOML.")]


class Rebuild(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Other rules: shipped packs by name, and others by their text. Without any, the packs of now are read again."""

    packs: Annotated[tuple[Name, ...], Meta(max_length=100, description="Names of shipped packs.")] = ()
    texts: Annotated[tuple[PackText, ...], Meta(max_length=100)] = ()
    future: Annotated[Literal["wait", "apply"] | None, Meta(description="As before, unless given.")] = None
    dry_run: Annotated[bool, Meta(description="Change nothing, only tell what would stand otherwise.")] = False


class Moved(Struct, frozen=True, kw_only=True):
    """How many documents would stand otherwise in one way."""

    before: Stands
    after: Stands
    documents: int


class Progress(Struct, frozen=True, kw_only=True):
    """How far a rebuild is: `applied` messages of `end`. `failed` changed nothing; `detail` says what happened.

    A dry run ends as `compared`, with all differences counted and the first thousand of them listed.
    """

    state: Literal["none", "building", "comparing", "compared", "switched", "failed"] = "none"
    dry_run: bool = False
    applied: int = 0
    end: int = 0
    counts: tuple[Moved, ...] = ()
    differences: tuple[Difference, ...] = ()
    detail: str = ""


class Problem(Struct, frozen=True, kw_only=True):
    """RFC 9457 problem details. `code` is stable; `detail` says what to do."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    receipt: Receipt | None = None
