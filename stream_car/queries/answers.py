"""What the engine answers: values only, the same for the library, the command line and the network.

Times are RFC 3339 text in `api` and `cli`; here they are integer microseconds UTC.
"""

from typing import Literal

from msgspec import Struct

from stream_car.core.changes import FrontierChange
from stream_car.processing.receipts import Receipt

Incomplete = Literal[
    "cycle", "successor_missing", "budget", "in_flight", "pending", "unknown", "retracted", "no_anchor", "limit"
]


class Step(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """`id` voids (or amends) the document of the step before it, by `rule` (or `link`) in `scope`."""

    id: str
    rule: str
    scope: str
    effect: Literal["supersede", "amend"] = "supersede"


Stands = Literal["active", "void", "pending", "absent"]


class Difference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document that stands otherwise under other rules. `why` names what voids it, then or now.

    `absent`: refused, retracted or never said.
    """

    id: str
    before: Stands
    after: Stands
    why: tuple[Step, ...] = ()


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document as an answer shows it; `active` as of the answer's time."""

    id: str
    type: str
    time: int
    order: int = 0
    revision: int = 1
    active: bool = True
    title: str = ""
    text: str = ""
    source: str = ""
    url: str = ""


class Amendment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document in force that amends another, and the path from that one to it.

    The first step amends; further ones void what amended first.
    """

    document: Evidence
    path: tuple[Step, ...]


class Controlling(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document that is in force, and the path from the anchor to it (empty: it is the anchor).

    `amendments` are to be read with it; `amendments_more` counts those beyond the ones that are listed.
    """

    document: Evidence
    path: tuple[Step, ...] = ()
    amendments: tuple[Amendment, ...] = ()
    amendments_more: int = 0


class Group(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An anchor and what controls it now: the active documents of `cl({anchor})` (Definition 3).

    Of very many the latest are listed, and `controlling_more` counts the others. `passed` are superseded
    documents on the paths, as evidence; `missing` names successors that are not here; `cycle` lists
    documents that void one another. `belief` is the probability that this anchor is the one meant, given
    the question.
    """

    anchor: Evidence
    score: float = 0.0
    belief: float = 0.0
    controlling: tuple[Controlling, ...] = ()
    controlling_more: int = 0
    passed: tuple[Evidence, ...] = ()
    complete: bool = True
    reasons: tuple[Incomplete, ...] = ()
    missing: tuple[str, ...] = ()
    cycle: tuple[str, ...] = ()


class After(Struct, frozen=True, kw_only=True, gc=False):
    """A statement that an answer must have seen: `revision` of a document, or a later one."""

    id: str
    revision: int = 1


class Certificate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the answer warrants: Theorem 4 for the `covered` anchors, as of the input before `cut`.

    `cut` has one offset for each intake shard. `phi` is scope identifiability, `kappa` the scope ambiguity
    ratio (Definition 5).
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
    as_of: int | None = None
    rounds: int = 0  # batches of reads that Stage 2 took
    lookups: int = 0  # keys that Stage 2 read


class Plausible(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A scope that the question may mean, and the probability that it does (Definition 8).

    `coverage` is how much of that probability is with anchors that the answer covers.
    """

    scope: str
    belief: float
    coverage: float = 0.0


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`front(cl(A_k(q)))`: groups by relevance, with a lead for anchors that something supersedes.

    `results` are the controlling documents, best first. `scopes` are those that the question may mean,
    likeliest first; what their beliefs lack of 1 is with unlikely scopes and anchors not looked at.
    """

    question: str
    results: tuple[Evidence, ...]
    groups: tuple[Group, ...]
    certificate: Certificate
    scopes: tuple[Plausible, ...] = ()
    pending: int = 0  # documents that wait for their time
    behind: int = 0  # documents found by their words only, because their vectors are still being made
    unread: int = 0  # words of the question that were not looked for: it has too many, and these are its commonest


Via = Literal["id", "chunk", "record", ""]
Status = Literal["active", "void", "pending", "retracted", "unknown"]


class Resolution(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one asked-for name stands for now. `via`: how the name was read."""

    asked: str
    status: Status
    via: Via = ""
    groups: tuple[Group, ...] = ()
    reasons: tuple[Incomplete, ...] = ()  # why this may not be all, groups' own reasons apart


class Violation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A condition of Theorem 4 that a set breaks, for one of its documents, and what repairs it.

    `frontier_inclusion`: `add` holds controlling documents that the set lacks.
    `ignored_superseder`: `id` is superseded and nothing in the set supersedes it; any of `add` repairs it.
    """

    condition: Literal["frontier_inclusion", "ignored_superseder"]
    id: str
    add: tuple[str, ...]
    path: tuple[Step, ...] = ()


class Audit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Theorem 4 for a given set. It holds iff there is no violation and every id is part of the corpus.

    `pending` wait for their time; `stranded` are void while nothing that is here controls them.
    """

    holds: bool
    violations: tuple[Violation, ...] = ()
    repaired: tuple[str, ...] = ()  # the set with what is missing added and superseded documents left out
    unknown: tuple[str, ...] = ()
    retracted: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    stranded: tuple[str, ...] = ()
    certificate: Certificate | None = None


class Ending(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What ended a member's hold on a scope, and when that took effect."""

    time: int
    id: str
    rule: str


class Held(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member of a scope's timeline: from when to when it held, and what ended it."""

    id: str
    type: str
    revision: int
    time: int
    order: int = 0
    ended: Ending | None = None
    offset: int = 0
    append_time: int = 0
    title: str = ""


class Blocked(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member that this scope does not void, but that is void through another scope or a link."""

    document: Evidence
    scope: str
    by: str
    rule: str


class Frontier(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The active members of a scope; `blocked` are void through another scope or link."""

    scope: str
    active: tuple[Evidence, ...]
    blocked: tuple[Blocked, ...] = ()
    members: int = 0
    seq: int = 0
    complete: bool = True
    reasons: tuple[Incomplete, ...] = ()


class History(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The timeline of a scope, oldest first."""

    scope: str
    members: tuple[Held, ...]
    complete: bool = True
    reasons: tuple[Incomplete, ...] = ()


class Bond(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One scope (or link) of a document: whether it holds there, and if not, what voids it."""

    scope: str
    holds: bool
    by: tuple[Step, ...] = ()


class Explanation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a document is or is not active, scope by scope and link by link, and what controls it."""

    asked: str
    status: Status
    document: Evidence | None = None
    bonds: tuple[Bond, ...] = ()
    group: Group | None = None
    due: int | None = None  # pending: the time it waits for
    reasons: tuple[Incomplete, ...] = ()


class Told(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A frontier change as it was told, and its place in the order of changes."""

    position: str  # generation/shard/oseq
    oseq: int
    change: FrontierChange


class Rejected(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Input that was refused, with its bytes; `offset` names it, the list goes on behind `oseq`."""

    offset: int
    code: str
    reason: str
    append_time: int = 0
    id: str | None = None
    value: bytes = b""
    oseq: int = 0


class Published(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Receipts in the order of the messages."""

    receipts: tuple[Receipt, ...] = ()


class Replayed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one refused input that was to be replayed.

    `replayed`: sent again, see the receipt; without one it was only tried. `before`: that had been done
    already, as record `at`. `refused`: it would be refused again, see code and reason.
    """

    offset: int
    outcome: Literal["replayed", "before", "refused"]
    code: str | None = None
    reason: str | None = None
    at: int | None = None
    receipt: Receipt | None = None
