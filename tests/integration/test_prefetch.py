"""A log that a second process prefetches ends in the same state, whatever becomes of that process."""

import os
import select
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from stream_car.adapters.search.schema import analyse
from stream_car.codec import encode_mapping
from stream_car.core.documents import Document
from stream_car.errors import Halted
from stream_car.local import prefetch, projection
from stream_car.local.engine import Engine
from stream_car.local.generation import LOG
from stream_car.local.prefetch import Prefetch, Task, begin_prefetch, parcels
from stream_car.local.rebuild import NewGeneration
from stream_car.local.run_sync import run_sync
from stream_car.ports import IndexedDocument, Message, Record
from stream_car.processing.fold import Fold
from stream_car.ranking.settings import SETTINGS
from tests.support.damage import change
from tests.support.data_directories import STATEMENTS, answers, wipe_state
from tests.support.engines import OTHER_RULESET, RULESET, engine
from tests.support.repository import ROOT

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
def _small_logs_are_prefetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})  # also on a machine with one core
    monkeypatch.setattr(prefetch, "RECORDS_MIN", 1)
    monkeypatch.setattr(prefetch, "HEAD_START", 0)
    monkeypatch.setattr(prefetch, "PARCEL_MAX", 8)


def publish_all(car: Engine) -> None:
    car.publish(STATEMENTS)
    car.directory.append(ODD)
    car.publish([b"{", *STATEMENTS[:3]])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder whose log has all kinds of records, none of which was prefetched."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(prefetch, "RECORDS_MIN", 1 << 40)
        with engine(tmp_path / "data") as car:
            publish_all(car)
    return tmp_path / "data"


def task(data: Path, records: int) -> Task:
    log = str(data / LOG)
    return Task(log=log, first=0, end=records, packs=RULESET.packs, future="wait", settings=SETTINGS)


def wait_for_all(reader: Prefetch) -> None:
    """Wait until the process has delivered everything; it fits into the pipe."""
    assert reader._process.wait(PATIENCE_S) == 0


def build(rebuild: NewGeneration, limit: int) -> None:
    while rebuild.step(limit):
        pass


def records_of(car: Engine) -> list[Record]:
    return list(run_sync(car.directory._log.fetch(0, 0, 1 << 30)))


