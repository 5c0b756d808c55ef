"""What the folds tell the world: a frontier changed, and because of what.

Promise: values only. A change names single members; a run of more than 256 of one type is told as
one half-open range, so that a trigger over a hundred thousand members costs one small event.
"""

from typing import Literal

from msgspec import Struct

LISTED_MAX = 256  # members of one type that a change names one by one

Ended = Literal["voided", "retracted", "corrected", "moved", "link"]


class Cause(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """The document whose arrival, correction, retraction or release changed a frontier."""

    id: str
    revision: int
    kind: Literal["placed", "corrected", "moved", "retracted", "released"] = "placed"
    title: str = ""
    url: str = ""
    source: str = ""


class Member(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One document revision that entered or left; `rule` names the rule (or `link`) that moved it.

    Of one that entered, `rule` may name the rule by which it amends another member.
    """

    id: str
    revision: int = 0  # 0: unknown, as for the target of a link
    type: str = ""
    time: int = 0
    order: int = 0
    elsewhere: int = 0  # how many other scopes could void it
    why: Ended | Literal["holds"] = "holds"
    rule: str = ""


class Run(Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """All members of a type with `start <= (time, order) < end`, but for the cause's own document.

    `including` and `excluding` restrict the run to members that say (do not say) these values.
    """

    type: str
    start: tuple[int, int]
    end: tuple[int, int]
    count: int
    why: Ended | Literal["holds"] = "holds"
    rule: str = ""
    including: tuple[str, ...] | None = None
    excluding: tuple[tuple[str, ...], ...] = ()


class FrontierChange(Struct, frozen=True, kw_only=True, gc=False):
    """A scope's frontier changed. `entered`: not void through this scope; `left`: no longer so.

    `seq` counts the changes of the scope from 1 without a gap. `offset` is the input that caused it.
    """

    scope: str
    seq: int
    cause: Cause
    offset: int
    entered: tuple[Member, ...] = ()
    left: tuple[Member, ...] = ()
    entered_runs: tuple[Run, ...] = ()
    left_runs: tuple[Run, ...] = ()


class Rejection(Struct, frozen=True, kw_only=True, gc=False):
    """A record that can never be accepted, and where its bytes lie."""

    offset: int
    code: str
    reason: str
    id: str | None = None
