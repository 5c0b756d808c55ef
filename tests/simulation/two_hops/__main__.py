"""Runs of the two hops: `python -m tests.simulation.two_hops SEED...` sees seeds again.

`--seeds FIRST LAST` runs many, on as many processes as `--processes` says; `--mutants MOST` looks for
the seeds that catch each mutant, to be written down in `recorded.py`.
"""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from stream_car.errors import StreamCarError
from tests.simulation.two_hops.mutants import MUTANTS
from tests.simulation.two_hops.plan import HONEST, Parts
from tests.simulation.two_hops.world import replay_command, simulate

RECORDED = 3


def fails(seed: int, parts: Parts = HONEST) -> bool:
    """Whether a run breaks a promise."""
    try:
        simulate(seed, parts)
    except (AssertionError, LookupError, RuntimeError, StreamCarError):
        return True
    return False


def run(seed: int) -> tuple[Counter[str], float, str]:
    """What befell a run, the seconds that it took, and what broke."""
    begin = time.process_time()
    try:
        return simulate(seed), time.process_time() - begin, ""
    except Exception as broken:
        return Counter(), 0.0, f"seed {seed}: {broken!r}; see it again with: {replay_command(seed)}"


def run_many(seeds: range, processes: int) -> int:
    """Run seeds, print what breaks and what befell them."""
    seen: Counter[str] = Counter()
    spent, broken = 0.0, 0
    with ProcessPoolExecutor(processes) as pool:
        for befell, seconds, wrong in pool.map(run, seeds, chunksize=50):
            seen += befell
            spent += seconds
            if wrong:
                broken += 1
                print(wrong, flush=True)
    print(f"{len(seeds)} seeds, {broken} broken, {spent:.0f} s of CPU, {spent / len(seeds) * 1000:.1f} ms a seed")
    print(", ".join(f"{name}: {count:,}" for name, count in seen.most_common()))
    return min(broken, 1)


def hunt(most: int) -> int:
    """For each mutant the first seeds that catch it."""
    for name, parts in MUTANTS.items():
        caught: list[int] = []
        for seed in range(most):
            if fails(seed, parts):
                caught.append(seed)
                if len(caught) == RECORDED:
                    break
        print(f'    "{name}": {tuple(caught)},', flush=True)
    return 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.two_hops", description=__doc__)
    parser.add_argument("seed", nargs="*", type=int)
    parser.add_argument("--seeds", nargs=2, type=int, metavar=("FIRST", "LAST"))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--mutants", type=int, metavar="MOST")
    arguments = parser.parse_args()
    if arguments.mutants:
        return hunt(arguments.mutants)
    if arguments.seeds:
        return run_many(range(arguments.seeds[0], arguments.seeds[1]), arguments.processes)
    for seed in arguments.seed:
        print(f"seed {seed} holds: {dict(simulate(seed))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
