"""From the shell: `python -m tests.chaos --kills 200 --cuts 20 --wipes 3 --brokers 5 [--seed N]`."""

import argparse
import asyncio
import tempfile
from pathlib import Path

from deploy.local import Kafka, Redis
from tests.chaos.mishaps import Chaos, Dose


def main() -> None:
    """Run it and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    for name in ("kills", "cuts", "wipes", "brokers", "seed"):
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N")
    asked = parser.parse_args()
    dose = Dose(kills=asked.kills, cuts=asked.cuts, wipes=asked.wipes, brokers=asked.brokers)
    folder = Path(tempfile.mkdtemp(prefix="stream-car-chaos-"))
    kafka, redis = Kafka(folder / "kafka"), Redis(folder / "redis")
    try:
        redis.start()
        kafka.start()
        found = asyncio.run(Chaos(kafka, redis, folder, asked.seed, print).run(dose))
    finally:
        kafka.kill()
        redis.kill()
    print(f"all as the definition has it: {found.inputs} inputs, {found.changes} changes, {found.repeats} repeats")


if __name__ == "__main__":
    main()
