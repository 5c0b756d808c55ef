"""What the fold's cache costs in memory: `python -m tests.benchmarks.memory [DOCUMENTS]`.

Promise: every document is decoded from its bytes while memory is traced and forgotten afterwards, so
that what the cache keeps alive of it is counted. The cache is a bounded dictionary of decoded
values; a document's share is all of it (documents, scopes, pages) by the documents known.
"""

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator

from stream_car.codec import content_digest, decode, encode, encode_mapping
from stream_car.core.documents import Document, Statement
from stream_car.core.standing import Held
from stream_car.engine.state import State
from stream_car.engine.stored import decode_value, encode_value
from tests.benchmarks.feed import Arrival, mixed
from tests.benchmarks.report import Figure, show
from tests.benchmarks.shard import compliance, take

DOCUMENTS = 100_000
BYTES = 500


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
    known = sum(isinstance(value, Held) for value in values.values())
    stored = [(bytes(key), encode_value(value)) for key, value in values.items()]
    size = sum(len(key) + len(value or b"") for key, value in stored)
    del values
    again, _ = _traced(lambda: _read_back(stored))
    figures = [
        Figure(name="freshly folded", value=fresh / known, unit="bytes", most=BYTES),
        Figure(name="read back from a store", value=again / known, unit="bytes", most=BYTES),
        Figure(name="as bytes in the store", value=size / known, unit="bytes"),
    ]
    return show(f"memory a document in the fold's cache, {known:,} documents known", figures)


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
