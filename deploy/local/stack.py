"""Everything on one machine for a person to play with: servers, topics, workers and a query worker.

Promise: it prints what to try once the query worker answers; Ctrl-C ends all in order, workers before servers.
"""

import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import httpx

from deploy.local.kafka import Kafka
from deploy.local.processes import Process, free_ports
from deploy.local.redis import Redis

WORKERS = 2
PARTITIONS = "4"
READY_S = 90.0
TRY = """\
{url}/ shows what happens; in another terminal:

  curl {url}/v1/documents -H 'Content-Type: application/x-ndjson' --data-binary @stream_car/demo/feed.jsonl
  {command} query --url {url} 'Is Log4j vulnerable to remote code execution through JNDI lookups?'
  {command} frontier --url {url} vulnerability=CVE-2021-44228
  export STREAM_CAR_KAFKA={kafka} STREAM_CAR_REDIS={redis}
  {command} worker all --single-broker       one more worker takes its share; kill -9 it and see
  kcat -b {kafka} -C -t streamcar.changes    what enters and leaves, as it happens

Logs are in {folder}. All of it runs until Ctrl-C.
"""


def stack(folder: Path, version: str) -> ExitStack:
    """Start all; closing what is returned ends all. Raises `Failed`."""
    kafka, redis = Kafka(folder / "kafka", version=version), Redis(folder / "redis")
    command = Path(sys.executable).with_name("stream-car")
    port = free_ports(1)[0]
    with ExitStack() as ending:
        for server in (redis, kafka):
            ending.callback(server.stop)
            server.start()
        environment = {**os.environ, "STREAM_CAR_KAFKA": kafka.address, "STREAM_CAR_REDIS": redis.url}
        apply = ["topics", "apply", "--single-broker", "--intakes", PARTITIONS, "--frontiers", PARTITIONS]
        subprocess.run([command, *apply], env=environment, check=True)
        programs: dict[str, tuple[str, ...]] = {f"worker-{n}": ("worker", "all") for n in range(WORKERS)}
        programs["serve"] = ("serve", "--port", str(port))
        started = {}
        for name, words in programs.items():
            place = folder / name
            place.mkdir(exist_ok=True)
            started[name] = Process([str(command), *words, "--single-broker"], place, environment=environment)
            ending.callback(started[name].stop)
        url = f"http://127.0.0.1:{port}"
        for n in range(WORKERS):
            worker = started[f"worker-{n}"]
            worker.wait_until(lambda worker=worker: "assigned" in worker.tail(), timeout=READY_S)  # type: ignore[misc]
        started["serve"].wait_until(lambda: _answers(f"{url}/readyz"), timeout=READY_S)
        print(TRY.format(url=url, command=command, kafka=kafka.address, redis=redis.url, folder=folder), flush=True)
        return ending.pop_all()
    raise AssertionError


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
