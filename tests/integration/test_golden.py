"""Data that an older release wrote is read as it was meant, without a rebuild."""

import shutil
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Never, cast

import msgspec
import pytest

import stream_car
from stream_car import Reset
from stream_car.adapters.sqlite.state_file import StateFile
from stream_car.cluster.rejected import RejectedTopic
from stream_car.codec import decode
from stream_car.codec.placements import WatermarkRecord, decode_placement, encode_placement, encode_watermark
from stream_car.core.changes import FrontierChange
from stream_car.errors import InvalidDocument
from stream_car.local import backup
from stream_car.ports import Record
from stream_car.processing.partitions import Partitions
from stream_car.processing.signatures import KEY_BYTES, Signatures
from tests.golden import documents
from tests.golden.facts import event_facts, facts
from tests.golden.stored import RELEASES, RecordedLog, records, unpacked, values
from tests.golden.write import FEEDS, VIEWS
from tests.support.feeds import PAGES, WRITTEN, published

pytestmark = pytest.mark.parametrize("release", RELEASES)


@pytest.fixture
def without_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail when stored state is discarded."""

    def refuse(self: StateFile) -> None:
        raise AssertionError("the state was discarded")

    monkeypatch.setattr(StateFile, "reset", refuse)


def expected(release: str, name: str) -> object:
    return values(release, "expected")[name]


def id_of(record: Record) -> str | None:
    try:
        return decode(record.value, key=record.key, headers=record.headers).id
    except InvalidDocument as invalid:
        return invalid.document_id


def all_records(release: str, topic: str) -> Iterator[Record]:
    return chain.from_iterable(records(release, topic).values())


def plain(value: object) -> object:
    return msgspec.json.decode(msgspec.json.encode(value))


@pytest.mark.usefixtures("without_rebuild")
@pytest.mark.parametrize("name", ["folder", "applied"])
def test_a_folder_opens_with_its_rules_and_answers_as_it_did(release: str, name: str, tmp_path: Path) -> None:
    folder = unpacked(release, name, tmp_path)

    with stream_car.open(folder) as car:
        assert plain(facts(car)) == expected(release, name)


def test_its_log_alone_gives_the_same_answers(release: str, tmp_path: Path) -> None:
    folder = unpacked(release, "folder", tmp_path)
    shutil.rmtree(folder / "built")

    with stream_car.open(folder) as car:
        assert plain(facts(car)) == expected(release, "folder")


def test_its_backup_gives_the_same_answers(release: str, tmp_path: Path) -> None:
    copy = unpacked(release, "backup", tmp_path)

    backup.copy(copy, tmp_path / "restored")

    with stream_car.open(tmp_path / "restored") as car:
        assert plain(facts(car)) == expected(release, "folder")


@pytest.mark.usefixtures("without_rebuild")
def test_its_positions_can_be_continued_and_its_cursors_without_a_mark_are_reset_once(
    release: str, tmp_path: Path
) -> None:
    folder = unpacked(release, "folder", tmp_path)
    middle, following = cast(tuple[str, dict[str, object]], expected(release, "after"))
    cursors = cast(list[str], values(release, "cursors")["embedded"])

    with stream_car.open(folder) as car:
        for view in VIEWS:
            marked = f"{middle}@{car.directory.marks.mark()}"
            assert plain(event_facts(car.subscribe(view=view, after=marked))) == following[view]
        for cursor in cursors:
            with car.subscribe(view="scope", after=cursor) as events:
                reset = next(events)
                assert isinstance(reset, Reset)
                assert reset.reason == "cursor_log"
                [*_, last] = events
            with car.subscribe(view="scope", after=last.cursor) as events:
                assert list(events) == []
        changes = car.changes(limit=10_000)
        assert car.changes(after=changes[700].position, limit=10_000) == changes[701:]


@pytest.mark.usefixtures("without_rebuild")
def test_feeds_that_it_has_read_publish_nothing_new(release: str, tmp_path: Path) -> None:
    folder = unpacked(release, "folder", tmp_path)

    with stream_car.open(folder) as car:
        for form in FEEDS:
            name, text = WRITTEN.findall((PAGES / f"{form}.md").read_text(encoding="utf-8"))[0]
            (tmp_path / str(name)).write_text(str(text), encoding="utf-8")
            steps = published(car, form, [tmp_path / str(name)])
            assert sum(len(step.conversion.documents) for step in steps if step.conversion is not None) == 0


def test_the_records_of_every_topic_are_read(release: str) -> None:
    generation = str(values(release, "servers")["generation"])
    for record in all_records(release, "documents"):
        if record.value not in (b"no JSON", b"[]") and b"\xff" not in (record.value or b""):
            assert id_of(record)
    for record in all_records(release, "placements"):
        assert record.value is not None
        message = decode_placement(record.value, generation)
        assert message is not None
        if isinstance(message, WatermarkRecord):
            again = encode_watermark(generation=message.generation, shard=message.shard, next_offset=message.next)
        else:
            placement = message.placement()
            again = encode_placement(placement, generation=message.generation, shard=message.shard, oseq=message.oseq)
        assert again == record.value
    for record in all_records(release, "changes"):
        change = msgspec.json.decode(record.value or b"", type=FrontierChange)
        assert msgspec.json.encode(change, order="deterministic") == record.value


class NoSnapshots:
    """Implements `ports.SnapshotReader` for a listing, which needs no state."""

    async def peek(self, wanted: object) -> Never:
        raise AssertionError("a listing reads no state")


async def test_the_records_of_rejected_input_are_listed(release: str) -> None:
    intakes, frontiers = cast(list[int], values(release, "servers")["partitions"])
    topic = RejectedTopic(
        RecordedLog(records(release, "rejected")),
        RecordedLog(records(release, "documents")),
        NoSnapshots(),
        documents.ruleset(),
        Partitions(intakes=intakes, frontiers=frontiers),
        Signatures(key=bytes(KEY_BYTES)),
    )

    assert {(rejected.code, rejected.id) for rejected in await topic.list_from(0, 100)} == {
        ("conflict", "menu-a"),
        ("type_unknown", "untyped"),
        ("time", "timeless"),
        ("syntax", None),
        ("encoding", None),
        ("not_object", None),
    }
