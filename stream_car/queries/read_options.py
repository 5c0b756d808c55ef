"""How long a question may wait for shards that are on their way, and what is said when the time is up.

Promise: an answer that is not exact says so (`in_flight`), in the field that says why it is not
complete; one that has no such field is not given at all.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from stream_car.ports import RetryPolicy
from stream_car.queries.answers import (
    After,
    Answer,
    Audit,
    Certificate,
    Explanation,
    Frontier,
    History,
    Incomplete,
    Resolution,
)

ATTEMPTS = 20
_NOTHING = nullcontext()
IN_FLIGHT: Incomplete = "in_flight"

StageTimer = Callable[[str], AbstractContextManager[None]]
T = TypeVar("T")
Marked = TypeVar("Marked", Certificate, Frontier, History)


def untimed(_: str) -> AbstractContextManager[None]:
    """Nobody measures this."""
    return _NOTHING


class ImmediateRetries:
    """Implements `ports.RetryPolicy` without a clock: some attempts, one right after the other."""

    def __init__(self, left: int = ATTEMPTS) -> None:
        self.left = left

    async def wait(self) -> bool:
        """One attempt less."""
        self.left -= 1
        return self.left > 0


class ReadOptions(Struct, frozen=True):
    """What an answer must have seen, how long it may wait for that and for exactness, and how it gives way.

    `give_way` lets others go first where a question has taken long, and says whether it did. `timer` is a watch
    to be held over a stage of the work.
    """

    min_revisions: Sequence[After] = ()
    retry: RetryPolicy | None = None
    yield_control: Callable[[], Awaitable[bool]] | None = None
    timer: StageTimer = untimed


DEFAULT_OPTIONS = ReadOptions()


def mark_in_flight(found: T | None) -> T | None:
    """The same answer, saying that it is not exact; `None` where it cannot say so."""
    marked = _marked(found)
    return marked if isinstance(marked, type(found)) else None


def _marked(found: object) -> object:
    if isinstance(found, Answer):
        return replace(found, certificate=_incomplete(found.certificate))
    if isinstance(found, Audit) and found.certificate is not None:
        return replace(found, holds=False, certificate=_incomplete(found.certificate))
    if isinstance(found, Frontier):
        return _incomplete(found)
    if isinstance(found, History):
        return _incomplete(found)
    if isinstance(found, Resolution | Explanation):
        return replace(found, reasons=(*found.reasons, IN_FLIGHT))
    if isinstance(found, tuple) and found:
        marked = tuple(_marked(one) for one in found)
        return marked if all(one is not None for one in marked) else None
    return None


def _incomplete(found: Marked) -> Marked:
    return replace(found, complete=False, reasons=(*found.reasons, IN_FLIGHT))
