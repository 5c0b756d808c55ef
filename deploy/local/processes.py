"""Starts a server, waits until it answers, and stops it."""

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

LOG_TAIL = 4000
STOP_S = 15.0


class StartFailed(Exception):
    """A server could not be started; the message contains the end of its log."""


def free_ports(count: int) -> list[int]:
    """Return distinct ports that are free now."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def ends_with_its_parent() -> tuple[str, ...]:
    """Return a command prefix that makes the kernel kill the command when this process ends, even by a kill."""
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()


class Process:
    """A running program. Its output goes to the file `log` in its folder."""

    def __init__(self, command: Sequence[str], folder: Path, *, environment: Mapping[str, str] | None = None) -> None:
        self.log = folder / "log"
        with self.log.open("ab") as output:
            self._running = subprocess.Popen(
                [*ends_with_its_parent(), *command],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def pid(self) -> int:
        """The process id."""
        return self._running.pid

    def wait_until(self, answers: Callable[[], bool], *, timeout: float) -> None:
        """Wait until the program answers.

        Raises:
            StartFailed: it ended, or did not answer within `timeout` seconds (then it is killed).
        """
        deadline = time.monotonic() + timeout
        while not answers():
            if self._running.poll() is not None:
                raise StartFailed(f"The server ended with code {self._running.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise StartFailed(f"The server did not answer within {timeout:.0f} s:\n{self.tail()}")
            time.sleep(0.02)

    def tail(self) -> str:
        """Return the end of the log."""
        return self.log.read_text(encoding="utf-8", errors="replace")[-LOG_TAIL:]

    def stop(self) -> None:
        """Terminate the program; kill it if it does not end in time."""
        if self._running.poll() is None:
            self._running.terminate()
            try:
                self._running.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """Kill the program, as a crash would."""
        if self._running.poll() is None:
            self._running.kill()
        self._running.wait()


class Server:
    """A server in `folder`. It may be started again after `stop` or `kill`; its port stays the same."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self._process: Process | None = None

    @property
    def address(self) -> str:
        """The `host:port` for clients."""
        return f"127.0.0.1:{self.port}"

    def stop(self) -> None:
        """Stop the server in an orderly way."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """Kill the server."""
        if self._process is not None:
            self._process.kill()

    @property
    def pid(self) -> int:
        """The process id while it runs."""
        assert self._process is not None
        return self._process.pid
