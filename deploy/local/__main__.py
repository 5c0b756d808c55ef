"""From the shell: `python -m deploy.local run -- COMMAND`, or without a command until Ctrl-C.

python -m deploy.local fetch                   put Kafka's jars into the cache
python -m deploy.local run                     a Kafka and a Redis; prints how to reach them
python -m deploy.local run -- pytest ...       the same, for as long as a command runs
python -m deploy.local run --cluster           Redis as a cluster of three
python -m deploy.local stack                   the same with topics, workers and a query worker, to play with
python -m deploy.local run --keep FOLDER       state stays in FOLDER and is there the next time
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from deploy.local import Failed, Kafka, Redis, RedisCluster
from deploy.local.kafka import VERSION, fetch


def main(arguments: Sequence[str]) -> int:
    """The exit code; that of the command where one is run."""
    parser = argparse.ArgumentParser(prog="python -m deploy.local", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="what", required=True)
    fetching = commands.add_parser("fetch", help="put Kafka's jars into the cache")
    running = commands.add_parser("run", help="run both servers, for a command or until Ctrl-C")
    playing = commands.add_parser("stack", help="run everything, with workers and a query worker, until Ctrl-C")
    playing.add_argument("--keep", type=Path, metavar="FOLDER", help="where state stays; else it is removed at the end")
    for command in (fetching, running, playing):
        command.add_argument("--kafka-version", default=VERSION, metavar="VERSION")
    running.add_argument("--cluster", action="store_true", help="Redis as a cluster of three")
    running.add_argument("--keep", type=Path, metavar="FOLDER", help="where state stays; else it is removed at the end")
    running.add_argument("command", nargs="*", metavar="COMMAND")
    asked = parser.parse_args(arguments)
    if asked.what == "fetch":
        print(fetch(asked.kafka_version))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if asked.what == "stack":
            return play(folder=asked.keep, version=asked.kafka_version)
        return run(asked.command, folder=asked.keep, version=asked.kafka_version, cluster=asked.cluster)
    except Failed as failed:
        print(failed, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def play(*, folder: Path | None, version: str) -> int:
    """Run everything until Ctrl-C."""
    from deploy.local.stack import stack  # needs the project's own packages, which `fetch` comes before

    with ExitStack() as ending:
        ending.enter_context(stack(_kept(folder, ending), version))
        signal.pause()
    return 0


def _kept(folder: Path | None, ending: ExitStack) -> Path:
    """The folder; a temporary one is removed at the end."""
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="stream-car-servers-"))
        ending.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder.absolute()


def run(command: Sequence[str], *, folder: Path | None, version: str, cluster: bool) -> int:
    """Start both, run the command with their addresses in its environment, end both."""
    with ExitStack() as ending:
        folder = _kept(folder, ending)
        kafka = Kafka(folder / "kafka", version=version)
        redis = RedisCluster(folder / "cluster") if cluster else Redis(folder / "redis")
        ending.callback(kafka.stop)
        ending.callback(redis.stop)
        redis.start()
        kafka.start()
        found = {"STREAM_CAR_KAFKA": kafka.address, "STREAM_CAR_REDIS": redis.url}
        if command:
            return subprocess.run(list(command), env={**os.environ, **found}, check=False).returncode
        for name, value in found.items():
            print(f"export {name}={value}", flush=True)
        print("# both run until Ctrl-C", flush=True)
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
