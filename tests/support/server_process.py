"""A server as a process of its own, as a user starts it."""

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

import msgspec

from tests.support.repository import ROOT

PROGRAM = "from stream_car.cli import main; main()"


class Listening(msgspec.Struct):
    """What `serve --json` prints."""

    url: str


class Server:
    """`stream-car serve` over a data directory, on a free port; killed at the end of the block if it still runs."""

    def __init__(
        self, folder: Path, *options: str, port: int = 0, stderr: int | None = None, program: str = PROGRAM
    ) -> None:
        command = [
            sys.executable,
            "-c",
            program,
            "serve",
            "--json",
            "--port",
            str(port),
            "--data",
            str(folder),
            *options,
        ]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STREAM_CAR_")}
        environment["PYTHONPATH"] = str(ROOT)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the server did not start"
        self.url = msgspec.json.decode(line, type=Listening).url
        self.port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.kill()
        self.close()

    def close(self) -> None:
        """Wait for its end."""
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> "Server":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.close()
