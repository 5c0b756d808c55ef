"""Run the command line, and note how long the event loop's thread computes in one go.

Promise: what counts is processor time of that thread, so that a busy machine changes little. Pieces that are longer
than `NOTED_S` are lines of the file that `$PIECES` names, in milliseconds.
"""

import asyncio.events
import os
import time
from pathlib import Path

from stream_car.cli import main

VARIABLE = "PIECES"
NOTED_S = 0.002
PROGRAM = "from tests.attack.pieces import run; run()"


def run() -> None:
    """Run the command line."""
    original = asyncio.events.Handle._run
    with Path(os.environ[VARIABLE]).open("a", buffering=1) as noted:

        def measured(handle: asyncio.events.Handle) -> None:
            begin = time.thread_time()
            original(handle)
            took = time.thread_time() - begin
            if took > NOTED_S:
                noted.write(f"{took * 1000:.1f}\n")

        asyncio.events.Handle._run = measured  # type: ignore[method-assign, assignment]
        main()


class NotedPieces:
    """The pieces that a server has noted, in milliseconds."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def new(self) -> list[float]:
        """Return the pieces since the last call."""
        with self._path.open() as file:
            file.seek(self._read)
            lines = file.read()
        lines = lines[: lines.rfind("\n") + 1]
        self._read += len(lines)
        return [float(line) for line in lines.split()]
