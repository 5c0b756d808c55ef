"""What the fold's cache costs in memory, and what a bulk load takes: `python -m benchmarks.speed.memory [DOCUMENTS]`.

Promise: every document is decoded from its bytes while memory is traced and forgotten afterwards, so
that what the cache keeps alive of it is counted. The cache is a bounded dictionary of decoded
values; a document's share is all of it (documents, scopes, pages) by the documents known. Bulk loads run in
processes of their own, which say how much memory they had at most, pages of files apart.
"""

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.speed.feed import Arrival, mixed
from benchmarks.speed.report import Figure, show
from benchmarks.speed.shard import compliance, take
from stream_car.codec import content_digest, decode, encode, encode_mapping
from stream_car.core.documents import Document, Statement
from stream_car.core.stored import StoredDocument
from stream_car.processing.state import State, decode_value, encode_value

DOCUMENTS = 100_000
BYTES = 500
LOADS = ((12_000, 10_000), (24_000, 10_000), (48_000, 1_000))  # documents, bytes each
LOADED_MIB = 300.0
LOAD = """
from itertools import islice
import stream_car
from benchmarks.speed.feed import paragraphs
from benchmarks.speed.memory import own_memory
with stream_car.open() as engine:
    documents, most = paragraphs({number}, {size}), 0.0
    while some := list(islice(documents, 1000)):
        engine.publish(some)
        most = max(most, own_memory())
    print(most)
"""


def main(documents: int = DOCUMENTS) -> int:
    """Print bytes a document, freshly folded and read back from a store."""
    sent = [(_bytes(arrival.said), arrival.append_time) for arrival in mixed(documents)]
    fold = compliance()

    def folded() -> State:
        values = State()
        for offset, arrival in enumerate(_decoded(sent)):
            take(fold, values, [arrival], start=offset)
        return values

    fresh, values = _traced(folded)
    known = sum(isinstance(value, StoredDocument) for value in values.values())
    stored = [(bytes(key), encode_value(value)) for key, value in values.items()]
    size = sum(len(key) + len(value or b"") for key, value in stored)
    del values
    again, _ = _traced(lambda: _read_back(stored))
    figures = [
        Figure(name="freshly folded", value=fresh / known, unit="bytes", most=BYTES),
        Figure(name="read back from a store", value=again / known, unit="bytes", most=BYTES),
        Figure(name="as bytes in the store", value=size / known, unit="bytes"),
    ]
    missed = show(f"memory a document in the fold's cache, {known:,} documents known", figures)
    return missed | _bulk_loads()


def _bulk_loads() -> int:
    """What a publisher of small and of large documents needs; it must not grow with what is published."""
    figures = [
        Figure(
            name=f"{number:,} documents of {size:,} bytes",
            value=_peak(number, size),
            unit="MiB",
            most=LOADED_MIB,
        )
        for number, size in LOADS
    ]
    return show("most memory of a process that publishes documents, a thousand at a time", figures)


def own_memory() -> float:
    """MiB that this process has for itself; pages of files that the system could take back are not its own."""
    said = Path("/proc/self/status").read_text().partition("RssAnon:")[2]
    return int(said.split()[0]) / 1024


def _peak(number: int, size: int) -> float:
    script = LOAD.format(number=number, size=size)
    finished = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return float(finished.stdout)


def _read_back(stored: list[tuple[bytes, bytes | None]]) -> State:
    state = State()
    for key, value in stored:
        state[key] = decode_value(key, value)
    return state


def _bytes(said: Statement) -> bytes:
    if isinstance(said, Document):
        return encode(said)
    return encode_mapping({"id": said.id, "revision": said.revision, "retracted": True})


def _decoded(sent: list[tuple[bytes, int]]) -> Iterator[Arrival]:
    for value, append_time in sent:
        said = decode(value)
        yield Arrival(said, append_time, content_digest(said) if isinstance(said, Document) else b"")


def _traced(make: Callable[[], State]) -> tuple[int, State]:
    """The bytes that a value keeps, and the value."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    values = make()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return after - before, values


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
