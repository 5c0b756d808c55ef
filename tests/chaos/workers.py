"""Processes of Stream-CAR: started, killed, frozen, and asked what they said."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from deploy.local.processes import ends_with_its_parent
from stream_car import AsyncClient
from stream_car.errors import Unavailable
from tests.simulation.world import Violation
from tests.support.repository import ROOT

REST_S = 60.0
READY_S = 40.0


class Worker:
    """A `stream-car worker` process. What it says is kept in a file."""

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

    def said(self, event: str) -> list[dict[str, object]]:
        """What it told of this kind."""
        lines = self._text().splitlines()
        told: Iterator[dict[str, object]] = (json.loads(line) for line in lines if line.startswith('{"event"'))
        return [one for one in told if one["event"] == event]

    def _text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    @property
    def shards(self) -> int:
        """How many the group has given it, as it last said."""
        told = self.said("assigned")
        found = told[-1].get("shards", []) if told else []
        assert isinstance(found, list)
        return len(found)

    async def assigned(self, at_least: int = 1) -> None:
        """Returns when the group has given it so many shards."""
        await until(
            lambda: self.shards >= at_least or not self.is_running,
            READY_S,
            f"{self.log}: no {at_least} shards were assigned",
        )
        if not self.is_running:
            raise Violation(f"it ended: {self.log.read_text(encoding='utf-8')[-2000:]}")

    def kill(self) -> None:
        """As a crash would."""
        self._process.kill()
        self._process.wait()

    @property
    def was_killed(self) -> bool:
        """Whether it died as by `kill -9`."""
        return self._process.poll() == -signal.SIGKILL

    def freeze(self) -> None:
        """Stop it as a debugger would."""
        self.is_frozen = True
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.is_frozen = False
        self._process.send_signal(signal.SIGCONT)

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    async def stop(self) -> int:
        """Ask it to end; its exit code."""
        self._process.terminate()
        return await self.ended()

    async def ended(self) -> int:
        """Returns when it has ended; its exit code."""
        await until(lambda: not self.is_running, REST_S, f"{self.log}: it did not end")
        return int(self._process.returncode)


class QueryWorker(Worker):
    """A `stream-car serve` process."""

    token: str | None = None

    async def url(self) -> str:
        """Where it listens."""
        await until(lambda: '"url"' in self._text() or not self.is_running, READY_S, f"{self.log}: it does not listen")
        found = [json.loads(line) for line in self._text().splitlines() if line.startswith('{"url"')]
        if not found:
            raise Violation(f"it ended: {self._text()[-2000:]}")
        return str(found[0]["url"])

    async def ready(self) -> None:
        """Returns when its index has caught up."""
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


async def until(is_so: Callable[[], bool], timeout_s: float, otherwise: str) -> None:
    """Returns when it is so; looks often."""
    deadline = time.monotonic() + timeout_s
    while not is_so():
        if time.monotonic() > deadline:
            raise Violation(otherwise)
        await asyncio.sleep(0.05)
