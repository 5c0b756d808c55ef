"""A process that rebuilds a folder under one rule set and the other, until it is killed."""

import sys
from itertools import cycle
from pathlib import Path

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


def main(path: str) -> None:
    with engine(Path(path), ruleset=None) as here:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for ruleset in cycle((OTHER_RULESET, RULESET)):
            with here.rebuild(ruleset=ruleset) as rebuild:
                while rebuild.step(20):
                    pass
                rebuild.switch()


if __name__ == "__main__":
    main(sys.argv[1])
