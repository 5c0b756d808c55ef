"""What the folds emit: how a frontier changed, and because of which document.

Promise: values only. A change names its members one by one. More than 256 members of one type are
reported as one half-open range, so a trigger over a hundred thousand members costs one small event.
"""

from typing import Literal

from msgspec import Struct

LISTED_MAX = 256  # members of one type that a change names one by one

Ended = Literal["voided", "retracted", "corrected", "moved", "link"]


class Cause(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The document whose arrival, correction, retraction or release changed a frontier."""

    id: str
    revision: int
    kind: Literal["placed", "corrected", "moved", "retracted", "released"] = "placed"
    title: str = ""
    url: str = ""
    source: str = ""


class Member(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A document revision that entered or left a frontier; `rule` names the rule (or `link`) that moved it.

    For a member that entered, `rule` may be the rule by which it amends another member.
    """

    id: str
    revision: int = 0  # 0: unknown, as for the target of a link
    type: str = ""
    time: int = 0
    order: int = 0
    elsewhere: int = 0  # the number of other scopes in which a rule could void it
    why: Ended | Literal["holds"] = "holds"
    rule: str = ""


class Run(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """All members of a type with `start <= (time, order) < end`, except the document of the cause.

    `including` restricts the run to members with this compared value, `excluding` to members with none of these.
    """

    type: str
    start: tuple[int, int]
    end: tuple[int, int]
    count: int
    why: Ended | Literal["holds"] = "holds"
    rule: str = ""
    including: tuple[str, ...] | None = None
    excluding: tuple[tuple[str, ...], ...] = ()


class FrontierChange(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A change of one scope's frontier: the members that `entered` it and those that `left` it.

    `seq` counts the changes of the scope from 1 without a gap. `offset` is the input that caused the change.
    """

    scope: str
    seq: int
    cause: Cause
    offset: int
    entered: tuple[Member, ...] = ()
    left: tuple[Member, ...] = ()
    entered_runs: tuple[Run, ...] = ()
    left_runs: tuple[Run, ...] = ()


class Rejection(Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A record that can never be accepted; `offset` says where the log has its bytes."""

    offset: int
    code: str
    reason: str
    id: str | None = None
