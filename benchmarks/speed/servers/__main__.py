"""Runs all measurements in a few minutes; exit code 1 if a goal is missed."""

import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.speed.report import show
from benchmarks.speed.servers import latencies, takeovers, throughput
from benchmarks.speed.servers.floors import measure_floors
from benchmarks.speed.servers.testbed import open_testbed

DOCUMENTS = 30_000
DEATHS = 6


async def run(folder: Path, length: int) -> int:
    """Print all tables; return 1 if a goal was missed."""
    async with open_testbed(folder) as testbed:
        await testbed.start_workers(throughput.WORKERS)
        missed = show(f"{length:,} documents of 1 KB, twice", await throughput.measure_throughput(testbed, length))
        documents = [*throughput.documents(length, 1), *throughput.documents(length, 2)]
        missed |= show("Redis memory", await throughput.measure_memory(testbed, documents))
        changes = await latencies.measure_changes(testbed)
        missed |= show("idle", [*changes, *await latencies.measure_stage_2(testbed, documents)])
        missed |= show("servers and clients alone", await measure_floors(testbed, throughput.messages(length, 9)))
        missed |= show("state lost", await throughput.measure_recovery(testbed))
        overall, stages = await throughput.measure_stages(testbed, length)
        show("new workers that read the state first, with stopwatches", [*overall, *stages])
        await testbed.start_workers(throughput.WORKERS)
        missed |= show("workers killed", await takeovers.measure(testbed, DEATHS))
    return missed


def main(length: int = DOCUMENTS) -> int:
    """Run on servers of its own."""
    with tempfile.TemporaryDirectory(prefix="stream-car-bench-") as folder:
        return asyncio.run(run(Path(folder), length))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
