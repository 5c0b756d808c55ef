"""Send a service bodies of hostile sizes and shapes, and measure memory and disk: `python -m tests.attack.memory`.

Promise: the bounds are those of the reference, docs/reference/http.md. Memory is the most that the server's process has
for itself while requests run, over what it had before; pages of files that it maps are not its own. Disk is what the
data directory takes once the server has stopped. No shape makes the corpus larger, because caches grow with it.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from msgspec import Struct

from tests.support.server_process import Server

MIB = 1 << 20
ONE_MAX = 64 * MIB
ALL_MAX = 256 * MIB
DISK_FACTOR_MAX = 4
DISK_FREE = MIB
TOGETHER = 64
PIECE = 64 << 10
SAMPLE_S = 0.01
LINES = {"Content-Type": "application/x-ndjson"}
JSON = {"Content-Type": "application/json"}
PATH = "/v1/documents"


class Shape(Struct, frozen=True):
    """A request body of about `size` bytes, and how it is sent."""

    name: str
    headers: Mapping[str, str]
    pieces: Callable[[int], Iterator[bytes]]
    size: int
    is_rejected: bool = False


class Result(Struct, frozen=True):
    """What a request, or many at the same time, took."""

    name: str
    sent: int
    seconds: float
    memory: int
    memory_max: int
    disk: int
    disk_max: int | None
    statuses: tuple[int, ...]

    @property
    def is_good(self) -> bool:
        """Whether it was answered within the bounds."""
        is_small = self.disk_max is None or self.disk <= self.disk_max
        return self.memory <= self.memory_max and is_small and set(self.statuses) <= {200, 413, 503}

    def __str__(self) -> str:
        disk = f"{self.disk / self.sent:6.2f}x" if self.disk_max is not None else "       "
        counts = " ".join(f"{status}:{self.statuses.count(status)}" for status in sorted(set(self.statuses)))
        verdict = "" if self.is_good else "  TOO MUCH"
        return (
            f"{self.name:<34}{self.sent / MIB:8.1f} MiB{self.seconds:8.1f} s"
            f"{self.memory / MIB:+8.1f} MiB{disk}  {counts}{verdict}"
        )


def repeated(text: bytes) -> Callable[[int], Iterator[bytes]]:
    """Return pieces that repeat a text."""
    piece = text * (PIECE // len(text))
    return lambda size: (piece for _ in range(size // len(piece)))


def numbered(text: str) -> Callable[[int], Iterator[bytes]]:
    """Return pieces that repeat a text, each time with another number."""

    def pieces(size: int) -> Iterator[bytes]:
        number = 0
        while size > 0:
            piece = "".join([text % n for n in range(number, number + 500)]).encode()
            number, size = number + 500, size - len(piece)
            yield piece

    return pieces


def array(item: bytes) -> Callable[[int], Iterator[bytes]]:
    """Return an array of one item, again and again."""
    return lambda size: iter([b"[" + b",".join([item] * (size // (len(item) + 1))) + b"]"])


UNKNOWN = '{"id":"u%d","type":"unknown","time":"2024-01-31"}\n'
DOCUMENT = b'{"id":"a","type":"advisory","time":"2024-01-31","scope":{"package":"p","cve":"c"}}\n'
SHAPES = (
    Shape("lines of one digit", LINES, repeated(b"1\n"), 4 * MIB, is_rejected=True),
    Shape("lines of one bracket", LINES, repeated(b"[\n{\n"), 2 * MIB, is_rejected=True),
    Shape("lines of an unknown type", LINES, numbered(UNKNOWN), 8 * MIB, is_rejected=True),
    Shape("lines of long nonsense", LINES, repeated(b"x" * 1000 + b"\n"), 32 * MIB, is_rejected=True),
    Shape("a line without an end", LINES, repeated(b"x"), 256 * MIB, is_rejected=True),
    Shape("one document again and again", LINES, repeated(DOCUMENT), 8 * MIB),
    Shape("retractions of one document", LINES, repeated(b'{"id":"a","retracted":true}\n'), 2 * MIB),
    Shape("an array of digits", JSON, array(b"1"), MIB, is_rejected=True),
    Shape("an array of long nonsense", JSON, array(b'"%b"' % (b"x" * 1000)), 8 * MIB - 4096, is_rejected=True),
)


def memory_of(pid: int) -> int:
    """Return the bytes of memory that a process has for itself."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise AssertionError("This system does not report the memory of a process.")


class Watch:
    """The highest memory of a process within the block."""

    def __init__(self, pid: int) -> None:
        self.highest = memory_of(pid)
        self._pid = pid
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._has_ended.wait(SAMPLE_S):
            self.highest = max(self.highest, memory_of(self._pid))

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._has_ended.set()
        self._thread.join()


def size_of(folder: Path) -> int:
    """Return the size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def attempt(shape: Shape, *, together: int = 1, scale: float = 1.0) -> Result:
    """Send one request, or several at the same time, to a new server."""
    size = int(shape.size * scale)
    with tempfile.TemporaryDirectory(prefix="stream-car-attack-") as place:
        folder = Path(place) / "data"
        with Server(folder, stderr=subprocess.DEVNULL) as server:
            _send(server.url, Shape("", LINES, repeated(b"1\n"), PIECE))  # loads what the first request needs
            idle = memory_of(server.process.pid)
            begin = time.monotonic()
            with Watch(server.process.pid) as watch, ThreadPoolExecutor(together) as pool:
                statuses = list(pool.map(lambda _: _send(server.url, shape, size), range(together)))
            seconds = time.monotonic() - begin
            memory = watch.highest - idle
            server.process.terminate()
            server.process.wait(30)
        disk = size_of(folder)
    sent = size * together
    return Result(
        name=shape.name if together == 1 else f"{together} x {shape.name}",
        sent=sent,
        seconds=seconds,
        memory=memory,
        memory_max=ONE_MAX if together == 1 else ALL_MAX,
        disk=disk,
        disk_max=DISK_FREE + DISK_FACTOR_MAX * sent if shape.is_rejected else None,
        statuses=tuple(statuses),
    )


def _send(url: str, shape: Shape, size: int | None = None) -> int:
    """Send a request, read its answer piece by piece, and return its status."""
    content = shape.pieces(shape.size if size is None else size)
    try:
        with (
            httpx.Client(base_url=url, timeout=600) as client,
            client.stream("POST", PATH, content=content, headers=shape.headers) as response,
        ):
            for _ in response.iter_raw(PIECE):
                pass
            return response.status_code
    except httpx.TransportError:
        return 503  # the connection was closed while the body was being sent


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.memory", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes of the bodies")
    parser.add_argument("--together", type=int, default=TOGETHER, help="how many requests are sent at the same time")
    given = parser.parse_args()
    results = []
    for together, scale in ((1, given.scale), (given.together, given.scale / 32)):
        for shape in SHAPES:
            results.append(attempt(shape, together=together, scale=scale))
            print(results[-1], flush=True)
    return not all(result.is_good for result in results)


if __name__ == "__main__":
    sys.exit(main())
