"""A record as it was read, and what it did. Values only; `fold` makes them."""

from typing import Literal

from msgspec import Struct

from stream_car.core.changes import FrontierChange, Rejection
from stream_car.core.documents import Statement
from stream_car.core.revisions import Input, Placement
from stream_car.errors import InvalidDocument

Future = Literal["wait", "apply"]
Outcome = Literal[
    "accepted", "pending", "duplicate", "older", "retracted", "nothing", "rejected", "control", "rerouted"
]


class Effects(Struct, gc=False):
    """What a record did. `touched` are the keys to write; `shown` the ids whose text is to be (un)found."""

    outcome: Outcome
    changes: list[FrontierChange]
    touched: list[bytes]
    ids: list[str]
    rejection: Rejection | None = None
    scopes: int = 0
    placements: tuple[Placement, ...] = ()  # handed on to the next hop, where there is one


class DecodedRecord(Struct, frozen=True, gc=False):
    """A record as far as it can be read without state. `said` is `None` for a tick; `at` is where it stands."""

    content: Statement | InvalidDocument | None
    scopes: tuple[str, ...]
    at: Input

    @property
    def statement(self) -> Statement | None:
        """What the record said, if it can be read."""
        return None if isinstance(self.content, InvalidDocument) else self.content

    @property
    def name(self) -> str | None:
        """The id that it speaks about, if it shows one."""
        said = self.content
        if said is None:
            return None
        return said.document_id if isinstance(said, InvalidDocument) else said.id
