"""Everything on one machine to try it out: servers, topics, workers and a query worker.

Promise: it prints what to try when the query worker answers. Ctrl-C stops everything in order, workers before servers.
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
Open {url}/ to see what happens. In another terminal:

  curl {url}/v1/documents -H 'Content-Type: application/x-ndjson' --data-binary @stream_car/demo/feed.jsonl
  {command} query --url {url} 'Is Log4j vulnerable to remote code execution through JNDI lookups?'
  {command} frontier --url {url} vulnerability=CVE-2021-44228
  export STREAM_CAR_KAFKA={kafka} STREAM_CAR_REDIS={redis}
  {command} worker all --single-broker       adds a worker that takes its share; try kill -9
  kcat -b {kafka} -C -t streamcar.changes    shows what enters and leaves, as it happens

Logs are in {folder}. Everything runs until Ctrl-C.
"""


def stack(folder: Path, version: str) -> ExitStack:
    """Start everything; closing the returned stack stops everything.

    Raises:
        StartFailed: a server or a worker did not start.
    """
    kafka, redis = Kafka(folder / "kafka", version=version), Redis(folder / "redis")
    command = Path(sys.executable).with_name("stream-car")
    port = free_ports(1)[0]
    with ExitStack() as cleanup:
        for server in (redis, kafka):
            cleanup.callback(server.stop)
            server.start()
        environment = {**os.environ, "STREAM_CAR_KAFKA": kafka.address, "STREAM_CAR_REDIS": redis.url}
        apply = ["topics", "apply", "--single-broker", "--intakes", PARTITIONS, "--frontiers", PARTITIONS]
        subprocess.run([command, *apply], env=environment, check=True)
        programs: dict[str, tuple[str, ...]] = {f"worker-{n}": ("worker", "all") for n in range(WORKERS)}
        programs["query-worker"] = ("query-worker", "--port", str(port))
        processes = {}
        for name, words in programs.items():
            log_folder = folder / name
            log_folder.mkdir(exist_ok=True)
            processes[name] = Process([str(command), *words, "--single-broker"], log_folder, environment=environment)
            cleanup.callback(processes[name].stop)
        url = f"http://127.0.0.1:{port}"
        for n in range(WORKERS):
            worker = processes[f"worker-{n}"]
            worker.wait_until(lambda worker=worker: "assigned" in worker.tail(), timeout=READY_S)  # type: ignore[misc]
        processes["query-worker"].wait_until(lambda: _answers(f"{url}/readyz"), timeout=READY_S)
        print(TRY.format(url=url, command=command, kafka=kafka.address, redis=redis.url, folder=folder), flush=True)
        return cleanup.pop_all()
    raise AssertionError


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2).status_code == httpx.codes.OK
    except httpx.HTTPError:
        return False
