"""The outcomes of the latest records of an intake shard, stored with its state so that publishers get receipts.

Promise: a function of the log alone, so a replay gives the same pages. The outcomes of at least the latest 16,128
records are stored; older ones are overwritten. Cost: one page of up to 256 outcomes is written per batch. This module
is never compiled, because mypyc drops the options of a class.
"""

from collections.abc import Iterable, Mapping
from typing import get_args

from msgspec import Struct

from stream_car.core.changes import Rejection
from stream_car.errors import Unavailable
from stream_car.processing.effects import Outcome

OUTCOMES = b"u:"  # the prefix of the keys
PAGE = 256  # records per page
PAGES = 64
_UNKNOWN = -1
_KINDS: tuple[Outcome, ...] = get_args(Outcome)
_NUMBERS = {outcome: number for number, outcome in enumerate(_KINDS)}


class OutcomePage(Struct, array_like=True, gc=False, forbid_unknown_fields=True):
    """Outcomes of the records from `number * PAGE` on; of rejected ones also code, reason and id."""

    number: int
    outcomes: list[int] = []
    rejections: dict[int, tuple[str, str, str | None]] = {}

    def add(self, offset: int, outcome: Outcome, rejection: Rejection | None) -> None:
        """Add the outcome of a record of this page."""
        place = offset % PAGE
        self.outcomes += [_UNKNOWN] * (place - len(self.outcomes))
        self.outcomes.append(_NUMBERS[outcome])
        if rejection is not None:
            self.rejections[place] = rejection.code, rejection.reason, rejection.id


def page_number(offset: int) -> int:
    """Return the number of the page that a record's outcome belongs to. Pages share `PAGES` keys in turn."""
    return offset // PAGE


def outcome_key(offset: int) -> bytes:
    """Return the key of the page that a record's outcome belongs to."""
    return b"%b%d" % (OUTCOMES, page_number(offset) % PAGES)


def outcome_keys(offsets: Iterable[int]) -> list[bytes]:
    """Return the keys of the pages that these records' outcomes belong to."""
    return list(dict.fromkeys(map(outcome_key, offsets)))


def outcome_in(pages: Mapping[bytes, OutcomePage], offset: int) -> tuple[Outcome, Rejection | None]:
    """Return the outcome of a record, and why it was rejected.

    Raises:
        Unavailable: the outcome was overwritten, or was never stored because an earlier release applied the record.
    """
    page = pages.get(outcome_key(offset))
    place = offset % PAGE
    if page is None or page.number != page_number(offset) or place >= len(page.outcomes) or page.outcomes[place] < 0:
        raise Unavailable(
            "The documents are stored and applied, but their outcomes are no longer known. Publish them again to get "
            "receipts. Repeats change nothing."
        )
    code, reason, name = page.rejections.get(place, ("", "", None))
    rejection = Rejection(offset=offset, code=code, reason=reason, id=name) if code else None
    return _KINDS[page.outcomes[place]], rejection
