"""Records that the engine failed on: set aside with the state of their shard, so that the shard goes on.

Promise: only a failure that repeats identically with fresh state sets a record aside. What is set aside is part of the
shard's state: the same release sets the same records aside when it replays the log. More than `IN_A_ROW_MAX` in a row
halt the shard, because then the fault is hardly theirs. Cost: nothing until a record fails.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from stream_car.core.revisions import document_key
from stream_car.core.timeline import scope_key
from stream_car.errors import Halted, StreamCarError
from stream_car.ports import Record

QUARANTINE = b"x"
IN_A_ROW_MAX = 10
ERROR_MAX = 500  # characters
NO_CONTENT_FAILURES = (StreamCarError, OSError, MemoryError)  # a time-out is an `OSError`


class QuarantinedRecord(Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """A record that was set aside. `scopes` is `None` if it is not known which scopes it would have changed."""

    offset: int
    append_time: int
    error: str
    id: str | None = None
    scopes: tuple[str, ...] | None = None


class Quarantine(Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """The records of one shard that were set aside and not dropped since, oldest first, and how many ever were."""

    records: tuple[QuarantinedRecord, ...] = ()
    total: int = 0

    def with_record(self, record: QuarantinedRecord) -> "Quarantine":
        """Set one more record aside.

        Raises:
            Halted: too many records before it failed as well (`quarantine`).
        """
        last = [each.offset for each in self.records[-IN_A_ROW_MAX:]]
        if last == list(range(record.offset - IN_A_ROW_MAX, record.offset)):
            raise Halted(
                "quarantine",
                f"{IN_A_ROW_MAX} records in a row were set aside, and record {record.offset} fails as well "
                f"({record.error}). See `stream-car quarantine list`, and run a release that can apply them.",
            )
        return Quarantine((*self.records, record), self.total + 1)

    def without(self, offset: int) -> "Quarantine":
        """Drop a record."""
        return Quarantine(tuple(each for each in self.records if each.offset != offset), self.total)


class ContentFailure(Exception):
    """The engine failed on a record: not a server, not the state, and nobody ran out of memory or time."""

    def __init__(self, error: Exception) -> None:
        text = "".join(char if char.isprintable() else " " for char in f"{type(error).__name__}: {error}")
        super().__init__(text[:ERROR_MAX])


@contextmanager
def content_failures() -> Iterator[None]:
    """Raise failures of pure code as `ContentFailure`."""
    try:
        yield
    except NO_CONTENT_FAILURES:
        raise
    except Exception as error:
        raise ContentFailure(error) from error


def touched_keys(quarantines: Iterable[Quarantine]) -> frozenset[bytes] | None:
    """Return the keys that these records might have changed, or `None` if it may be any."""
    keys: set[bytes] = set()
    for quarantine in quarantines:
        for record in quarantine.records:
            if record.scopes is None:
                return None
            keys.update(map(scope_key, record.scopes))
            if record.id is not None:
                keys.add(document_key(record.id))
    return frozenset(keys)


def describe(
    record: Record, failure: ContentFailure, name: str | None, scopes: Iterable[str] | None
) -> QuarantinedRecord:
    """Return what is stored of a record."""
    known = tuple(scopes) if scopes is not None else None
    return QuarantinedRecord(record.offset, record.append_time, str(failure), name, known)
