"""The embedded engine as it grows to a million documents: `python -m benchmarks.speed.million [DOCUMENTS] [SIZE]`.

Promise: one folder is filled a thousand documents at a time, from one stream, whatever `DOCUMENTS` is. At 10^4, 10^5,
3 x 10^5 and at the end it is measured: the processor time of all threads without that of making the documents, how
long publications took (wall-clock time, and processor time of the caller, which other work on the machine hardly
affects), the memory of the process, and the bytes of each part on disk. Then it is queried. It takes some minutes and
two gigabytes of disk and is not part of `make bench`.
"""

import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time, thread_time

import msgspec

import stream_car
from benchmarks.speed.embedded import measure_queries
from benchmarks.speed.event_stream import paragraphs
from benchmarks.speed.memory import own_memory
from benchmarks.speed.report import Figure, quantile, show
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.local.engine import Engine

DOCUMENTS = 1_000_000
STREAM = 1_000_000  # the documents of the stream, of which a smaller run takes the first
SIZES = (10_000, 100_000, 300_000)
SIZE = 300
BATCH = 1_000
SINGLES = 200
GROWTH = 1.25
LONGEST = 3.0  # times the median, of a publication of `BATCH` documents
LONGEST_SINGLE = 5.0  # the same of one document
MEMORY_MIB = 350.0
DISK = {300: 3.0, 1_000: 2.0}  # times the input, by the size of the documents
QUERY_MS = (6.0, None)  # p99 has a goal with 10^5 documents only
PARTS = {
    "documents.sqlite": "log",
    "state.sqlite": "state",
    "analysed.sqlite": "terms",
    "scopes.sqlite": "names of scopes",
}
OTHER = "text index"


class _Filling:
    """A folder that is being filled, and what its publications cost."""

    def __init__(self, engine: Engine, size: int) -> None:
        self.engine = engine
        self.count = self.input_bytes = 0
        self.first_cost = 0.0  # microseconds of processor time a document, up to the first size
        self._size = size
        self._stream = paragraphs(STREAM, size)

    def fill(self, count: int) -> int:
        """Publish documents until there are `count`, and print what was measured; 1 if a goal was missed."""
        added, times = count - self.count, []
        begin, making = process_time(), 0.0
        while self.count < count:
            before = thread_time()
            messages = [encode(document) for document in islice(self._stream, min(BATCH, count - self.count))]
            making += thread_time() - before
            self.input_bytes += sum(map(len, messages))
            times.append(self._publish(messages))
            self.count += len(messages)
        cost = (process_time() - begin - making) / added * 1e6
        self.first_cost = self.first_cost or cost
        return show(
            f"the {added:,} documents of {self._size:,} bytes up to {count:,}",
            [
                Figure(name="processor time, all threads", value=cost, unit="us/doc", at_most=GROWTH * self.first_cost),
                *_publications(f"{BATCH:,} documents", times, LONGEST),
                *_publications("one document", list(self._singles()), LONGEST_SINGLE),
                Figure(name="memory", value=own_memory(), unit="MiB", at_most=MEMORY_MIB),
                *self._disk(),
            ],
        )

    def _publish(self, messages: list[bytes]) -> tuple[float, float]:
        begin, cpu = perf_counter(), thread_time()
        self.engine.publish(messages)
        return perf_counter() - begin, thread_time() - cpu

    def _singles(self) -> Iterator[tuple[float, float]]:
        for number, document in enumerate(paragraphs(SINGLES, self._size, seed=self.count)):
            yield self._publish([_renamed(document, f"single-{self.count}-{number}")])

    def _disk(self) -> list[Figure]:
        parts = dict.fromkeys([*PARTS.values(), OTHER], 0)
        for file in self.engine.directory.path.rglob("*"):
            if file.is_file():
                parts[_part(file)] += file.stat().st_size
        total = sum(parts.values()) / self.input_bytes
        goal = DISK.get(self._size)
        return [
            Figure(name="disk", value=total, unit="x input", at_most=goal),
            *(Figure(name=f"  {part}", value=size / self.count, unit="bytes/doc") for part, size in parts.items()),
        ]


def _part(file: Path) -> str:
    return next((part for start, part in PARTS.items() if file.name.startswith(start)), OTHER)


def _renamed(document: Document, name: str) -> bytes:
    return encode(msgspec.structs.replace(document, id=name))


def _publications(what: str, times: list[tuple[float, float]], longest: float) -> list[Figure]:
    """Return figures of wall-clock and processor seconds."""
    wall, cpu = ([each[kind] * 1e3 for each in times] for kind in (0, 1))
    median, cpu_median = quantile(wall, 0.5), quantile(cpu, 0.5)
    return [
        Figure(name=f"publishing {what}, p50", value=median, unit="ms"),
        Figure(name=f"publishing {what}, p99", value=quantile(wall, 0.99), unit="ms"),
        Figure(name=f"publishing {what}, longest", value=max(wall), unit="ms", at_most=longest * median),
        Figure(name="  its processor time, p50", value=cpu_median, unit="ms"),
        Figure(name="  its processor time, longest", value=max(cpu), unit="ms", at_most=longest * cpu_median),
    ]


def main(documents: int = DOCUMENTS, size: int = SIZE) -> int:
    """Print what publishing costs at every size, and then the latencies of queries."""
    with tempfile.TemporaryDirectory() as folder, stream_car.open(Path(folder) / "engine") as engine:
        filling, missed = _Filling(engine, size), 0
        for count in [*(each for each in SIZES if each < documents), documents]:
            missed |= filling.fill(count)
        return missed | measure_queries(engine, documents, QUERY_MS)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
