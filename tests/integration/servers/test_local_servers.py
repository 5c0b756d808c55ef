"""The servers that `deploy/local` starts: real ones, which end with the program that started them."""

import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.local import Kafka, Redis, StartFailed
from tests.support.repository import ROOT
from tests.support.servers import in_one_worker


def reply(redis: Redis, *words: str) -> str:
    command = ["redis-cli", "-p", str(redis.port), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_redis_has_its_state_after_a_kill(local_redis: None, tmp_path: Path) -> None:
    redis = Redis(tmp_path / "redis")
    redis.start()
    try:
        reply(redis, "SET", "key", "value")
        redis.kill()
        redis.start()

        assert reply(redis, "GET", "key") == "value"
        assert reply(redis, "CONFIG", "GET", "maxmemory-policy").split() == ["maxmemory-policy", "noeviction"]
    finally:
        redis.kill()


def test_the_error_of_a_server_that_cannot_start_names_the_reason(local_redis: None, tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match="noevictoin"):
        Redis(tmp_path / "redis", options=("--maxmemory-policy", "noevictoin")).start()


@in_one_worker(__name__)
def test_a_broker_starts_again_after_a_kill_and_creates_no_topic_by_accident(local_kafka: None, tmp_path: Path) -> None:
    kafka = Kafka(tmp_path / "kafka")
    kafka.start()
    try:
        command = ["kcat", "-P", "-b", kafka.address, "-t", "never-made", "-X", "message.timeout.ms=1500"]
        publishing = subprocess.run(command, input="value\n", text=True, capture_output=True, check=False)
        kafka.kill()
        kafka.start()
    finally:
        kafka.kill()

    assert publishing.returncode != 0, "a topic was created by accident"
    assert not listens(kafka.port)


def test_a_server_ends_with_the_process_that_started_it(local_redis: None, tmp_path: Path) -> None:
    program = (
        "import sys, pathlib, time; from deploy.local import Redis; "
        f"redis = Redis(pathlib.Path({str(tmp_path)!r})); redis.start(); "
        "print(redis.pid, redis.port, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid, port = map(int, parent.stdout.readline().split())
    assert listens(port)

    child = os.pidfd_open(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    with os.fdopen(child):
        assert select.select([child], [], [], 10)[0], "the server has not ended"
    assert not listens(port)


@in_one_worker(__name__)
def test_from_the_shell_both_servers_run_as_long_as_a_command(local_redis: None, local_kafka: None) -> None:
    command = [
        sys.executable,
        "-m",
        "deploy.local",
        "run",
        "--",
        "sh",
        "-c",
        "echo $STREAM_CAR_KAFKA $STREAM_CAR_REDIS; exit 7",
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    kafka, redis = run.stdout.split()

    assert run.returncode == 7
    assert not listens(int(kafka.rpartition(":")[2]))
    assert not listens(int(redis.rpartition(":")[2]))
