"""Pairs of sentences, from files with one pair in each line: `a || b`, or one sentence with `[earlier=>later]`."""

import re
from pathlib import Path


def read_pairs(path: Path) -> list[list[str]]:
    """Return the pairs of a file. Lines that begin with `#` are headings."""
    lines = [line for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return [line.split(" || ") if " || " in line else _expanded(line) for line in lines]


def _expanded(line: str) -> list[str]:
    match = re.search(r"\[(.*?)=>(.*?)\](?=[^\w]|$)", line)
    assert match is not None, line
    return [line[: match.start()] + value + line[match.end() :] for value in match.groups()]
