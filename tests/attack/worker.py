"""A process that judges cases: their JSON comes in line by line, and verdicts go out.

It is a process of its own because a damaged file that is mapped into memory can end the process that reads it.
"""

import gc
import os
import sys
from pathlib import Path

import msgspec

from tests.attack.cases import Case
from tests.attack.judge import Judge


def main() -> None:
    """Judge until the input ends."""
    home, folder, step = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints is no verdict
    gc.disable()  # a tenth of the time
    judge = Judge(Path(home), Path(folder), step=int(step))
    gc.freeze()
    for line in sys.stdin.buffer:
        verdict = judge.attempt(msgspec.json.decode(line, type=Case))
        answers.write(msgspec.json.encode(verdict) + b"\n")
        answers.flush()
        gc.collect()


if __name__ == "__main__":
    main()
