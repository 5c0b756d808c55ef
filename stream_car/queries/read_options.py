"""What an answer must have seen, how long its reads may be retried, and how an inexact answer is marked.

Promise: an answer that is not exact carries `in_flight` in its `reasons`. An answer without such a field is never
given inexact.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Protocol, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from stream_car.ports import RetryPolicy
from stream_car.queries.answers import (
    Answer,
    Audit,
    Certificate,
    Explanation,
    Frontier,
    History,
    Incomplete,
    Lookup,
    Resolution,
)
from stream_car.queries.findings import PackageFindings

REVISION_MAX = 2**53 - 1
ATTEMPTS = 20
IN_FLIGHT: Incomplete = "in_flight"
_NO_TIMER = nullcontext()

StageTimer = Callable[[str], AbstractContextManager[None]]
T = TypeVar("T")
Markable = TypeVar("Markable", Certificate, Frontier, History)


class Pace(Protocol):
    """Decides when a question lets other work run."""

    @property
    def is_due(self) -> bool:
        """Whether the question has computed for so long that other work should run."""
        ...

    async def rest(self) -> None:
        """Let other work run."""
        ...


def no_timer(_: str) -> AbstractContextManager[None]:
    """A `StageTimer` that measures nothing."""
    return _NO_TIMER


class ImmediateRetries:
    """Implements `ports.RetryPolicy` without a clock: a fixed number of attempts, one right after the other."""

    def __init__(self, attempts: int = ATTEMPTS) -> None:
        self.attempts_left = attempts

    async def wait(self) -> bool:
        self.attempts_left -= 1
        return self.attempts_left > 0


class MinRevision(Struct, frozen=True, forbid_unknown_fields=True):
    """A document revision that an answer must count; a higher one will do."""

    id: Annotated[str, Meta(min_length=1, max_length=256)]
    revision: Annotated[int, Meta(ge=1, le=REVISION_MAX)] = 1


def invisible_reason(minimums: Sequence[MinRevision]) -> str:
    """Return the message that not all of these revisions became visible in time. It names the first three."""
    names = ", ".join(f"{minimum.revision} of {minimum.id}" for minimum in minimums[:3])
    more = f" and {len(minimums) - 3} more" if len(minimums) > 3 else ""
    if len(minimums) == 1:
        return f"Revision {names} did not become visible in time. Was it accepted?"
    return f"Not all of these revisions became visible in time: {names}{more}. Were they accepted?"


class ReadOptions(Struct, frozen=True):
    """How a question is read.

    `min_revisions`: the revisions that the answer must have seen.
    `retry`: how long to retry until it has seen them and is exact; `None` means `ImmediateRetries()`.
    `pace`: when to let other work run; `None` means never.
    `timer`: returns a context manager that measures a stage of the work.
    `attributes`: whether documents are shown with their attributes.
    """

    min_revisions: Sequence[MinRevision] = ()
    retry: RetryPolicy | None = None
    pace: Pace | None = None
    timer: StageTimer = no_timer
    attributes: bool = False

    def including(self, parts: Sequence[str]) -> "ReadOptions":
        """Return these options for a question that shows these parts of documents too."""
        return replace(self, attributes=True) if parts else self


DEFAULT_OPTIONS = ReadOptions()


async def rest_if_due(options: ReadOptions) -> None:
    """Let other work run if a question that reads no shards has taken long."""
    if options.pace is not None and options.pace.is_due:
        await options.pace.rest()


def mark_incomplete(answer: T | None, reason: Incomplete) -> T | None:
    """The same answer marked as incomplete; `None` if its type has no field for the mark."""
    marked = _mark(answer, reason)
    return marked if isinstance(marked, type(answer)) else None


def _mark(answer: object, reason: Incomplete) -> object:
    if isinstance(answer, Answer):
        return replace(answer, certificate=_marked(answer.certificate, reason))
    if isinstance(answer, Audit) and answer.certificate is not None:
        return replace(answer, holds=False, certificate=_marked(answer.certificate, reason))
    if isinstance(answer, Frontier):
        return _marked(answer, reason)
    if isinstance(answer, History):
        return _marked(answer, reason)
    if isinstance(answer, Resolution | Explanation | Lookup | PackageFindings):
        return replace(answer, reasons=(*answer.reasons, reason))
    if isinstance(answer, tuple) and answer:
        items = tuple(_mark(item, reason) for item in answer)
        return items if all(item is not None for item in items) else None
    return None


def _marked(answer: Markable, reason: Incomplete) -> Markable:
    return replace(answer, complete=False, reasons=(*answer.reasons, reason))
