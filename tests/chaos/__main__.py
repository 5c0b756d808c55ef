"""From the shell: `python -m tests.chaos --kills 130 --points 70 --cuts 20 --wipes 3 --brokers 5 [--seed N]`."""

import argparse
import asyncio
import tempfile
import time
from functools import partial
from pathlib import Path

from msgspec.structs import fields

from deploy.local import Kafka, Redis
from tests.chaos.mishaps import SESSION_S, SHORT_SESSIONS, Chaos, Dose


def main() -> None:
    """Run it and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    counted = [field.name for field in fields(Dose) if field.type is int]
    for name in (*counted, "seed"):
        parser.add_argument(f"--{name}", type=int, default=0, metavar="N")
    parser.add_argument("--session", type=float, default=SESSION_S, metavar="SECONDS", help="of the group")
    asked = vars(parser.parse_args())
    folder = Path(tempfile.mkdtemp(prefix="stream-car-chaos-"))
    kafka, redis = Kafka(folder / "kafka", properties=SHORT_SESSIONS), Redis(folder / "redis")
    begin = time.monotonic()
    said = partial(print, flush=True)
    chaos = Chaos(kafka, redis, folder, asked["seed"], said, session_s=asked["session"])
    try:
        redis.start()
        kafka.start()
        found = asyncio.run(chaos.run(Dose(**{name: asked[name] for name in counted})))
    finally:
        kafka.kill()
        redis.kill()
    print(
        f"all as the definition has it, after {time.monotonic() - begin:.0f} s: {found.acknowledged} acknowledged of "
        f"{found.inputs} inputs, {found.changes} changes, {found.repeats} repeats, {found.rejected} rejected; "
        f"{chaos.deaths} workers died at work, at points {chaos.reached}"
    )


if __name__ == "__main__":
    main()
