"""A decoded record, and what applying it did. Values only; `fold` creates them."""

from typing import Literal

from msgspec import Struct

from stream_car.core.changes import FrontierChange, Rejection
from stream_car.core.documents import Statement
from stream_car.core.revisions import Input, Placement
from stream_car.errors import InvalidDocument

Future = Literal["wait", "apply"]
Outcome = Literal[
    "accepted",
    "pending",
    "duplicate",
    "older",
    "retracted",
    "nothing",
    "rejected",
    "control",
    "rerouted",
    "quarantined",
]


class Effects(Struct, gc=False):
    """What a record did. `touched` are the keys to write."""

    outcome: Outcome
    changes: list[FrontierChange]
    touched: list[bytes]
    rejection: Rejection | None = None
    placements: tuple[Placement, ...] = ()  # for the next hop, in the two-hop form


class Undecodable(InvalidDocument):
    """The decoder itself failed, so nothing is known of the record. Applying it raises `cause`."""

    def __init__(self, cause: Exception) -> None:
        super().__init__("undecodable", f"The record cannot be decoded ({type(cause).__name__}).")
        self.cause = cause


class DecodedRecord(Struct, frozen=True, gc=False):
    """A record as far as it can be decoded without state.

    `content` is `None` for a tick, and an `InvalidDocument` if the record cannot be decoded. `at` is its position.
    `not_kept` is the number of rejected inputs that a tick counts in place of their bytes.
    """

    content: Statement | InvalidDocument | None
    scopes: tuple[str, ...]
    at: Input
    not_kept: int = 0

    @property
    def statement(self) -> Statement | None:
        """The statement in the record, or `None` if there is none or it cannot be decoded."""
        return None if isinstance(self.content, InvalidDocument) else self.content

    @property
    def name(self) -> str | None:
        """The id of the record's document, or `None` if it is not known."""
        content = self.content
        if content is None:
            return None
        return content.document_id if isinstance(content, InvalidDocument) else content.id
