"""A process that rebuilds a folder under the rules it does not go by, and dies on the way: `... FOLDER CALL`.

Promise: it kills itself, as `kill -9` would, when a function is called for the n-th time after it began, wherever
that is; with 0 it lives and prints how many calls there were until all was built, and until all was switched.
So a point is found again, on any machine.
"""

import os
import signal
import sys
from pathlib import Path
from types import FrameType

from stream_car.core.rules import Ruleset
from tests.engines import OTHER_RULESET, RULESET, engine
from tests.unit.runtime.test_embedded import SAID, answers


def fill(folder: Path, ruleset: Ruleset) -> tuple[object, ...]:
    """The answers of a folder that went by these rules from the beginning."""
    with engine(folder, ruleset=ruleset) as here:
        here.publish([*SAID, b"{"])
        return answers(here)


def generations(folder: Path) -> int:
    """How many generations lie in a folder."""
    return len(list((folder / "built").iterdir()))


class Calls:
    """Counts the calls of the functions of this thread; at the last one the process ends."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.count = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self.count += 1
            if self.count == self.last:
                os.kill(os.getpid(), signal.SIGKILL)


def rebuild(folder: Path, calls: Calls) -> None:
    """Open the folder and go over to the other rules, a few records at a time."""
    with engine(folder, ruleset=None) as here:
        other = RULESET if here.ruleset.digest == OTHER_RULESET.digest else OTHER_RULESET
        with here.rebuild(ruleset=other) as rebuild:
            while rebuild.step(20):
                pass
            built = calls.count
            rebuild.switch()
    sys.stdout.write(f"{built} {calls.count}\n")


if __name__ == "__main__":
    calls = Calls(int(sys.argv[2]))
    sys.setprofile(calls)
    rebuild(Path(sys.argv[1]), calls)
