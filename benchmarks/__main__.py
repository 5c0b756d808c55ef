"""Runs the benchmarks of speed, each in its own interpreter: `python -m benchmarks [NAME ...]`; `make bench` runs all.

Each prints its table beside its rivals and goals. Exit code 1 if a goal is missed.
"""

import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ORDER = (  # what is short and basic comes first
    "speed.core_step",
    "speed.growth",
    "speed.embedded",
    "speed.bulk_publish",
    "speed.cache",
    "speed.memory",
    "speed.feeds",
    "speed.affected",
    "speed.service",
    "speed.hops",
    "speed.servers",
    "rivals.kafka_streams",
)


def main(names: list[str]) -> int:
    """Run these benchmarks, or all; say how far the run is, and at the end what failed."""
    chosen = [name for name in ORDER if not names or name in names or name.rpartition(".")[2] in names]
    failed: list[str] = []
    for number, name in enumerate(chosen, 1):
        title = (importlib.import_module(f"benchmarks.{name}").__doc__ or "").partition(":")[0]
        print(f"\n[{number} of {len(chosen)}] {name}, load {os.getloadavg()[0]:.1f}: {title}", flush=True)
        begin = time.monotonic()
        finished = subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], check=False, cwd=ROOT)
        failed += [name] if finished.returncode else []
        print(
            f"{name}: {'FAILED' if finished.returncode else 'done'} after {time.monotonic() - begin:.0f} s", flush=True
        )
    missed = f" Failed: {', '.join(failed)}." if failed else ""
    print(f"\n{len(chosen) - len(failed)} of {len(chosen)} met their goals.{missed}")
    return int(bool(failed) or not chosen)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
