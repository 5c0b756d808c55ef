"""A lockfile against many records: `python -m benchmarks.speed.affected`.

Promise: 200,000 OSV records about 60,000 packages, and a lockfile of 1,000 packages. Every second one has three or four
records, one in ten of which is about its version. Another lockfile has records about every package. Measured in
processor time, the best of three runs: the command from its start, and the call in a process that has answered before.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import msgspec

import stream_car
from benchmarks.speed.report import Figure, show
from stream_car import Engine
from stream_car.core.documents import Document, Retraction
from stream_car.feeds import find_format

RECORDS = int(os.environ.get("RECORDS", "200000"))
PACKAGES = RECORDS * 3 // 10
LISTED = 1_000
BATCH = 1_000
RUNS = 3
COLD_S, WARM_MS = 2.0, 200.0


def records() -> Iterator[bytes]:
    """Yield records of about 1 KB: one in ten is fixed after the version that the lockfile has."""
    text = "The parser reads a length from the message and trusts it. " * 10
    for number in range(RECORDS):
        fixed = "1.9.0" if number % 10 == 0 else f"1.{number % 5}.0"
        yield msgspec.json.encode(
            {
                "id": f"EX-{number}",
                "modified": f"2024-{1 + number % 12:02}-{1 + number % 28:02}T00:00:00Z",
                "aliases": [f"CVE-2024-{number:06}"],
                "summary": f"Overflow in package-{number % PACKAGES}",
                "details": text,
                "affected": [
                    {
                        "package": {"ecosystem": "npm", "name": f"package-{number % PACKAGES}"},
                        "ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}, {"fixed": fixed}]}],
                    }
                ],
            }
        )


def fill(engine: Engine) -> None:
    """Publish the records."""
    form, documents = find_format("osv"), list[Document | Retraction]()
    for record in records():
        documents += form.convert({}, record).documents
        if len(documents) >= BATCH:
            engine.publish(documents)
            documents = []
    engine.publish(documents)


def write_lockfile(path: Path, *, clean: bool) -> None:
    """Write a lockfile whose packages are spread over all that have records; with `clean`, half of them have none."""
    step = PACKAGES // LISTED
    numbers = (at * step + at // 2 % step for at in range(LISTED))  # with all last digits
    names = (f"clean-{at}" if clean and not at % 2 else f"package-{number}" for at, number in enumerate(numbers))
    packages = {f"node_modules/{name}": {"version": "1.5.0"} for name in names}
    path.write_text(json.dumps({"lockfileVersion": 3, "packages": packages}), encoding="utf-8")


def cold_seconds(data: Path, lockfile: Path) -> float:
    """Return the processor time of the command, with its start."""
    program = [sys.executable, "-m", "stream_car.cli", "affected", "--data", str(data), "--lockfile", str(lockfile)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    finished = subprocess.run([*program, "--json"], check=False, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert finished.returncode == 1, finished.stderr
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def warm_seconds(engine: Engine, lockfile: Path) -> float:
    """Return the processor time of one call."""
    before = process_time()
    answer = engine.affected(files=[lockfile])
    with_records = LISTED // 2 if any(each.status == "no_record" for each in answer) else LISTED
    assert sum(each.status == "affected" for each in answer) == with_records // 10
    return process_time() - before


def main() -> int:
    """Print the time of the command and of the call."""
    with tempfile.TemporaryDirectory() as folder:
        data, lockfile = Path(folder) / "data", Path(folder) / "package-lock.json"
        full = Path(folder) / "full" / lockfile.name
        write_lockfile(lockfile, clean=True)
        full.parent.mkdir()
        write_lockfile(full, clean=False)
        with stream_car.open(data, rules="security") as engine:
            fill(engine)
            warm = min(warm_seconds(engine, lockfile) for _ in range(RUNS + 1))
            warm_full = min(warm_seconds(engine, full) for _ in range(RUNS + 1))
        cold = min(cold_seconds(data, lockfile) for _ in range(RUNS))
        figures = [
            Figure(name=f"{LISTED:,} packages, {RECORDS:,} records, cold", value=cold, unit="s", at_most=COLD_S),
            Figure(name="the same in the service", value=warm * 1000, unit="ms", at_most=WARM_MS),
            Figure(name="with records about all packages", value=warm_full * 1000, unit="ms", at_most=WARM_MS),
        ]
    return show("affected", figures)


if __name__ == "__main__":
    sys.exit(main())
