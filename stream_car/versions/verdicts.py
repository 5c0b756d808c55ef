"""Whether a version is affected, and why."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from stream_car.versions.packages import Package

AffectedStatus = Literal["affected", "not_affected", "unknown"]
PackageStatus = AffectedStatus | Literal["no_record"]  # no record names the package: a wrong name looks the same
Basis = Literal[
    "range",  # the version is in an affected range
    "enumerated",  # it is in a list of affected versions
    "outside",  # it is in no affected range and in no list
    "stated",  # the record says so of this version in particular
    "default",  # the record says so of all versions that it does not name
    "every_version",  # the record says so of every version
    "statement",  # a VEX statement says so
    "no_version",  # no version was given
    "left_out",  # what the record says of versions was too large to be kept
    "no_ranges",  # the record does not say which versions are affected
    "unreadable",  # a version cannot be read by the rules of its ecosystem
    "no_order",  # how versions of this ecosystem are ordered is unknown
    "commits",  # the record names commits only
    "release",  # the release of the distribution is not known
    "ecosystem",  # the record names no ecosystem, so it may be about another package of this name
    "investigation",  # the publisher is still looking
    "disputed",  # the record was superseded by one that says the opposite, and not because this version is fixed
]


class Verdict(Struct, frozen=True, kw_only=True):
    """Whether a version is affected by a record, and what that rests on.

    `range` is the one that decides. `fixed_in` are the versions that are not affected any more, the nearest first.
    `is_fixed` says that a version which is not affected comes after a fix.
    """

    status: AffectedStatus
    basis: Basis
    range: str = ""
    fixed_in: tuple[str, ...] = ()
    justification: str = ""
    is_fixed: bool = False


Judge = Callable[[Package], Verdict | None]  # what a document says of a package; `None` if it does not name it
NO_RANGES = Verdict(status="unknown", basis="no_ranges")
RANKS: dict[PackageStatus, int] = {"affected": 0, "unknown": 1, "not_affected": 2, "no_record": 3}


def worst(verdicts: list[Verdict]) -> Verdict | None:
    """Return the verdict that decides: affected before unknown before not affected; `None` if there is none."""
    return min(verdicts, key=lambda verdict: RANKS[verdict.status], default=None)
