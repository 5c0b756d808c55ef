"""Damage a data directory in many ways: `python -m tests.attack.damage --seed 7`.

`--case flip-17` carries out one case again, in this process, and prints what differs; `--keep FOLDER` leaves the
damaged folder there, as it is before anything opens it.
"""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from tests.attack.cases import Case, apply_damage, cases, parse_case
from tests.attack.judge import Judge, Verdict, prepare
from tests.attack.table import failures, table
from tests.attack.workers import fast_folder, judge_all

FLIPS = 2000
CUTS = 200
PROGRESS = 50
SHOWN = 3  # answers that differ
WIDTH = 90  # characters before and after the difference


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.damage", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--flips", type=int, default=FLIPS)
    parser.add_argument("--cuts", type=int, default=CUTS)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--step", type=int, default=1, help="of a long series of questions, ask only one in so many")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="stream-car-attack-", dir=fast_folder()) as folder:
        home = Path(folder)
        prepare(home, step=given.step)
        if given.case:
            return replay(home, parse_case(given.case, given.seed), given.keep, given.step)
        return attack(home, given.seed, given.flips, given.cuts, given.processes, given.step)


def replay(home: Path, case: Case, keep: Path | None, step: int) -> int:
    """Carry out one case again."""
    judge = Judge(home, home / "copy", step=step)
    if keep is not None:
        name, path = judge.planned(case)
        shutil.copytree(judge.specimen.killed if name == "killed" else judge.specimen.folder, keep)
        print(apply_damage(case, keep, path), f"in {keep}")
    verdict = judge.attempt(case)
    print(verdict)
    if verdict.outcome == "WRONG":
        for question, right, wrong in islice(judge.differences(case), SHOWN):
            print(f"{question}\n    right: {_around(right, wrong)}\n    wrong: {_around(wrong, right)}")
    return not verdict.is_good


def _around(answer: bytes, other: bytes) -> str:
    """The part of an answer where it differs from the other one."""
    at = next((at for at, pair in enumerate(zip(answer, other, strict=False)) if pair[0] != pair[1]), len(other))
    return answer[max(at - WIDTH, 0) : at + WIDTH].decode(errors="replace")


def attack(home: Path, seed: int, flips: int, cuts: int, processes: int, step: int) -> int:
    """Carry out many cases, and print every failure and a table. Ctrl-C and `kill` end it early, with the table."""
    planned = cases(seed, flips=flips, cuts=cuts, losses=Judge(home, home).losses)
    verdicts: list[Verdict] = []
    begin = time.monotonic()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for verdict in judge_all(home, planned, processes=processes, step=step):
            verdicts.append(verdict)
            if not verdict.is_good:
                print(verdict, flush=True)
            if len(verdicts) % PROGRESS == 0:
                seconds = time.monotonic() - begin
                failed = len(failures(verdicts))
                print(f"{len(verdicts)} of {len(planned)} cases, {failed} failed, {seconds:.0f} s", flush=True)
    except KeyboardInterrupt:
        print("Interrupted.")
    print(table(verdicts))
    return bool(failures(verdicts))


if __name__ == "__main__":
    sys.exit(main())