@pytest.fixture
def decoded_here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The offsets of records that this process decodes itself."""
    offsets: list[int] = []
    read = Fold.read

    def noting(self: Fold, record: Record) -> object:
        offsets.append(record.offset)
        return read(self, record)

    monkeypatch.setattr(Fold, "read", noting)
    return offsets


def test_what_is_delivered_is_what_would_have_been_decoded_here(data: Path) -> None:
    fold = Fold(RULESET)
    with engine(data) as car, closing(Prefetch(task(data, car.directory.next_offset))) as reader:
        wait_for_all(reader)
        records = records_of(car)
        delivered = [reader.decoded(record) for record in records]

    assert len(records) == len(STATEMENTS) + len(ODD) + 4
    for record, prefetched in zip(records, delivered, strict=True):
        own = fold.read(record)
        if isinstance(own.content, Document):
            assert prefetched == (own, analyse(IndexedDocument(document=own.content, scopes=own.scopes), SETTINGS))
        else:
            assert prefetched is None


def test_a_rebuild_with_its_help_ends_as_one_without(data: Path, decoded_here: list[int], tmp_path: Path) -> None:
    with engine(tmp_path / "other", ruleset=OTHER_RULESET) as other:
        publish_all(other)
        expected = answers(other)
    with engine(data, ruleset=None) as car:
        fold = Fold(RULESET)
        documents = {record.offset for record in records_of(car) if fold.read(record).scopes}
        with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            reader = rebuild.projection._prefetch
            assert reader is not None
            wait_for_all(reader)
            decoded_here.clear()
            build(rebuild, 7)
            assert reader._input.closed
            rebuild.switch()
        assert len(documents) > 100
        assert documents.isdisjoint(decoded_here)
        assert answers(car) == expected


def test_a_state_that_is_built_again_is_prefetched_too(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readers: list[Prefetch | None] = []

    def noting(task: Task) -> Prefetch | None:
        readers.append(begin_prefetch(task))
        return readers[-1]

    monkeypatch.setattr(projection, "begin_prefetch", noting)
    with engine(data) as car:
        expected = answers(car)
    wipe_state(data)
    with engine(data) as car:
        assert answers(car) == expected

    assert readers[0] is None  # there was nothing to read
    assert readers[1] is not None and readers[1]._input.closed


def test_long_documents_are_delivered_in_parcels_that_fit_the_buffer(tmp_path: Path) -> None:
    text = "word " * 20_000
    with engine(tmp_path) as car:
        car.publish({"id": f"d{n}", "type": "note", "time": "2024-01-01T00:00:00Z", "text": text} for n in range(60))
        with closing(Prefetch(task(tmp_path, 60))) as reader, pytest.MonkeyPatch.context() as patched:
            patched.setattr(prefetch, "BUFFER_MAX", 40 * len(text))
            delivered: list[str | None] = []
            records = records_of(car)
            for _ in range(5000):  # as long as something arrives
                while len(delivered) < 60 and (prefetched := reader.decoded(records[len(delivered)])) is not None:
                    delivered.append(prefetched[0].name)
                if len(delivered) == 60:
                    break
                assert select.select([reader._pipe], [], [], PATIENCE_S)[0]
    assert delivered == [f"d{n}" for n in range(60)]


@pytest.mark.parametrize("parcel", [b"", b"\x93\xc0\xc0\xc0", b"\x91\x01"])
def test_a_parcel_that_cannot_be_decoded_is_ignored(data: Path, parcel: bytes) -> None:
    with engine(data) as car, closing(Prefetch(task(data, 0))) as reader:
        wait_for_all(reader)
        reader._buffer += prefetch._HEAD.pack(0, 3, len(parcel)) + parcel
        assert reader.decoded(records_of(car)[0]) is None


def test_another_release_delivers_nothing(data: Path) -> None:
    with engine(data) as car, closing(Prefetch(replace(task(data, 20), release="0.0.0"))) as reader:
        wait_for_all(reader)
        assert [reader.decoded(record) for record in records_of(car)[:20]] == [None] * 20


@pytest.mark.parametrize("cores", [{0}, {0, 1}])
def test_a_single_core_is_not_shared(data: Path, cores: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores)
    monkeypatch.setattr(sys, "path", [*sys.path, data, ""])  # entries that are not text are left out
    with engine(data) as car, car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
        assert (rebuild.projection._prefetch is not None) == (len(cores) > 1)


@pytest.mark.parametrize("size", [0, 1, 20, 3000, 9000])
def test_records_that_it_does_not_deliver_are_decoded_here(data: Path, size: int, decoded_here: list[int]) -> None:
    """As if it were killed in the middle of a parcel."""
    with engine(data) as car:
        expected = answers(car)
    with engine(data) as car, car.directory.rebuild(ruleset=RULESET) as rebuild:
        reader = rebuild.projection._prefetch
        assert reader is not None
        wait_for_all(reader)
        reader.receive(0)
        del reader._buffer[size:]
        decoded_here.clear()
        build(rebuild, 9)
        rebuild.switch()
        assert answers(car) == expected
        assert len(set(decoded_here)) > len(ODD) + 4


def test_a_rebuild_ends_without_a_process_that_cannot_start(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("/nonexistent/python", "/bin/false", ""):
        monkeypatch.setattr(sys, "executable", program)
        with engine(data) as car, car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            expected = car.directory.next_offset
            build(rebuild, 50)
            assert rebuild.applied == expected


def test_a_damaged_record_is_reported_when_it_is_applied(data: Path) -> None:
    with engine(data) as car:
        change(data / LOG, "UPDATE records SET value = X'7B7D' WHERE at = 40")
        with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            reader = rebuild.projection._prefetch
            assert reader is not None
            assert reader._process.wait(PATIENCE_S) == 1
            with pytest.raises(Halted, match="Record 40"):
                build(rebuild, 8)


def test_a_process_that_was_overtaken_jumps_ahead(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "LEAD", 16)
    positions = iter([0, 0, 60])

    delivered = parcels(task(data, 100), lambda: next(positions, 60))

    assert [prefetch._HEAD.unpack_from(parcel)[:2] for parcel in delivered] == [
        (0, 8),
        (8, 8),
        (16, 8),
        (76, 8),
        (84, 8),
        (92, 8),
    ]


def test_few_records_are_not_worth_a_process(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "RECORDS_MIN", 50)
    assert begin_prefetch(task(data, 49)) is None


def test_a_rebuild_that_is_input_up_leaves_no_process(data: Path) -> None:
    with engine(data) as car:
        with car.directory.rebuild(ruleset=OTHER_RULESET) as rebuild:
            reader = rebuild.projection._prefetch
        assert reader is not None
        assert reader._process.poll() is not None


BEGINNING = """
import sys
from pathlib import Path
from stream_car.local import prefetch
from tests.support.engines import OTHER_RULESET, engine
prefetch._has_spare_core = lambda: True  # also on a machine with one core
with engine(Path(sys.argv[1])) as car:
    rebuild = car.directory.rebuild(ruleset=OTHER_RULESET)
    print(rebuild.projection._prefetch._process.pid, flush=True)
    sys.stdin.read()
"""


def test_it_ends_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    with engine(tmp_path / "data") as car:
        text = "word " * 200
        car.publish(
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
