"""Damaged feeds: what breaks off is refused and changes nothing, a flipped byte costs the records that it hit."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from stream_car.core.documents import Document, Statement
from tests.support.feeds import DATA, Reading, Sample, samples

LINES = (".jsonl", ".csv")
POINTS = 50
SAMPLES = [pytest.param(sample, id=f"{sample.form}-{sample.name}") for sample in samples()]


def cuts(data: bytes, random: Random) -> Iterator[bytes]:
    for _ in range(POINTS):
        yield data[: random.randrange(len(data.rstrip()))]


def flips(data: bytes, random: Random) -> Iterator[tuple[int, bytes]]:
    for _ in range(POINTS):
        at = random.randrange(len(data))
        yield at, data[:at] + bytes([data[at] ^ 1 << random.randrange(8)]) + data[at + 1 :]


def read(sample: Sample, data: bytes) -> tuple[list[Statement], Reading]:
    reading = Reading(sample.form)
    return reading.read(data, sample.name), reading


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_file_that_breaks_off_is_refused_and_says_nothing_but_its_whole_lines(sample: Sample) -> None:
    every, reading = read(sample, sample.data)
    assert every
    assert not reading.rejected
    for cut in cuts(sample.data, Random(7)):
        statements, reading = read(sample, cut)
        if sample.name.endswith(LINES):
            whole = cut[: cut.rfind(b"\n") + 1]
            assert statements == (read(sample, whole)[0] if whole.count(b"\n") else [])
            assert len(reading.rejected) == (cut != whole)
        else:
            assert statements == []
            assert [bool(error.code) for error in reading.rejected] == [True]
            assert reading.seen == {}


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_flipped_byte_breaks_nothing_else(sample: Sample) -> None:
    lines = sample.data.splitlines(keepends=True)
    ends = [sum(map(len, lines[: n + 1])) for n in range(len(lines))]
    for at, damaged in flips(sample.data, Random(8)):
        statements, reading = read(sample, damaged)
        assert statements or reading.rejected or reading.known
        if sample.name.endswith(".jsonl"):
            hit = next(n for n, end in enumerate(ends) if at < end)
            is_end = at == ends[hit] - 1
            spared = [line for n, line in enumerate(lines) if n != hit and not (is_end and n == hit + 1)]
            expected = read(sample, b"".join(spared))[0]
            assert {name_of(one) for one in expected} <= {name_of(one) for one in statements}


def name_of(statement: Statement) -> tuple[str, str]:
    return statement.id, statement.type if isinstance(statement, Document) else ""


FILES = sorted(path for path in DATA.rglob("*.json") if path.name != "truth.json") if DATA.is_dir() else []
FORMS = {"csaf": "csaf", "oasis-2.1": "csaf", "cve5": "cve5", "kev": "kev", "openvex": "openvex"}


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason=f"the samples are not at {DATA}")
@pytest.mark.parametrize("folder", FORMS)
def test_every_public_file_is_refused_wherever_it_breaks_off(folder: str) -> None:
    random = Random(9)
    for path in [path for path in FILES if path.parent.name == folder]:
        data = path.read_bytes()
        for cut in cuts(data, random):
            statements, reading = read(Sample(form=FORMS[folder], name=path.name, data=data), cut)
            assert (statements, reading.seen, len(reading.rejected)) == ([], {}, 1), path


@pytest.mark.slow
@pytest.mark.skipif(not FILES, reason=f"the samples are not at {DATA}")
def test_a_public_history_loses_only_the_lines_that_are_hit() -> None:
    path: Path = DATA / "osv-go.history.jsonl"
    data = path.read_bytes()
    every = {name_of(one) for one in read(Sample(form="osv", name=path.name, data=data), data)[0]}
    random = Random(10)
    damaged = bytearray(data)
    for _ in range(POINTS):
        damaged[random.randrange(len(data))] ^= 1 << random.randrange(8)
    statements, reading = read(Sample(form="osv", name=path.name, data=data), bytes(damaged))

    assert len(every - {name_of(one) for one in statements}) <= 4 * POINTS
    assert len(reading.rejected) <= 2 * POINTS
