"""A step from a document to the next one, and why an answer may not be all: what all answers share."""

from typing import Literal

from msgspec import Struct

Incomplete = Literal[
    "cycle",
    "successor_missing",
    "budget",
    "in_flight",
    "pending",
    "unknown",
    "retracted",
    "no_anchor",
    "limit",
    "history_unknown",
    "lost_history",
    "quarantined",
]


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """`id` supersedes (or amends) the document of the step before it, by `rule` (or `link`) in `scope`.

    `outcome` is what became of that document, where an answer has read both.
    """

    id: str
    rule: str
    scope: str
    effect: Literal["supersede", "amend"] = "supersede"
    outcome: str = ""
