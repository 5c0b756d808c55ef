"""A log that another process reads ahead ends in the same state, whatever becomes of that process."""

import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from stream_car.adapters.search.schema import analysed
from stream_car.codec import encode_mapping
from stream_car.core.documents import Document
from stream_car.errors import Halted
from stream_car.local import prefetch, projection
from stream_car.local.engine import LOG, Engine
from stream_car.local.prefetch import Ahead, Task, begun, parcels
from stream_car.local.rebuild import Rebuild
from stream_car.local.run_sync import at_once
from stream_car.ports import IndexedDocument, Message, Record
from stream_car.processing.fold import Fold
from stream_car.ranking.settings import SETTINGS
from tests.support.damage import change
from tests.support.engines import OTHER_RULESET, RULESET, engine
from tests.support.repository import ROOT
from tests.unit.local.test_engine import SAID, answers, wipe_state

PATIENCE_S = 60
HEADERS = (("ce_specversion", b"1.0"), ("ce_type", b"claim"), ("ce_id", b"e1"), ("ce_time", b"2024-01-01T00:00:00Z"))
ODD = [
    Message(value=b"{"),
    Message(value=None, key=b"m1"),
    Message(value=None, headers=(("stream-car-tick", b"1"),)),
    Message(value=b'{"scope": {"topic": "moon"}}', headers=HEADERS),
    Message(value=encode_mapping({"id": "x", "type": "unheard", "time": "2024-01-01T00:00:00Z"})),
]


@pytest.fixture(autouse=True)
def _worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})  # whatever this machine has
    monkeypatch.setattr(prefetch, "WORTH", 1)
    monkeypatch.setattr(prefetch, "HEAD_START", 0)
    monkeypatch.setattr(prefetch, "AT_ONCE", 8)


def say_all(here: Engine) -> None:
    here.publish(SAID)
    here.append(ODD)
    here.publish([b"{", *SAID[:3]])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder whose log has all kinds of records, none of which was read ahead."""
    with pytest.MonkeyPatch.context() as alone:
        alone.setattr(prefetch, "WORTH", 1 << 40)
        with engine(tmp_path / "data") as here:
            say_all(here)
    return tmp_path / "data"


def task(data: Path, records: int) -> Task:
    log = str(data / LOG)
    return Task(log=log, first=0, end=records, domains=RULESET.packs, future="wait", settings=SETTINGS)


def all_handed_over(reader: Ahead) -> None:
    """Wait until the process has read everything; it fits into the pipe."""
    assert reader._process.wait(PATIENCE_S) == 0


def build(rebuild: Rebuild, most: int) -> None:
    while rebuild.step(most):
        pass


def records_of(here: Engine) -> list[Record]:
    return list(at_once(here._log.fetch(0, 0, 1 << 30)))


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets of records that this process reads itself."""
    offsets: list[int] = []
    read = Fold.read

    def noted(self: Fold, record: Record) -> object:
        offsets.append(record.offset)
        return read(self, record)

    monkeypatch.setattr(Fold, "read", noted)
    return offsets


def test_what_is_handed_over_is_what_would_have_been_read(data: Path) -> None:
    fold = Fold(RULESET)
    with engine(data) as here, closing(Ahead(task(data, here.next_offset))) as reader:
        all_handed_over(reader)
        records = records_of(here)
        told = [reader.read(record) for record in records]

    assert len(records) == len(SAID) + len(ODD) + 4
    for record, one in zip(records, told, strict=True):
        own = fold.read(record)
        if isinstance(own.content, Document):
            assert one == (own, analysed(IndexedDocument(document=own.content, scopes=own.scopes), SETTINGS))
        else:
            assert one is None


def test_a_rebuild_with_its_help_ends_as_one_without(data: Path, alone: list[int], tmp_path: Path) -> None:
    with engine(tmp_path / "other", ruleset=OTHER_RULESET) as other:
        say_all(other)
        expected = answers(other)
    with engine(data, ruleset=None) as here:
        fold = Fold(RULESET)
        documents = {one.offset for one in records_of(here) if fold.read(one).scopes}
        with here.rebuild(ruleset=OTHER_RULESET) as rebuild:
            reader = rebuild.built._ahead
            assert reader is not None
            all_handed_over(reader)
            alone.clear()
            build(rebuild, 7)
            assert reader._given.closed
            rebuild.switch()
        assert len(documents) > 100
        assert documents.isdisjoint(alone)
        assert answers(here) == expected


