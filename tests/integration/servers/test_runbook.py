"""The commands of the runbook do on real servers what it says. Every block of commands is run by one of these tests."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import stream_car
from deploy.local import Kafka, Redis
from deploy.local.processes import Process, free_ports
from stream_car import Unavailable
from stream_car.adapters.kafka.settings import KafkaServer
from stream_car.adapters.kafka.topic_layout import Layout
from stream_car.adapters.kafka.topics import apply
from stream_car.client.sync import Client
from tests.support.poison import POISON
from tests.support.repository import ROOT
from tests.support.servers import in_one_worker

pytestmark = in_one_worker("kafka")

RUNBOOK = (ROOT / "deploy" / "runbook.md").read_text(encoding="utf-8")
READY_S = 60.0
SECURITY = {"type": "advisory", "time": "2024-01-01", "scope": {"package": "log4j", "vulnerability": "CVE-1"}}
POISONED = (sys.executable, "-m", "tests.support.processes.poisoned")
PROGRAM = (str(Path(sys.executable).with_name("stream-car")),)


def blocks() -> dict[str, list[str]]:
    """Return the blocks of commands by the heading that they stand under."""
    by_heading: dict[str, list[str]] = {}
    for section in re.split(r"^#+ ", RUNBOOK, flags=re.MULTILINE)[1:]:
        commands = re.findall(r"^```sh\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        if commands:
            by_heading[section.partition("\n")[0]] = commands
    return by_heading


BLOCKS = blocks()
RUN: set[tuple[str, int]] = set()


class OneMachine:
    """Kafka, Redis, a worker and a query worker under the names that the runbook uses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kafka, self.redis = Kafka(folder / "kafka"), Redis(folder / "redis")
        self.port = free_ports(1)[0]
        self.processes: list[Process] = []

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "STREAM_CAR_KAFKA": self.kafka.address,
            "STREAM_CAR_REDIS": self.redis.url,
            "STREAM_CAR_URL": f"http://127.0.0.1:{self.port}",
        }

    def start(self) -> None:
        """Start the servers, create the topics, and put the programs of the runbook into the path."""
        self.redis.start()
        self.kafka.start()
        server = KafkaServer(address=self.kafka.address)
        apply(server, Layout(intakes=2, frontiers=2, single_broker=True))
        configs = [*self.kafka._java(), "kafka.admin.ConfigCommand"]
        for name, words in (
            ("stream-car", PROGRAM),
            ("python", [sys.executable]),
            ("kafka-configs.sh", configs),
        ):
            program = self.folder / name
            program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            program.chmod(0o755)
        self.worker()
        self.run_process("query-worker", "--port", str(self.port))

    def worker(self, program: tuple[str, ...] = PROGRAM) -> Process:
        """Start a worker."""
        return self.run_process("worker", "all", program=program)

    def run_process(self, *words: str, program: tuple[str, ...] = PROGRAM) -> Process:
        """Start a process of this installation."""
        folder = self.folder / f"process-{len(self.processes)}"
        folder.mkdir()
        command = [*program, *words, "--single-broker", "--rules", "security"]
        self.processes.append(Process(command, folder, environment=self.environment))
        return self.processes[-1]

    def stop(self) -> None:
        """Stop everything."""
        for process in self.processes:
            process.kill()
        self.kafka.kill()
        self.redis.kill()

    def run(self, heading: str, number: int = 0, *, code: int = 0, **variables: str) -> str:
        """Run a block of the runbook, and return what it prints. A process that it starts is ended with the block."""
        RUN.add((heading, number))
        commands = BLOCKS[heading][number]
        commands = re.sub(r"^(stream-car (query-)?worker .*)$", r"\1 &", commands, flags=re.MULTILINE)
        commands = commands.replace("redis://localhost:6379", self.redis.url)
        commands = commands.replace("localhost:9092", self.kafka.address)
        environment = {**self.environment, "STREAM_CAR_RULES": "security", **variables}
        script = f"set -e\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{commands}{variables.get('THEN', '')}"
        done = subprocess.run(
            ["bash", "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == code, (heading, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def client(self, port: int | None = None) -> Client:
        """Return a client of a query worker."""
        return stream_car.connect(f"http://127.0.0.1:{port or self.port}")

    def publish(self, *names: str) -> None:
        """Publish advisories that are found by their names, once everything works."""
        with self.client() as client:
            documents = [json.dumps({"id": name, "title": f"{name} in log4j", **SECURITY}) for name in names]
            until(lambda: bool(client.publish(documents)))

    def knows(self, *names: str, port: int | None = None) -> bool:
        """Return whether a query worker answers completely, and knows these documents."""
        with self.client(port) as client:
            return all(each.status == "in_force" and not each.reasons for each in client.resolve(names))


def until(condition: Callable[[], bool]) -> None:
    """Return when the condition holds; a service that cannot answer yet is asked again."""
    deadline = time.monotonic() + READY_S
    while True:
        try:
            if condition():
                return
        except Unavailable:
            pass
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture(scope="module")
def machine(local_kafka: None, local_redis: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneMachine]:
    machine = OneMachine(tmp_path_factory.mktemp("runbook"))
    try:
        machine.start()
        machine.publish("a", "b", "c")
        until(lambda: machine.knows("a", "b", "c"))
        yield machine
    finally:
        machine.stop()
        shutil.rmtree(machine.folder, ignore_errors=True)


def test_the_first_look_finds_an_installation_sound(machine: OneMachine) -> None:
    assert "equal a replay" in machine.run("Look first")


def test_shards_that_are_dropped_are_built_again(machine: OneMachine) -> None:
    machine.run("To drop a shard")

    until(lambda: machine.knows("a", "b", "c"))
    assert "equal a replay" in machine.run("Look first")


def test_placements_that_were_lost_are_published_again_by_intake_shards_that_are_dropped(machine: OneMachine) -> None:
    machine.run("`ahead`")

    until(lambda: machine.knows("a", "b", "c"))
    assert "equal a replay" in machine.run("Look first")


def test_redis_that_is_lost_on_purpose_is_built_again_and_readiness_says_when(machine: OneMachine) -> None:
    assert "ready" in machine.run("To lose Redis on purpose")

    assert machine.knows("a", "b", "c")
    assert "equal a replay" in machine.run("Look first")


def test_settings_that_lose_or_misdate_records_are_set_right(machine: OneMachine) -> None:
    change = [*machine.kafka._java(), "kafka.admin.ConfigCommand", "--bootstrap-server", machine.kafka.address]
    wrong = "retention.ms=60000,message.timestamp.type=CreateTime"
    words = ["--alter", "--topic", "streamcar.documents", "--add-config", wrong]
    subprocess.run([*change, *words], check=True, capture_output=True)

    problems = machine.run("Look first", code=2)
    assert "retention.ms" in problems and "message.timestamp.type" in problems
    machine.run("`append_time`", code=2)  # the retention is still wrong
    machine.run("`lost_history`")
    assert "Background saving started" in machine.run("`lost_history`", 1)


def test_records_in_quarantine_are_shown_retried_and_dropped(machine: OneMachine) -> None:
    working = machine.processes[0]
    working.stop()
    poisoned = machine.worker(POISONED)
    machine.publish(POISON)
    with machine.client() as client:
        [first] = client.quarantine()
    shown = machine.run("Quarantine", 0, code=1, NAME=first.name)
    machine.run("Quarantine", 1, code=1, NAME=first.name)  # this release cannot apply it either
    with machine.client() as client:
        [second] = client.quarantine()
    machine.run("Quarantine", 2, NAME=second.name)
    with machine.client() as client:
        assert (client.quarantine(), client.status().quarantined) == ((), 0)
    poisoned.stop()
    machine.processes[0] = machine.worker()
    machine.publish("d")

    assert "1 record in quarantine" in shown
    assert "ZeroDivisionError" in shown
    until(lambda: machine.knows("a", "d"))


def test_documents_are_copied_to_topics_with_more_partitions(machine: OneMachine) -> None:
    output = machine.run("New topics")

    assert "records are copied" in output
    query_port = free_ports(1)[0]
    words = ("--prefix", "larger")
    machine.run_process("worker", "all", *words)
    machine.run_process("query-worker", *words, "--port", str(query_port))
    until(lambda: machine.knows("a", "b", "c", port=query_port) if answers(machine, query_port) else False)


def answers(machine: OneMachine, port: int) -> bool:
    """Return whether a query worker listens and answers."""
    try:
        with machine.client(port) as client:
            return client.status().documents > 0
    except Unavailable:
        return False


def test_topics_apply_can_be_repeated_for_a_release_that_signs_records(machine: OneMachine) -> None:
    assert "streamcar.keys" in machine.run("A release that signs records")


def test_other_rules_are_built_beside_and_an_old_namespace_is_dropped(machine: OneMachine) -> None:
    wait = "until curl -fs http://127.0.0.1:8390/readyz; do sleep 0.2; done\n"
    wait += "stream-car resolve a --url http://127.0.0.1:8390\n"
    assert "in force" in machine.run("New rules", 0, THEN=wait)
    listed = machine.run("New rules", 1)

    assert "{streamcar-2.frontier:1}" in listed
    assert "{streamcar.intake:0}" in listed
    until(lambda: machine.knows("a", "b", "c"))  # what is dropped and needed is built again: Redis is lost on purpose


def test_a_procedure_of_several_steps_has_commands() -> None:
    sections = re.split(r"^#+ ", RUNBOOK, flags=re.MULTILINE)[1:]
    procedures = {section.partition("\n")[0] for section in sections if re.search(r"^1\. ", section, re.MULTILINE)}

    assert procedures <= BLOCKS.keys()


def test_every_block_of_commands_is_run(machine: OneMachine) -> None:
    """It comes last: the tests before it have run them."""
    assert {(heading, number) for heading, commands in BLOCKS.items() for number in range(len(commands))} == RUN
