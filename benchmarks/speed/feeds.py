"""Feeds: OSV records converted per second, and memory by the length of a feed: `python -m benchmarks.speed.feeds`.

Promise: records of 2 KB like those of public databases, some in several editions, are converted from a file as
`stream-car convert` does. Speed is measured in processor time, the best of three runs; memory is the peak of a process
that converts a short and a long feed.
"""

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from benchmarks.speed.report import Figure, show
from stream_car.codec import encode
from stream_car.core.documents import Document
from stream_car.feeds import find_format
from stream_car.ingest.files import input_files
from stream_car.ingest.ingest import convert as convert_files

RECORDS = 20_000
LONGER = 10
RATE = 3_000
GROWTH = 1.2
RUNS = 3
MEASURE = "--convert"


def lines(records: int) -> Iterator[str]:
    """Yield the lines of a history: records of about 2 KB, one in three with a second edition that fixes it."""
    text = "The parser reads a length from the message and trusts it. " * 20
    for number in range(records):
        record = number if number % 3 else max(number - 1, 0)
        events = [{"introduced": "0"}, *([] if number % 3 else [{"fixed": f"1.{number}.0"}])]
        yield json.dumps(
            {
                "commit_time": f"2024-{1 + number * 11 // records:02}-{1 + number % 28:02}T{number % 24:02}:00:00Z",
                "record": {
                    "id": f"EX-{record}",
                    "modified": "0001-01-01T00:00:00Z",
                    "aliases": [f"CVE-2024-{record}"],
                    "summary": f"Overflow in package {record % 500}",
                    "details": text,
                    "affected": [
                        {
                            "package": {"ecosystem": "Go", "name": f"example.com/{record % 500}"},
                            "ranges": [{"type": "SEMVER", "events": events}],
                        }
                    ],
                    "references": [{"type": "WEB", "url": f"https://example.com/{number}/{n}"} for n in range(6)],
                },
            }
        )


def convert(path: Path) -> int:
    """Convert and encode a feed as the command does; return the number of documents."""
    form, count = find_format("osv"), 0
    for step in convert_files(form, input_files([str(path)], form.suffixes)):
        for statement in step.conversion.documents if step.conversion is not None else ():
            count += isinstance(statement, Document) and bool(encode(statement))
    return count


def peak_kb(path: Path) -> int:
    """Return the peak memory of a process that converts a feed, in KiB."""
    program = [sys.executable, "-m", "benchmarks.speed.feeds", MEASURE, str(path)]
    return int(subprocess.run(program, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    """Print records per second, and how memory grows."""
    with tempfile.TemporaryDirectory() as folder:
        short, long = Path(folder) / "short.jsonl", Path(folder) / "long.jsonl"
        for path, records in ((short, RECORDS), (long, RECORDS * LONGER)):
            with path.open("w", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in lines(records))
        times = []
        for _ in range(RUNS):
            before = process_time()
            convert(short)
            times.append(process_time() - before)
        small, large = peak_kb(short), peak_kb(long)
        figures = [
            Figure(name="OSV records converted", value=RECORDS / min(times), unit="1/s", at_least=RATE),
            Figure(name=f"peak memory, {RECORDS:,} records", value=small / 1024, unit="MiB"),
            Figure(
                name=f"peak memory, {RECORDS * LONGER:,} records over {RECORDS:,}",
                value=large / small,
                unit="times",
                at_most=GROWTH,
            ),
        ]
    return show("feeds", figures)


if __name__ == "__main__":
    if sys.argv[1:2] == [MEASURE]:
        convert(Path(sys.argv[2]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        sys.exit(0)
    sys.exit(main())
