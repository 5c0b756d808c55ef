"""A process that rebuilds a folder under the rules it does not go by, and dies on the way: `... FOLDER PHASE CALL`.

Promise: it kills itself, as `kill -9` would, when a function is called for the n-th time in that phase, wherever that
is; with 0 it lives. It prints how many calls each phase that it went through had. So a point is found again, on any
machine, but for what threads do.
"""

import os
import signal
import sys
from pathlib import Path
from types import FrameType

from stream_car.core.rules import Ruleset
from tests.support.engines import OTHER_RULESET, RULESET, engine
from tests.unit.local.test_engine import SAID, answers


def fill(folder: Path, ruleset: Ruleset) -> tuple[object, ...]:
    """The answers of a folder that went by these rules from the beginning."""
    with engine(folder, ruleset=ruleset) as here:
        here.publish([*SAID, b"{"])
        return answers(here)


def generations(folder: Path) -> int:
    """How many generations lie in a folder."""
    return len(list((folder / "built").iterdir()))


class Calls:
    """Counts the calls of the functions of this thread, phase by phase; at one of them the process ends."""

    def __init__(self, phase: str, last: int) -> None:
        self.phase = phase
        self.last = last
        self.now = ""
        self.count = 0

    def enter(self, phase: str) -> None:
        """What is counted from here on belongs to this phase."""
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
    """Open the folder and go over to the other rules, a few records at a time."""
    sys.setprofile(calls)
    calls.enter("opening")
    with engine(folder, ruleset=None) as here:
        other = RULESET if here.ruleset.digest == OTHER_RULESET.digest else OTHER_RULESET
        calls.enter("building")
        with here.rebuild(ruleset=other) as rebuild:
            while rebuild.step(20):
                pass
            calls.enter("switching")
            rebuild.switch()
            calls.enter("closing")
    calls.enter("")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Calls(sys.argv[2], int(sys.argv[3])))
