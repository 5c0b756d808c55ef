"""Where a feed goes: into the engine on a folder, or into a service by its address.

Promise: how far a feed was read is remembered for each destination apart: in the folder beside its log, or for
a service in a folder of one's own, which one process at a time may use. Cost: none beyond those of the two.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from msgspec import Struct

from stream_car.adapters.sqlite.feed_positions import FILE as POSITIONS
from stream_car.api.messages import Standing
from stream_car.core.documents import Statement
from stream_car.errors import InvalidRequest
from stream_car.files.lock import FileLock
from stream_car.local.engine import Engine
from stream_car.queries.answers import Published

LOCK = "feeds.lock"


class Taker(Protocol):
    """Whoever takes documents."""

    def publish(self, documents: Sequence[Statement], /) -> Published:
        """Keep them durably; a receipt for each, in order."""
        ...


class Service(Taker, Protocol):
    """A service at an address."""

    url: str

    def status(self) -> Standing:
        """Where it stands."""
        ...


class Destination(Struct, frozen=True):
    """Who takes a feed's documents, the file of its positions, and how long the log is by now."""

    taker: Taker
    positions: Path
    end: Callable[[], int]


def engine(opened: Engine) -> Destination:
    """The engine on a folder, which remembers beside its log."""
    return Destination(opened, opened.path / POSITIONS, lambda: opened.next_offset)


@contextmanager
def service(connected: Service, folder: Path) -> Iterator[Destination]:
    """A service, remembered in a folder that is made if need be. Raises `InvalidRequest`, `Busy`."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise InvalidRequest("positions", f"{folder} cannot hold positions: {error.strerror or error}") from error
    lock = FileLock(folder / LOCK, f"the memory of feeds in {folder}")
    try:
        yield Destination(connected, folder / POSITIONS, lambda: connected.status().next_offset)
    finally:
        lock.release()


def folder_for(url: str, data: Path) -> Path:
    """Where feeds into the service at an address are remembered unless somebody says otherwise: beside the data."""
    return data.with_name(f"{data.name}.feeds") / quote(url, safe="")