def test_a_state_that_is_built_anew_is_read_ahead_too(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[Ahead | None] = []

    def noted(task: Task) -> Ahead | None:
        readers.append(begun(task))
        return readers[-1]

    monkeypatch.setattr(projection, "begun", noted)
    with engine(data) as here:
        expected = answers(here)
    wipe_state(data)
    with engine(data) as here:
        assert answers(here) == expected

    assert readers[0] is None  # there was nothing to read
    assert readers[1] is not None and readers[1]._given.closed


def test_long_documents_are_handed_over_in_parcels_that_have_room(tmp_path: Path) -> None:
    text = "word " * 20_000
    with engine(tmp_path) as here:
        here.publish({"id": f"d{n}", "type": "note", "time": "2024-01-01T00:00:00Z", "text": text} for n in range(60))
        with closing(Ahead(task(tmp_path, 60))) as reader, pytest.MonkeyPatch.context() as patched:
            patched.setattr(prefetch, "KEPT_MAX", 40 * len(text))
            handed: list[str | None] = []
            records = records_of(here)
            for _ in range(5000):  # whenever something has come
                while len(handed) < 60 and (found := reader.read(records[len(handed)])) is not None:
                    handed.append(found[0].name)
                if len(handed) == 60:
                    break
                assert select.select([reader._pipe], [], [], PATIENCE_S)[0]
    assert handed == [f"d{n}" for n in range(60)]


@pytest.mark.parametrize("told", [b"", b"\x93\xc0\xc0\xc0", b"\x91\x01"])
def test_what_cannot_be_understood_is_read_here(data: Path, told: bytes) -> None:
    with engine(data) as here, closing(Ahead(task(data, 0))) as reader:
        all_handed_over(reader)
        reader._buffer += prefetch._HEAD.pack(0, 3, len(told)) + told
        assert reader.read(records_of(here)[0]) is None


def test_another_release_says_nothing(data: Path) -> None:
    with engine(data) as here, closing(Ahead(replace(task(data, 20), release="0.0.0"))) as reader:
        all_handed_over(reader)
        assert [reader.read(record) for record in records_of(here)[:20]] == [None] * 20


@pytest.mark.parametrize("cores", [{0}, {0, 1}])
def test_one_core_is_not_shared(data: Path, cores: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores)
    monkeypatch.setattr(sys, "path", [*sys.path, data, ""])  # what does not belong there harms nobody
    with engine(data) as here, here.rebuild(ruleset=OTHER_RULESET) as rebuild:
        assert (rebuild.built._ahead is not None) == (len(cores) > 1)


@pytest.mark.parametrize("kept", [0, 1, 20, 3000, 9000])
def test_whatever_it_does_not_hand_over_is_read_here(data: Path, kept: int, alone: list[int]) -> None:
    """It is killed in the middle of a parcel, so to say."""
    with engine(data) as here:
        expected = answers(here)
    with engine(data) as here, here.rebuild(ruleset=RULESET) as rebuild:
        reader = rebuild.built._ahead
        assert reader is not None
        all_handed_over(reader)
        reader.take_in(0)
        del reader._buffer[kept:]
        alone.clear()
        build(rebuild, 9)
        rebuild.switch()
        assert answers(here) == expected
        assert len(set(alone)) > len(ODD) + 4


def test_one_that_cannot_begin_or_fails_at_once_is_done_without(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("/nonexistent/python", "/bin/false", ""):
        monkeypatch.setattr(sys, "executable", program)
        with engine(data) as here, here.rebuild(ruleset=OTHER_RULESET) as rebuild:
            expected = here.next_offset
            build(rebuild, 50)
            assert rebuild.applied == expected


def test_a_damaged_record_is_told_by_whoever_applies_it(data: Path) -> None:
    with engine(data) as here:
        change(data / LOG, "UPDATE records SET value = X'7B7D' WHERE at = 40")
        with here.rebuild(ruleset=OTHER_RULESET) as rebuild:
            reader = rebuild.built._ahead
            assert reader is not None
            assert reader._process.wait(PATIENCE_S) == 1
            with pytest.raises(Halted, match="Record 40"):
                build(rebuild, 8)


def test_whoever_was_overtaken_goes_on_ahead(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "LEAD", 16)
    positions = iter([0, 0, 60])

    def firsts(found: Iterator[bytes]) -> list[tuple[int, int]]:
        return [prefetch._HEAD.unpack_from(one)[:2] for one in found]

    told = firsts(parcels(task(data, 100), lambda: next(positions, 60)))

    assert told == [(0, 8), (8, 8), (16, 8), (76, 8), (84, 8), (92, 8)]


def test_few_records_are_not_worth_a_process(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "WORTH", 50)
    assert begun(task(data, 49)) is None


def test_a_rebuild_that_is_given_up_leaves_no_process(data: Path) -> None:
    with engine(data) as here:
        with here.rebuild(ruleset=OTHER_RULESET) as rebuild:
            reader = rebuild.built._ahead
        assert reader is not None
        assert reader._process.poll() is not None


BEGINNING = """
import sys
from pathlib import Path
from stream_car.local import prefetch
from tests.support.engines import OTHER_RULESET, engine
prefetch._is_free = lambda: True  # whatever this machine has
with engine(Path(sys.argv[1])) as here:
    rebuild = here.rebuild(ruleset=OTHER_RULESET)
    print(rebuild.built._ahead._process.pid, flush=True)
    sys.stdin.read()
"""


def test_it_ends_when_whoever_began_it_is_killed(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as here:
        text = "word " * 200
        here.publish(
            {"id": f"d{n}", "type": "note", "time": "2024-01-01T00:00:00Z", "text": text} for n in range(12_000)
        )
    command = [sys.executable, "-c", BEGINNING, str(tmp_path / "data")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as parent:
        assert parent.stdout is not None
        reader = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
    try:
        assert select.select([reader], [], [], PATIENCE_S)[0] == [reader]
    finally:
        os.close(reader)
