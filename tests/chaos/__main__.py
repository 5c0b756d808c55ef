"""Run chaos: `python -m tests.chaos --documents 8000 --kills 10 --flushes 5 --query-kills 5 [--seed N]`."""

import argparse
import asyncio
import tempfile
import time
from functools import partial
from pathlib import Path

from msgspec.structs import fields

from deploy.local import Kafka, Redis
from tests.chaos.run import SESSION_S, SHORT_SESSIONS, Chaos, Dose


def main() -> None:
    """Run it and print the verdict."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    counted = [field.name for field in fields(Dose) if field.type is int]
    defaults = {field.name: field.default for field in fields(Dose)}
    for name in (*counted, "seed"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=defaults.get(name, 0), metavar="N")
    parser.add_argument("--session", type=float, default=SESSION_S, metavar="SECONDS", help="of the consumer group")
    parser.add_argument("--pause", type=float, default=1.5, metavar="SECONDS", help="at most, between two faults")
    arguments = vars(parser.parse_args())
    folder = Path(tempfile.mkdtemp(prefix="stream-car-chaos-"))
    kafka, redis = Kafka(folder / "kafka", properties=SHORT_SESSIONS), Redis(folder / "redis")
    begin = time.monotonic()
    report = partial(print, flush=True)
    chaos = Chaos(kafka, redis, folder, arguments["seed"], report, session_s=arguments["session"])
    try:
        redis.start()
        kafka.start()
        verdict = asyncio.run(
            chaos.run(Dose(**{name: arguments[name] for name in counted}, pause_s=arguments["pause"]))
        )
    finally:
        kafka.kill()
        redis.kill()
    print(
        f"All as defined, after {time.monotonic() - begin:.0f} s: {verdict.acknowledged} acknowledged of "
        f"{verdict.inputs} inputs, {verdict.changes} changes, {verdict.repeats} repeats, {verdict.rejected} rejected; "
        f"{chaos.mishaps.deaths} workers died while they had shards; deaths by point: {chaos.mishaps.reached}; "
        f"{chaos.prober.sampled} answers sampled during the faults: {dict(sorted(chaos.prober.answers.items()))}; "
        f"{chaos.compared} compared at rest, {chaos.marked} marked after history was lost"
    )


if __name__ == "__main__":
    main()
