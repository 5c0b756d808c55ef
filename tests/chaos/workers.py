"""Processes of Stream-CAR: started, killed, frozen, and observed by the events that they report."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from deploy.local.processes import ends_with_its_parent
from stream_car import AsyncClient
from stream_car.cluster.shard_runner import WorkerEvent
from stream_car.errors import Unavailable
from tests.simulation.world import Violation
from tests.support.repository import ROOT

END_S = 60.0
READY_S = 40.0


class Worker:
    """A `stream-car worker` process. Its output is written to a file."""

    def __init__(
        self,
        log: Path,
        environment: Mapping[str, str],
        arguments: Sequence[str],
        program: Sequence[str],
    ) -> None:
        self.log = log
        self.is_frozen = False
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [*ends_with_its_parent(), *program, *arguments, "--json"],
                cwd=ROOT,
                env={**os.environ, **environment},
                stdout=out,
                stderr=out,
            )

    def events(self, kind: str) -> list[WorkerEvent]:
        """Return the events of this kind that it has reported."""
        lines = [line for line in self.output().splitlines() if line.startswith('{"event"')]
        events = [msgspec.json.decode(line, type=WorkerEvent) for line in lines]
        return [event for event in events if event.event == kind]

    def output(self) -> str:
        """Return everything that it has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def shards(self) -> int:
        """The number of shards that the group last assigned to it."""
        assignments = self.events("assigned")
        return len(assignments[-1].shards) if assignments else 0

    async def assigned(self, at_least: int = 1) -> None:
        """Return when the group has assigned at least this many shards to it."""
        await until(
            lambda: self.shards >= at_least or not self.is_running,
            READY_S,
            f"{self.log}: fewer than {at_least} shards were assigned",
        )
        if not self.is_running:
            raise Violation(f"the worker ended: {self.output()[-2000:]}")

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait()

    @property
    def was_killed(self) -> bool:
        """Whether it ended as by `kill -9`."""
        return self._process.poll() == -signal.SIGKILL

    def freeze(self) -> None:
        """Stop it as a debugger would."""
        self.is_frozen = True
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it continue."""
        self.is_frozen = False
        self._process.send_signal(signal.SIGCONT)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    async def stop(self) -> int:
        """Send SIGTERM; return the exit code."""
        self._process.terminate()
        return await self.ended()

    async def ended(self) -> int:
        """Return the exit code once it has ended."""
        await until(lambda: not self.is_running, END_S, f"{self.log}: the process did not end")
        return int(self._process.returncode)


class QueryWorker(Worker):
    """A `stream-car query-worker` process."""

    token: str | None = None

    async def url(self) -> str:
        """Return its address once it listens."""
        await until(
            lambda: '"url"' in self.output() or not self.is_running, READY_S, f"{self.log}: the process does not listen"
        )
        addresses = [json.loads(line) for line in self.output().splitlines() if line.startswith('{"url"')]
        if not addresses:
            raise Violation(f"the query worker ended: {self.output()[-2000:]}")
        return str(addresses[0]["url"])

    async def ready(self) -> None:
        """Return when its index has caught up."""
        async with AsyncClient(await self.url(), token=self.token) as client:
            deadline = time.monotonic() + READY_S
            while True:
                try:
                    await client.status()
                    return
                except Unavailable:
                    if time.monotonic() > deadline:
                        raise
                    await asyncio.sleep(0.05)


async def until(condition: Callable[[], bool], timeout_s: float, otherwise: str) -> None:
    """Return when the condition holds. Raises `Violation` with this text if that takes too long."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise Violation(otherwise)
        await asyncio.sleep(0.05)
