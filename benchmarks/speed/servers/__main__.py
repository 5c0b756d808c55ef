"""Everything in one run, a few minutes; a missed goal is exit code 1."""

import asyncio
import sys
import tempfile
from pathlib import Path

from benchmarks.speed.report import show
from benchmarks.speed.servers import flow, moments
from benchmarks.speed.servers.floors import floors
from benchmarks.speed.servers.place import measured

DOCUMENTS = 30_000


async def run(folder: Path, length: int) -> int:
    """Print all tables; 1 where a goal was missed."""
    async with measured(folder) as here:
        await here.work(flow.WORKERS)
        missed = show(f"{length:,} documents of 1 KB, twice", await flow.throughput(here, length))
        said = [*flow.documents(length, 1), *flow.documents(length, 2)]
        missed |= show("what Redis keeps", await flow.kept(here, said))
        missed |= show("at rest", [*await moments.changes(here), *await moments.second_stage(here, said)])
        missed |= show("without us", await floors(here, flow.messages(length, 9)))
        missed |= show("state lost", await flow.replayed(here))
        whole, stages = await flow.stages(here, length)
        show("workers that have to read the state, with stopwatches", [*whole, *stages])
        await here.work(flow.WORKERS)
        missed |= show("workers killed", await moments.moved_again(here))
    return missed


def main(length: int = DOCUMENTS) -> int:
    """Over servers of its own."""
    with tempfile.TemporaryDirectory(prefix="stream-car-bench-") as folder:
        return asyncio.run(run(Path(folder), length))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
