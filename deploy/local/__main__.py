"""Runs servers from the shell: `python -m deploy.local run -- COMMAND`, or without a command until Ctrl-C.

python -m deploy.local fetch                   download Kafka's jars into the cache
python -m deploy.local run                     start a Kafka and a Redis and print their addresses
python -m deploy.local run -- pytest ...       the same, for as long as a command runs
python -m deploy.local run --cluster           the same, with Redis as a cluster of three
python -m deploy.local stack                   the same, with topics, workers and a query worker
python -m deploy.local run --keep FOLDER       keep state in FOLDER for the next run
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

from deploy.local import Kafka, Redis, RedisCluster, StartFailed
from deploy.local.kafka import VERSION, fetch


def main(arguments: Sequence[str]) -> int:
    """Run a subcommand; return the exit code, for `run -- COMMAND` that of the command."""
    parser = argparse.ArgumentParser(prog="python -m deploy.local", description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="subcommand", required=True)
    fetch_parser = commands.add_parser("fetch", help="download Kafka's jars into the cache")
    run_parser = commands.add_parser("run", help="run both servers, for a command or until Ctrl-C")
    stack_parser = commands.add_parser("stack", help="run everything, with workers and a query worker, until Ctrl-C")
    for subparser in (fetch_parser, run_parser, stack_parser):
        subparser.add_argument("--kafka-version", default=VERSION, metavar="VERSION")
    for subparser in (run_parser, stack_parser):
        keep_help = "keep state in this folder; by default it is removed at the end"
        subparser.add_argument("--keep", type=Path, metavar="FOLDER", help=keep_help)
    run_parser.add_argument("--cluster", action="store_true", help="run Redis as a cluster of three")
    run_parser.add_argument("command", nargs="*", metavar="COMMAND")
    options = parser.parse_args(arguments)
    if options.subcommand == "fetch":
        print(fetch(options.kafka_version))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if options.subcommand == "stack":
            return run_stack(folder=options.keep, version=options.kafka_version)
        return run(options.command, folder=options.keep, version=options.kafka_version, cluster=options.cluster)
    except StartFailed as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def run_stack(*, folder: Path | None, version: str) -> int:
    """Run everything until Ctrl-C."""
    from deploy.local.stack import stack  # needs the project's packages, which may not be installed before `fetch`

    with ExitStack() as cleanup:
        cleanup.enter_context(stack(_state_folder(folder, cleanup), version))
        signal.pause()
    return 0


def _state_folder(folder: Path | None, cleanup: ExitStack) -> Path:
    """Return the given folder, or a temporary one that `cleanup` removes."""
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="stream-car-servers-"))
        cleanup.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder.absolute()


def run(command: Sequence[str], *, folder: Path | None, version: str, cluster: bool) -> int:
    """Start both servers, run the command with their addresses in its environment, and stop both.

    Without a command, print the addresses and run until Ctrl-C.
    """
    with ExitStack() as cleanup:
        folder = _state_folder(folder, cleanup)
        kafka = Kafka(folder / "kafka", version=version)
        redis = RedisCluster(folder / "cluster") if cluster else Redis(folder / "redis")
        cleanup.callback(kafka.stop)
        cleanup.callback(redis.stop)
        redis.start()
        kafka.start()
        addresses = {"STREAM_CAR_KAFKA": kafka.address, "STREAM_CAR_REDIS": redis.url}
        if command:
            return subprocess.run(list(command), env={**os.environ, **addresses}, check=False).returncode
        for name, value in addresses.items():
            print(f"export {name}={value}", flush=True)
        print("# Both servers run until Ctrl-C.", flush=True)
        signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
