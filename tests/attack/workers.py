"""Judges cases on several processes, none of which can take the others with it or keep them waiting.

Promise: every case gets a verdict. A process that ends is a verdict (`CRASH`), and so is one that does not answer in
`HANG_S` seconds (`HANG`); another process takes its place.
"""

import os
import select
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Queue

import msgspec

from tests.attack.cases import Case, Damage, label
from tests.attack.judge import Judge, Verdict
from tests.support.repository import ROOT

PROGRAM = ("-m", "tests.attack.worker")
HANG_S = 60.0


class Worker:
    """One process, and another when it has ended."""

    def __init__(self, home: Path, number: int, step: int, program: Sequence[str] = PROGRAM) -> None:
        self._folder = home / f"copy-{number}"
        self._judge = Judge(home, self._folder, step=step)
        self._command = [sys.executable, *program, str(home), str(self._folder), str(step)]
        self._process: subprocess.Popen[bytes] | None = None

    def judge(self, case: Case, timeout_s: float = HANG_S) -> Verdict:
        """Return the verdict of the process, or of its end."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):  # it has ended, which is the verdict
            process.stdin.write(msgspec.json.encode(case) + b"\n")
        readable, _, _ = select.select([process.stdout], [], [], timeout_s)
        line = process.stdout.readline() if readable else b""
        if line:
            return msgspec.json.decode(line, type=Verdict)
        self.close()
        specimen, path = self._judge.planned(case)
        return Verdict(
            case=case,
            damage=Damage(label(path), "see the replay", path),
            specimen=specimen,
            outcome="CRASH" if readable else "HANG",
            detail=f"The process ended with {process.returncode}." if readable else f"No answer in {timeout_s:.0f} s.",
        )

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, bufsize=0,
        )  # fmt: skip

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def judge_all(home: Path, cases: Iterable[Case], *, processes: int, step: int = 1) -> Iterator[Verdict]:
    """Yield the verdict of every case, in the order in which they are reached."""
    waiting = deque(cases)
    verdicts: Queue[Verdict | BaseException] = Queue()
    count = len(waiting)

    def work(number: int) -> None:
        worker = Worker(home, number, step)
        try:
            while waiting:
                verdicts.put(worker.judge(waiting.popleft()))
        except IndexError:  # another took the last one
            pass
        except BaseException as error:
            verdicts.put(error)
        finally:
            worker.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(processes)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(count):
            verdict = verdicts.get()
            if isinstance(verdict, BaseException):
                raise verdict
            yield verdict
    finally:
        waiting.clear()
        for thread in threads:
            thread.join()


def fast_folder() -> str:
    """Return a folder in memory if there is one: every case copies a megabyte or two."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()  # noqa: S108
