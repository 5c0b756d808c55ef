"""A process that rebuilds a folder under the other one of two rule sets, and dies on the way: `FOLDER PHASE CALL`.

Promise: it kills itself, as `kill -9` would, at the n-th call of a function in a phase; with 0 it survives. It prints
how many calls each completed phase had. So a point of death can be found again on any machine, except for what threads
do.
"""

import os
import signal
import sys
from pathlib import Path
from types import FrameType

from stream_car.core.rules import Ruleset
from tests.support.data_directories import STATEMENTS, answers
from tests.support.engines import OTHER_RULESET, RULESET, engine


def fill(folder: Path, ruleset: Ruleset) -> tuple[object, ...]:
    """Return the answers of a folder that had these rules from the beginning."""
    with engine(folder, ruleset=ruleset) as car:
        car.publish([*STATEMENTS, b"{"])
        return answers(car)


def generations(folder: Path) -> int:
    """Return how many generations a folder has."""
    return len(list((folder / "built").iterdir()))


class Calls:
    """Counts the function calls of this thread, phase by phase. The process ends at one of them."""

    def __init__(self, phase: str, last: int) -> None:
        self.phase = phase
        self.last = last
        self.now = ""
        self.count = 0

    def enter(self, phase: str) -> None:
        """Count the calls of this phase from now on."""
        if self.now:
            sys.stdout.write(f"{self.now} {self.count}\n")
        self.now, self.count = phase, 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self.count += 1
            if self.count == self.last and self.now == self.phase:
                os.kill(os.getpid(), signal.SIGKILL)


PHASES = ("opening", "building", "switching", "closing")


def main(folder: Path, calls: Calls) -> None:
    """Open the folder and switch to the other rules, a few records at a time."""
    sys.setprofile(calls)
    calls.enter("opening")
    with engine(folder, ruleset=None) as car:
        other = RULESET if car.directory.ruleset.digest == OTHER_RULESET.digest else OTHER_RULESET
        calls.enter("building")
        with car.directory.rebuild(ruleset=other) as rebuild:
            while rebuild.step(20):
                pass
            calls.enter("switching")
            rebuild.switch()
            calls.enter("closing")
    calls.enter("")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Calls(sys.argv[2], int(sys.argv[3])))
