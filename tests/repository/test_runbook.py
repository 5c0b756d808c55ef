"""The runbook explains every event that a worker reports, and every exit code that it ends with."""

import re
from typing import get_args, get_type_hints

from stream_car.cluster import worker
from stream_car.cluster.shard_runner import WorkerEvent
from tests.support.repository import ROOT

RUNBOOK = (ROOT / "deploy" / "runbook.md").read_text(encoding="utf-8")
FAILED = 2  # of every command that cannot be carried out


def first_cells(header: str) -> list[str]:
    """Return the first cells of the rows of a table."""
    lines = RUNBOOK.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"| {header} |"))
    table = lines[begin + 2 :]
    return [line.split("|")[1].strip() for line in table[: table.index("")]]


def test_every_event_of_a_worker_is_explained() -> None:
    explained = [name for cell in first_cells("event") for name in re.findall(r"`(\w+)`", cell)]

    assert sorted(explained) == sorted(get_args(get_type_hints(WorkerEvent)["event"]))


def test_every_exit_code_of_a_worker_is_explained() -> None:
    assert [int(cell) for cell in first_cells("exit code of a worker")] == [
        worker.DONE,
        FAILED,
        worker.HALTED,
        worker.RESTART,
    ]
