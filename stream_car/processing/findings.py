"""What checks of stored data find, and what to do about it."""

from typing import Literal

from msgspec import Struct

Check = Literal[
    "rules", "disk", "log", "clock", "state", "index", "topics", "access", "redis", "changes", "quarantine", "webhooks"
]


class Finding(Struct, frozen=True, kw_only=True):
    """The result of one check. `notice`: nothing is damaged, but worth knowing. `cure` tells what to do."""

    check: Check
    status: Literal["ok", "notice", "damaged"]
    detail: str
    cure: str = ""


def ok(check: Check, detail: str) -> Finding:
    """Return the finding that everything is as it should be."""
    return Finding(check=check, status="ok", detail=detail)


def notice(check: Check, detail: str, cure: str) -> Finding:
    """Return a finding about something that is worth knowing."""
    return Finding(check=check, status="notice", detail=detail, cure=cure)


def damaged(check: Check, detail: str, cure: str) -> Finding:
    """Return a finding about damage or loss."""
    return Finding(check=check, status="damaged", detail=detail, cure=cure)
