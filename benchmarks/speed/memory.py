"""The memory of the fold's cache, and of a bulk load: `python -m benchmarks.speed.memory [DOCUMENTS]`.

Promise: every document is decoded from its bytes while memory is traced and dropped afterwards, so that only what the
cache keeps of it is counted. The cache is a bounded dictionary of decoded values; its size per document is all of it
(documents, scopes, pages) divided by the known documents. Bulk loads run in their own processes, which report their
peak memory without pages of files.
"""

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.speed.event_stream import Arrival, mixed
from benchmarks.speed.report import Figure, show
from benchmarks.speed.shard import apply, compliance_fold
from stream_car.codec import content_digest, decode, encode, encode_mapping
from stream_car.core.documents import Document, Statement
from stream_car.core.stored import StoredDocument
from stream_car.processing.state import State, decode_value, encode_value

DOCUMENTS = 100_000
BYTES = 500
LOADS = ((12_000, 10_000), (24_000, 10_000), (48_000, 1_000))  # documents, bytes per document
LOADED_MIB = 300.0
LOAD = """
from itertools import islice
import stream_car
from benchmarks.speed.event_stream import paragraphs
from benchmarks.speed.memory import own_memory
with stream_car.open() as engine:
    documents, peak = paragraphs({number}, {size}), 0.0
    while batch := list(islice(documents, 1000)):
        engine.publish(batch)
        peak = max(peak, own_memory())
    print(peak)
"""


def main(documents: int = DOCUMENTS) -> int:
    """Print bytes per document, after folding and after reading back from a store."""
    messages = [(_encode(arrival.statement), arrival.append_time) for arrival in mixed(documents)]
    fold = compliance_fold()

    def fold_all() -> State:
        state = State()
        for offset, arrival in enumerate(_decode(messages)):
            apply(fold, state, [arrival], start=offset)
        return state

    folded_bytes, state = _trace(fold_all)
    known = sum(isinstance(value, StoredDocument) for value in state.values())
    stored = [(bytes(key), encode_value(value)) for key, value in state.items()]
    size = sum(len(key) + len(value or b"") for key, value in stored)
    del state
    read_bytes, _ = _trace(lambda: _read_back(stored))
    figures = [
        Figure(name="after folding", value=folded_bytes / known, unit="bytes", at_most=BYTES),
        Figure(name="read back from a store", value=read_bytes / known, unit="bytes", at_most=BYTES),
        Figure(name="as bytes in the store", value=size / known, unit="bytes"),
    ]
    missed = show(f"memory per document in the fold's cache, {known:,} documents known", figures)
    return missed | _bulk_loads()


def _bulk_loads() -> int:
    """Measure the memory of publishing small and large documents; it must not grow with their number."""
    figures = [
        Figure(
            name=f"{number:,} documents of {size:,} bytes",
            value=_peak(number, size),
            unit="MiB",
            at_most=LOADED_MIB,
        )
        for number, size in LOADS
    ]
    return show("peak memory of a process that publishes documents, a thousand at a time", figures)


def own_memory() -> float:
    """Return the memory of this process in MiB, without pages of files, which the system can reclaim."""
    status = Path("/proc/self/status").read_text().partition("RssAnon:")[2]
    return int(status.split()[0]) / 1024


def _peak(number: int, size: int) -> float:
    script = LOAD.format(number=number, size=size)
    finished = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return float(finished.stdout)


def _read_back(stored: list[tuple[bytes, bytes | None]]) -> State:
    state = State()
    for key, value in stored:
        state[key] = decode_value(key, value)
    return state


def _encode(statement: Statement) -> bytes:
    if isinstance(statement, Document):
        return encode(statement)
    return encode_mapping({"id": statement.id, "revision": statement.revision, "retracted": True})


def _decode(messages: list[tuple[bytes, int]]) -> Iterator[Arrival]:
    for value, append_time in messages:
        statement = decode(value)
        yield Arrival(statement, append_time, content_digest(statement) if isinstance(statement, Document) else b"")


def _trace(make: Callable[[], State]) -> tuple[int, State]:
    """Return the bytes that a state keeps allocated, and the state."""
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    state = make()
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return after - before, state


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
