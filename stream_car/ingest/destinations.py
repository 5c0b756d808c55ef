"""Where a feed is published: into an engine on a data directory, or into a service by its address.

Promise: how far a feed was read is remembered separately for each destination: for an engine beside its log, for a
service in a local folder that one process at a time may use. Cost: none beyond that of engine and service.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol
from urllib.parse import quote

from msgspec import Struct

from stream_car.adapters.sqlite.feed_positions import FILE as POSITIONS
from stream_car.core.documents import Statement
from stream_car.errors import InvalidRequest
from stream_car.files.lock import FileLock
from stream_car.queries.answers import Published, Status

if TYPE_CHECKING:
    from stream_car.local.engine import Engine

LOCK = "feeds.lock"


class Sink(Protocol):
    """Accepts documents."""

    def publish(self, documents: Sequence[Statement], /, *, on_rejected: Literal["ignore"]) -> Published:
        """Store documents durably; return a receipt for each, in order."""
        ...


class RemoteService(Sink, Protocol):
    """A service at an address."""

    url: str

    def status(self) -> Status:
        """Return the state of the service, with the length of its log."""
        ...


class Destination(Struct, frozen=True):
    """Where a feed's documents go, the file of its positions, and a function that returns the length of the log."""

    sink: Sink
    positions: Path
    log_end: Callable[[], int]


def for_engine(engine: "Engine") -> Destination:
    """Return the destination for an engine on a data directory, which keeps positions beside its log."""
    return Destination(engine, engine.path / POSITIONS, lambda: engine.status().next_offset)


@contextmanager
def for_service(service: RemoteService, folder: Path) -> Iterator[Destination]:
    """Return the destination for a service. Positions are kept in `folder`, which is created if necessary.

    Raises:
        InvalidRequest: the folder cannot be created.
        Busy: another process uses the folder.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        reason = f"Cannot store feed positions in {folder}: {error.strerror or error}. Choose another folder."
        raise InvalidRequest("positions", reason) from error
    lock = FileLock(folder / LOCK, f"The feed position file in {folder}")
    try:
        yield Destination(service, folder / POSITIONS, lambda: service.status().next_offset)
    finally:
        lock.release()


def positions_folder(url: str, data: Path) -> Path:
    """Return the default folder for positions of feeds into a service: beside the data directory."""
    return data.with_name(f"{data.name}.feeds") / quote(url, safe="")
