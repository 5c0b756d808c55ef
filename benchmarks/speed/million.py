"""The embedded engine with a million documents: `python -m benchmarks.speed.million [DOCUMENTS]`.

Promise: documents of 1 KB are published as in any bulk load, then the engine is queried as with 10^5 documents. It
takes some minutes and four gigabytes of disk and is not part of `make bench`.
"""

import resource
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import stream_car
from benchmarks.speed.embedded import SIZE, measure_queries
from benchmarks.speed.event_stream import paragraphs
from benchmarks.speed.report import Figure, show

DOCUMENTS = 1_000_000
QUERY_MS = (6.0, None)  # p99 has a goal with 10^5 documents only


def main(documents: int = DOCUMENTS) -> int:
    """Print the rate, the memory and the latencies."""
    with tempfile.TemporaryDirectory() as folder, stream_car.open(Path(folder) / "engine") as engine:
        begin = perf_counter()
        engine.publish(paragraphs(documents, SIZE))
        rate = documents / (perf_counter() - begin)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        missed = show(
            f"{documents:,} documents of 1 KB published",
            [
                Figure(name="including the text index", value=rate, unit="docs/s"),
                Figure(name="peak memory of the process", value=peak, unit="MiB", note="including receipts"),
            ],
        )
        return missed | measure_queries(engine, documents, QUERY_MS)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
