"""What Stream-CAR answers about publications: receipts, rejected input, and records in quarantine.

Promise: as in `answers`, which has these names too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal

from msgspec import Struct, field

from stream_car.processing.effects import Outcome
from stream_car.processing.receipts import Receipt


class Base64(Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that are not UTF-8."""

    base64: bytes


class Rejected(Struct, frozen=True, kw_only=True):
    """Input that was not accepted. `offset` names it; a listing continues after its `number`."""

    offset: int
    code: str
    reason: str
    append_time: datetime
    number: int
    id: str | None = None
    content: str | Base64 = field(default="", name="value")

    @property
    def value(self) -> bytes:
        """The bytes as they were sent."""
        return self.content.base64 if isinstance(self.content, Base64) else self.content.encode()


class Quarantined(Struct, frozen=True, kw_only=True):
    """A record that the engine failed on and set aside. `name` names it, as `hop:shard:offset`.

    `scopes` are those that it might have changed, `None` if that is not known: then every answer is incomplete. `value`
    is only given for a single record.
    """

    name: str
    hop: Literal["intake", "frontier"]
    shard: int
    offset: int
    append_time: datetime
    error: str
    id: str | None = None
    scopes: tuple[str, ...] | None = None
    content: str | Base64 | None = field(default=None, name="value")


class UnreadablePiece(Struct, frozen=True, kw_only=True):
    """A piece of a publisher's format that could not be converted, and why. It is not kept."""

    where: str
    code: str
    reason: str
    id: str | None = None


class Converted(Struct, frozen=True, kw_only=True):
    """What was read of a publisher's format: its records, those that are `known` already, and what is unreadable."""

    format: str
    records: int = 0
    known: int = 0
    unreadable: tuple[UnreadablePiece, ...] = ()


class Published(Struct, frozen=True, kw_only=True):
    """What became of a publication: how many documents had which outcome, and a receipt for each, in order.

    `converted` says what was read of a publisher's own format, if a format was given.
    """

    outcomes: Mapping[Outcome, int]
    receipts: tuple[Receipt, ...]
    converted: Converted | None = None

    @classmethod
    def of(cls, receipts: Sequence[Receipt], converted: Converted | None = None) -> "Published":
        """Return the receipts with their outcomes counted."""
        outcomes = Counter(receipt.outcome for receipt in receipts)
        return cls(outcomes=dict(sorted(outcomes.items())), receipts=tuple(receipts), converted=converted)

    @classmethod
    def joined(cls, parts: Sequence["Published"]) -> "Published":
        """Return several publications as one."""
        converted = [part.converted for part in parts if part.converted is not None]
        return cls.of(
            [receipt for part in parts for receipt in part.receipts],
            Converted(
                format=converted[0].format,
                records=sum(part.records for part in converted),
                known=sum(part.known for part in converted),
                unreadable=tuple(piece for part in converted for piece in part.unreadable),
            )
            if converted
            else None,
        )


class Replayed(Struct, frozen=True, kw_only=True):
    """What became of one rejected input that was to be replayed.

    `replayed`: sent again, see the receipt; without a receipt it was a dry run. `replayed_before`: done already, as
    record `at`. `rejected`: it would be rejected again, see `code` and `reason`.
    """

    offset: int
    outcome: Literal["replayed", "replayed_before", "rejected"]
    code: str | None = None
    reason: str | None = None
    at: int | None = None
    receipt: Receipt | None = None


def text_or_base64(value: bytes) -> str | Base64:
    """Return bytes as text if they are UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Base64(value)
